"""A call whose approval expired is asked for again: in its job while that lives, else in a job of its own (RULES A8).

The new call is linked to the old one, has the same arguments, and is judged by the policy and the entry of today. Its
result reaches the model of a living job as a late note.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from base import db, ids
from catalog.models import Agent
from catalog.queries import functions, switches
from catalog.rules.kept_agents import Unreadable, from_json
from catalog.rules.switching import Mode
from jobs.models import Call, Hold, Job, JobCounter, Starter
from jobs.operations import bodies, events, intake, moves
from jobs.queries import locks, runs
from jobs.rules.permits import may_ask_again
from jobs.rules.states import JOB_FINAL, CallState, HoldKind, JobState
from jobs.rules.turns import Wanted


class CannotAsk(ValueError):
    """The call cannot be asked for again; the message says why. Nothing was made."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The new call, and its question while that is open.

    `before` says that somebody had asked for it already; then nothing was made now.
    """

    call_id: UUID
    job_id: UUID
    state: CallState
    new_job: bool
    hold_id: UUID | None
    before: bool = False


def ask_again(*, call_id: UUID, person: int) -> Asked:
    """Make the call anew that nobody approved in time. Demands an open write. Raises `CannotAsk`, `Call.DoesNotExist`.

    It is made once, however often this is asked.
    """
    now = db.must_write()
    found = Call.objects.only("job_id").get(pk=call_id)
    locks.gate_shared()
    job, call = locks.job(found.job_id), locks.call(call_id)
    assert job is not None and call is not None  # noqa: S101 - rows are never deleted
    before = Call.objects.filter(again_of_id=call_id).first()
    if before is not None:
        return _asked(before, job, before=True)
    asked = Hold.objects.filter(call_id=call_id, kind=HoldKind.APPROVE).exists()
    if not asked or not may_ask_again(call.state, call.reason, attempts=call.attempts_made):
        raise CannotAsk("only a call that waited for approval until its time was over is asked for again")
    if job.state == JobState.CANCELLING:
        raise CannotAsk("its job is being stopped; ask again once it has ended")
    lives = job.state not in JOB_FINAL
    # a later run whose model is told of what came before is told of this, too; what a program began anew is not
    here = lives and (call.run_number == job.run_number or bool(runs.summary_before(job, job.run_number)))
    _readable(job.agent if here else functions.current_agent(job.agent_name))
    into = job if here else _job_for(call, job, person)
    wanted = Wanted(call.model_name, bodies.arguments_of(call), "")
    (new,) = intake.submit(job=into, turn=None, wanted=[wanted], now=now, again_of=call.pk)
    return _asked(new, job)


def _readable(agent: Agent | None) -> None:
    """Its call can be taken in: what is kept of the agent can be read."""
    if agent is None:
        return
    try:
        from_json(agent.definition)
    except Unreadable as error:
        raise CannotAsk(f"its agent {agent.name!r} is unreadable: {error}") from error


def _asked(new: Call, job: Job, *, before: bool = False) -> Asked:
    hold = Hold.objects.filter(call_id=new.pk, closed_at__isnull=True).values_list("pk", flat=True).first()
    return Asked(new.pk, new.job_id, CallState(new.state), new.job_id != job.pk, hold, before)


def _job_for(call: Call, old: Job, person: int) -> Job:
    """A job of this one call, started by the person, without a turn of the model and without a limit of minutes."""
    now = db.must_write()
    agent = functions.current_agent(old.agent_name)
    if agent is None:
        raise CannotAsk(f"its agent {old.agent_name!r} is in the catalog no more")
    switch = switches.over_agent(agent.name)
    if switch is not None and switch.mode == Mode.KILL:
        raise CannotAsk(f"a kill switch is on for this {switch.scope}: {switch.reason or 'no reason was given'}")
    job = Job(
        tenant_id=old.tenant_id,
        agent=agent,
        agent_name=agent.name,
        title=f"{call.model_name}, asked again"[: intake.TITLE],
        starter=Starter.PERSON,
        started_by_id=person,
        input=_told(call, agent),
        state=JobState.QUEUED,
        on_unknown="ask",
        one_call=True,
        created_at=now,
    )
    job.save(force_insert=True)
    JobCounter.objects.create(job=job, tenant_id=job.tenant_id)
    events.record(job.pk, "job.started", to=JobState.QUEUED, agent=agent.name, starter=Starter.PERSON, person=person)
    moves.job(job, JobState.RUNNING, reason="", now=now, started_at=now)
    return job


def _told(call: Call, agent: Agent) -> dict[str, Any]:
    return {"again_of": ids.show(ids.CALL, call.pk), "agent": agent.name}
