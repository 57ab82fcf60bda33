"""A person answers: the decision, the audit entry and the call's move are one transaction (RULES A6, A7)."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from approvals.models import Decision
from approvals.rules.deciding import Decider, Question, shown_digest, why_not_decide
from base import db, ids
from jobs.models import Hold
from jobs.operations import holds, listings_changed
from jobs.operations.holds import Answer, BadAnswer, Closed, EntryChanged, Taken
from jobs.rules.states import HoldKind
from tenants.operations import audit
from tenants.queries import settings
from tenants.rules.who import Actor

MOST_NOTE: Final = 4_000  # characters


class MayNot(PermissionError):
    """This person may not give this answer; the message says why, for them."""


@dataclass(frozen=True, slots=True)
class Person:
    """Who answers, from their session: their membership, and how they signed in."""

    decider: Decider
    actor: Actor


def decide(
    *, tenant: UUID, hold_id: UUID, person: Person, answer: str, note: str = "", shown: str = "", channel: str = "page"
) -> Taken | Closed:
    """Take a person's answer to a hold. `Closed` when somebody was first; then nothing moved.

    `note` is the reason of a denial, or the result of a write that happened. `shown` is the digest of the card the
    person saw. Raises `BadAnswer`, `MayNot`, or `Hold.DoesNotExist`.
    """
    try:
        chosen = Answer(answer)
    except ValueError:
        raise BadAnswer(f"{answer[:40]!r} is no answer; it is one of {', '.join(Answer)}") from None
    if len(note) > MOST_NOTE:
        raise BadAnswer(f"the text is {len(note):,} characters long; up to {MOST_NOTE:,} are kept")
    try:
        return _take(tenant, hold_id, person, chosen, note, shown, channel)
    except EntryChanged as void:  # asked anew at once, also when the process that saw the change did not get to it
        listings_changed.ask_anew(tenant=tenant, tool_id=void.tool_id)
        raise


def _take(
    tenant: UUID, hold_id: UUID, person: Person, chosen: Answer, note: str, shown: str, channel: str
) -> Taken | Closed:
    with db.write(tenant, named="answer") as now:
        hold = Hold.objects.select_related("call", "job").get(pk=hold_id)
        question = Question(HoldKind(hold.kind), hold.job.started_by_id, settings.no_self_approval(tenant))
        forbidden = why_not_decide(person.decider, question, chosen)
        if forbidden:
            raise MayNot(forbidden)
        card = shown_digest(hold=hold.pk, kind=hold.kind, binding=hold.binding, arguments=hold.call.args_digest)
        if shown and shown != card:
            raise BadAnswer("what you were shown is not what waits here any more; look again and answer then")
        taken = holds.answer(hold_id=hold_id, answer=chosen, person=person.decider.user_id, note=note.strip())
        if isinstance(taken, Closed):
            return taken
        Decision.objects.create(
            tenant_id=tenant,
            hold_id=hold_id,
            person_id=person.decider.user_id,
            answer=chosen,
            note=note.strip(),
            channel=channel,
            shown=card,
            at=now,
        )
        audit.record(
            person.actor,
            f"hold.{chosen}",
            ids.show(ids.HOLD, hold_id),
            before={"call": ids.show(ids.CALL, hold.call_id), "function": hold.call.model_name, "kind": hold.kind},
            after={"call_state": taken.call_state, "shown": card, "key": hold.call.key},
            note=note.strip(),
        )
    return taken
