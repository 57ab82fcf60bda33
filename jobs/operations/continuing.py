"""A harness's program asks that its job continues as new (RULES G3): what no node and no model can decide for it."""

from typing import Any, Final

from base import canonical, db
from catalog.rules.platform import CONTINUE
from jobs.operations import events, intake, masking
from jobs.operations.outside import Client, NotTaken, agent_of, session_of
from jobs.queries import runs
from jobs.queries.tables import SESSIONS
from jobs.rules import texts
from jobs.rules.arguments import canonical_value, misfit, unkeepable

MOST_TIMES: Final = 100  # that one session may change what its next run begins with


def continue_as_new(*, client: Client, arguments: Any) -> str:
    """A harness's program asks that its job continues as new once it has ended; returns what it is told (RULES G3).

    What it asks for last counts, unless it is lost: a fresh start of it asks anew. Raises `NotTaken`.
    """
    with db.write(client.tenant):
        job, session = session_of(client)
        _, spec = agent_of(job)
        try:
            asked, _ = canonical_value(arguments)
        except canonical.NotCanonical as error:
            raise NotTaken(f"Nothing was changed: {error}") from error
        if trouble := unkeepable(asked) or misfit(asked, CONTINUE.input_schema):
            raise NotTaken(f"Nothing was changed: {trouble}")
        if not runs.has_called(job):
            raise NotTaken("Nothing was changed: this run has made no call yet, so a further one would be the same.")
        changed = asked.get("input", {})
        try:
            intake.changed_input(spec, job.input, changed)
        except intake.CannotStart as error:
            raise NotTaken(f"Nothing was changed: {error}") from error
        kept, note = masking.value(changed), masking.text(asked.get("note", ""))
        if masking.MARKER in (kept, note):
            raise NotTaken("Nothing was changed: what it holds cannot be kept just now. Ask once more in a while.")
        before, continues = session.continues, {"input": kept, "note": note}
        times = before.get("times", 1) if before else 0
        if before != {**continues, "times": times}:
            if times >= MOST_TIMES:
                raise NotTaken(texts.CONTINUES_AS_ASKED.format(MOST_TIMES))
            SESSIONS.update(session.pk, {"continues": {**continues, "times": times + 1}})
        if before is None:
            events.record(job.pk, "session.continues", session=session.number, incarnation=session.incarnation)
    return texts.CONTINUES
