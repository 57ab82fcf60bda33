"""A person edits the arguments of a waiting call and approves it as it is then (RULES A9)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from base import canonical, db
from catalog.rules.policy import Allow, Ask, Refuse
from jobs.models import Call, Hold
from jobs.operations import bodies, events, holds, masking, moves, verdicts
from jobs.operations.holds import Answer, BadAnswer, Closed, Held
from jobs.rules.arguments import canonical_value, misfits, unkeepable
from jobs.rules.states import CallState, Effect, HoldKind, HoldState
from jobs.rules.why import Why


class BadArguments(BadAnswer):
    """Arguments that cannot run; `troubles` are (path, what is wrong there). Nothing moved."""

    def __init__(self, *troubles: tuple[str, str]) -> None:
        super().__init__("; ".join(f"{path}: {what}" for path, what in troubles))
        self.troubles = troubles


@dataclass(frozen=True, slots=True)
class Edited:
    """The question is closed by the edit. `asks` is the new one, when the call has to be approved as it is now.

    `binding` is what the editor's own approval is bound to; empty when another rule asks than the one they were shown.
    """

    call_state: CallState
    digest: str
    asks: UUID | None
    binding: str


def read(arguments: Any, held: Held) -> tuple[dict[str, Any], str]:
    """The canonical arguments that a person typed for this call, JSON text or not, and their digest.

    Raises `BadArguments`, or `BadAnswer` when the call cannot be edited.
    """
    call = held.call
    if call.effect == Effect.MAYBE:
        raise BadAnswer("an earlier attempt may have acted with the arguments it had, so they are not changed any more")
    try:
        value, digest = canonical_value(arguments)
        sent, secret = masking.typed(call, value)
        if sent != value:
            value, digest = canonical_value(sent)
    except canonical.NotCanonical as error:
        raise BadArguments((error.path, error.what)) from error
    except masking.CannotMask as error:
        raise BadAnswer(f"they cannot be kept: {error}") from error
    if not isinstance(value, dict):
        raise BadArguments(("$", "arguments are a JSON object: they begin with {"))
    if trouble := unkeepable(value):
        raise BadArguments(("$", trouble))
    if call.function is not None and (wrong := misfits(value, call.function.input_schema)):
        raise BadArguments(*((path, masking.told(what, value, secret)) for path, what in wrong))
    if digest == call.args_digest:
        raise BadAnswer("nothing is different: approve it as it is, or change an argument")
    return value, digest


def judged(held: Held, value: dict[str, Any], digest: str) -> verdicts.Ruling:
    """What the policy says of the call with other arguments, which it has from now on in memory.

    Raises `BadAnswer` when it must not run with them.
    """
    call = held.call
    call.arguments, call.arguments_body_id, call.args_digest = value, None, digest
    ruling = verdicts.rule_on(call, held.job)
    if isinstance(ruling, verdicts.Switched):
        raise BadAnswer(f"a kill switch is on ({ruling.detail}); turn it off first, or answer otherwise")
    if isinstance(ruling.verdict, Refuse):
        raise BadAnswer(f"the policy refuses the call with these arguments ({ruling.why})")
    return ruling


def edit(*, hold_id: UUID, arguments: Any, person: int, alone: bool) -> Edited | Closed:
    """Put other arguments in the place of those that wait, and approve them. Demands an open write.

    They run when the policy allows them, or asks by the very rule that the person was shown and they decide `alone`.
    Else the call has to be approved as it is now, by a new question. Raises `BadAnswer`.
    """
    now, held = db.must_write(), holds.held(hold_id)
    if (before := holds.closed(held, Answer.EDIT)) is not None:
        return before
    holds.approves(held, Answer.EDIT)
    job, call, hold = held.job, held.call, held.hold
    was, was_digest = bodies.kept_of(call), call.args_digest
    value, digest = read(arguments, held)
    secret = masking.marked(value, call.function) if call.function is not None else ()
    kept = masking.keep(call.pk, value, secret)
    ruling = judged(held, value, digest)
    rule = ruling.verdict.rule
    same = isinstance(ruling.verdict, Ask) and (rule.id, rule.digest) == (hold.rule_id, hold.rule_digest)
    runs = isinstance(ruling.verdict, Allow) or (same and alone)
    approves = ruling.binding if same else ""
    moves.hold(
        hold,
        HoldState.ANSWERED,
        now=now,
        answer=Answer.EDIT,
        answered_by_id=person,
        approves=approves if runs else "",
        edit_id=bodies.keep({"before": was, "after": kept}),
    )
    events.record(job.pk, "call.edited", call=call.pk, by=person, before=was_digest, after=digest)
    fields = _fields(call, kept, was, ruling)
    asks = None
    if runs:
        holds.queue(call, reason=Why.APPROVED, now=now, **fields)
    else:
        asks = _ask(held, ruling, now, fields)
    events.judge_later(job.pk)
    return Edited(CallState(call.state), digest, asks, approves)


def _ask(held: Held, ruling: verdicts.Ruling, now: datetime, fields: dict[str, Any]) -> UUID:
    call = held.call
    moves.call(call, CallState.HELD, reason=Why.EDITED, now=now, **fields)
    holds.open_approval(call, HoldKind(held.hold.kind), ruling, now=now)
    return Hold.objects.values_list("pk", flat=True).get(call_id=call.pk, closed_at__isnull=True)


def _fields(call: Call, value: dict[str, Any], was: Any, ruling: verdicts.Ruling) -> dict[str, Any]:
    kept, body = bodies.keep_if_large(value)
    rule = ruling.verdict.rule
    first = {} if call.edited_from_id else {"edited_from_id": bodies.keep(was)}
    return {
        "arguments": kept,
        "arguments_body_id": body,
        "args_digest": call.args_digest,
        "rule_id": rule.id,
        "rule_digest": rule.digest,
        "policy_number": ruling.policy,
        **first,
        **verdicts.word_of(call),
    }
