"""A job that continues as new: when its run is to be summed up, and how the next one begins (RULES G3, K2, K3).

Between two runs nothing of the job is open. What its agent's limits count goes on counting: they are the job's, and a
job could else go on for ever. Its taint stays with it, too (RULES M3).
"""

from collections.abc import Mapping
from typing import Any

from base import db
from catalog.rules.agents import AgentSpec
from catalog.rules.answers import storable
from catalog.rules.model_names import REHEARSAL
from jobs.models import Job, Turn
from jobs.operations import events, masking
from jobs.queries import history, runs
from jobs.queries.tables import JOBS
from jobs.rules.runs import is_full
from jobs.rules.states import TurnState


def to_be_summed_up(job: Job, agent: AgentSpec, *, turns: int, length: int) -> bool:
    """Whether the job's due turn asks for a summary of its run. One that is asked again asks for what it asked before.

    `turns` are the answers of its run so far, `length` what one more request would send of it. Not while the model is
    still to be told of a call that a person asked for again: the next run would never hear of it (RULES A8). After a
    summary that came to nothing the job first goes on with its work.
    """
    if agent.model == REHEARSAL:
        return False
    again = Turn.objects.filter(job=job, state__in=[TurnState.LOST, TurnState.BUSY])
    asked = again.values_list("sums_up", flat=True).first()
    if asked is not None:
        return asked
    if runs.just_summed_up(job) or history.awaits_a_note(job):
        return False
    left = agent.limits.turns - job.turns_made
    return is_full(agent.runs, turns=turns, tokens=length, base=runs.base_of(job), left=left)


def begin_next(job: Job, given: Mapping[str, Any]) -> None:
    """Begin the job's next run, its input changed by `given`: its calls count from 1, under keys of their own.

    The caller holds the job alone, and has seen that nothing of it is open.
    """
    db.must_write()
    before = job.input
    changed: dict[str, Any] = {
        "calls_before": job.calls_made,
        "run_number": job.run_number + 1,
        "next_activity": 1,
        "input": {**before, **masking.value(storable(dict(given)))},
    }
    JOBS.update(job.pk, changed)
    for name, value in changed.items():
        setattr(job, name, value)
    events.record(job.pk, "job.continued", run=job.run_number, before=before, input=job.input)
