"""A person answers: the decision, the audit entry and the call's move are one transaction (RULES A6, A7, A10).

This is the one function that decides, whatever page an answer comes from.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from approvals.models import Decision
from approvals.queries.deciding_rules import deciding_rules, question_of, standing
from approvals.rules.deciding import Decider, DecidingRules, Question, shown_digest, why_not_decide
from base import db, ids
from jobs.operations import editing, holds, listings_changed
from jobs.operations.holds import Answer, BadAnswer, Closed, EntryChanged, Held, Taken
from jobs.queries.started import started
from tenants.operations import audit
from tenants.rules.who import Actor

MOST_NOTE: Final = 4_000  # characters
BY_EDIT: Final = "edit"  # the channel of an approval that an editor gives with the edit


class MayNot(PermissionError):
    """This person may not give this answer; the message says why, for them."""


@dataclass(frozen=True, slots=True)
class Person:
    """Who answers, from their session: their membership, and how they signed in."""

    decider: Decider
    actor: Actor


@dataclass(frozen=True, slots=True)
class Counted:
    """The approval counts, and others must approve too: the question stays open."""

    have: int
    needed: int


@dataclass(frozen=True, slots=True)
class AsksAnew:
    """The arguments are edited, and the call has to be approved as it is now, by this new question.

    `have` counts the editor's own approval, where the same rule asks.
    """

    hold_id: UUID
    have: int
    needed: int


type Decided = Taken | Counted | AsksAnew | Closed


@dataclass(frozen=True, slots=True)
class _Given:
    """One answer as it came."""

    person: Person
    answer: Answer
    note: str
    channel: str
    card: str  # the digest of what the person was shown
    arguments: Any


def decide(
    *,
    tenant: UUID,
    hold_id: UUID,
    person: Person,
    answer: str,
    note: str = "",
    shown: str = "",
    channel: str = "page",
    arguments: Any = None,
) -> Decided:
    """Take a person's answer to a hold. `Closed` when somebody was first; then nothing moved.

    `note` is the reason of a denial, or the result of a write that happened; `arguments` are those of an edit. `shown`
    is the digest of the card the person saw. Raises `BadAnswer`, `MayNot`, or `Hold.DoesNotExist`.
    """
    try:
        chosen = Answer(answer)
    except ValueError:
        raise BadAnswer(f"{answer[:40]!r} is no answer; it is one of {', '.join(Answer)}") from None
    if len(note) > MOST_NOTE:
        raise BadAnswer(f"the text is {len(note):,} characters long; up to {MOST_NOTE:,} are kept")
    try:
        with db.write(tenant, named="answer") as now:
            held = holds.held(hold_id)
            given = _Given(person, chosen, note.strip(), channel, card_of(held), arguments)
            return _take(held, given, deciding_rules(tenant), shown, now)
    except EntryChanged as void:  # asked anew at once, also when the process that saw the change did not get to it
        listings_changed.ask_anew(tenant=tenant, tool_id=void.tool_id)
        raise


def card_of(held: Held) -> str:
    """The digest of what a card of this question shows now."""
    hold = held.hold
    return shown_digest(hold=hold.pk, kind=hold.kind, binding=hold.binding, arguments=held.call.args_digest)


def _take(held: Held, given: _Given, rules: DecidingRules, shown: str, now: datetime) -> Decided:
    hold, decider = held.hold, given.person.decider
    hold.call, hold.job = held.call, held.job
    question = question_of(hold, rules)
    forbidden = why_not_decide(decider, question, given.answer)
    if forbidden:
        raise MayNot(forbidden)
    if (before := holds.closed(held, given.answer)) is not None:
        return before
    if shown and shown != given.card:
        raise BadAnswer("what you were shown is not what waits here any more; look again and answer then")
    if given.answer is Answer.EDIT:
        return _edit(held, given, rules.needed(held.call.kind), now)
    binding = holds.approves(held, given.answer)
    kind = held.call.kind
    needed = rules.needed(kind) if binding else 1
    have = _have(held, binding, question, decider) if needed > 1 else 1
    if have < needed:
        _note(held, given, binding, now, after={"approved": f"{have} of {needed}"})
        holds.counted(held, person=decider.user_id, have=have, needed=needed)
        return Counted(have, needed)
    taken = holds.answer(hold_id=hold.pk, answer=given.answer, person=decider.user_id, note=given.note)
    if isinstance(taken, Closed):
        return taken
    approved = {"approved": f"{have} of {needed}"} if needed > 1 else {}
    _note(held, given, binding, now, after={"call_state": taken.call_state, **approved})
    return taken


def _have(held: Held, binding: str, question: Question, decider: Decider) -> int:
    """How many people have approved this, with the one who does so now."""
    others = {one.person_id for one in standing(held.hold, binding, question)} - {decider.user_id}
    return len(others) + 1


def _edit(held: Held, given: _Given, needed: int, now: datetime) -> Decided:
    """An edit voids the approvals given before: they were of another question (RULES A9)."""
    person, before = given.person.decider.user_id, held.call.args_digest
    made = editing.edit(hold_id=held.hold.pk, arguments=given.arguments, person=person, alone=needed == 1)
    if isinstance(made, Closed):
        return made
    change = {"call_state": made.call_state, "arguments": made.digest}
    _note(held, given, "" if made.asks else made.binding, now, before={"arguments": before}, after=change)
    if made.asks is None:
        return Taken(made.call_state)
    if not made.binding:
        return AsksAnew(made.asks, 0, needed)
    asked = holds.held(made.asks)
    own = _Given(given.person, Answer.APPROVE, "", BY_EDIT, card_of(asked), None)
    _note(asked, own, made.binding, now, after={"approved": f"1 of {needed}"})
    holds.counted(asked, person=person, have=1, needed=needed)
    return AsksAnew(made.asks, 1, needed)


def _note(
    held: Held,
    given: _Given,
    binding: str,
    now: datetime,
    *,
    after: dict[str, Any],
    before: dict[str, Any] | None = None,
) -> None:
    """Keep who answered what, and what they were shown. A person has one decision on a question (`Decision`)."""
    hold, call, person = held.hold, held.call, given.person.decider.user_id
    if not Decision.objects.filter(hold_id=hold.pk, person_id=person).exists():
        Decision.objects.create(
            tenant_id=hold.tenant_id,
            hold_id=hold.pk,
            person_id=person,
            answer=given.answer,
            note=given.note,
            channel=given.channel,
            binding=binding,
            shown=given.card,
            at=now,
        )
    about = {"call": ids.show(ids.CALL, call.pk), "function": call.model_name, "kind": hold.kind}
    about["started_by"] = started(call.job).in_words
    audit.record(
        given.person.actor,
        f"hold.{given.answer}",
        ids.show(ids.HOLD, hold.pk),
        before={**about, **(before or {})},
        after={**after, "shown": given.card, "key": call.key},
        note=given.note,
    )
