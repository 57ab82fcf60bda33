"""One question as a card: exactly what will run, why it waits, what each answer will do (RULES A3, A9, A10, U7)."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from approvals.queries.alike import Alike, alike_calls
from approvals.queries.compared import Compared, compared
from approvals.queries.deciding_rules import Approval, deciding_rules, question_of, standing
from approvals.queries.same import SameCall, same_calls
from approvals.rules import answers
from approvals.rules.answers import AnswerOption, Stand
from approvals.rules.deciding import DecidingRules, shown_digest
from approvals.rules.readable import in_order, lines, required_of
from base import db, figures, ids
from catalog.models import Tool
from catalog.rules.listing_diff import Change, changed_fields
from jobs.models import Attempt, Call, Hold
from jobs.queries.call_page import AttemptRow, Value, attempt_row, value_of
from jobs.queries.started import WITH, Started, started
from jobs.queries.story import answered
from jobs.queries.trace import name_of
from jobs.queries.twins import Twin, twin_of
from jobs.queries.veil import Veil
from jobs.rules.limits import APPROVAL_LIFE, KEY_LIFE, LONGEST_APPROVAL
from jobs.rules.permits import may_ask_again
from jobs.rules.states import JOB_FINAL, CallState, Effect, HoldKind, HoldState, JobState

SOON: Final = timedelta(hours=1)
STOP_RUNNING: Final = (CallState.RUNNING, CallState.CANCELLING)


@dataclass(frozen=True, slots=True)
class EditRow:
    """One edit of the call's arguments, field by field. `here` says that it was the answer to this question."""

    by: str
    at: datetime
    changes: tuple[Change, ...]
    here: bool


@dataclass(frozen=True, slots=True)
class AgainRow:
    """The call that was made when somebody asked again; `open_hold` is its own question while that is open."""

    call_id: str
    state: CallState
    open_hold: str


@dataclass(frozen=True, slots=True)
class Card:
    """One question, open or closed. `shown` is the digest of what the person is shown, kept with the decision."""

    hold_id: UUID
    shown_id: str
    kind: HoldKind
    state: HoldState
    open: bool
    why: str
    rule: str
    policy: int
    opened_at: datetime
    closed_at: datetime | None
    expires_at: datetime | None
    answer: str
    closed_says: str
    answered_by_id: int | None
    note: str
    name: str
    model_name: str
    function_kind: str
    tainted_by: str
    honours_key: bool
    read_only: bool
    key: str
    key_since: datetime
    may_write_twice: str
    check_text: str
    arguments: Value
    compared: Compared
    same: SameCall | None
    edits: tuple[EditRow, ...]
    call_id: str
    call_state: CallState
    shown_job: str
    job_title: str
    job_state: str
    agent: str
    started: Started
    started_by_id: int | None
    attempts: tuple[AttemptRow, ...]
    alike: Alike
    approvals: tuple[Approval, ...]
    needed: int
    again: AgainRow | None
    may_ask_again: bool
    again_of: str
    twin: Twin | None
    may_extend: bool
    ends_before: datetime | None
    job_over: bool
    options: tuple[AnswerOption, ...]
    shown: str
    rules: DecidingRules
    now: datetime


def card(tenant: UUID, hold_id: UUID, *, role: str = "", reader: int | None = None, whole: bool = False) -> Card | None:
    """The card of a hold of this tenant as a person of `role` reads it; None when there is none."""
    with db.read(tenant) as now:
        hold = (
            Hold.objects.select_related("call__function", *(f"job__{one}" for one in WITH), "answered_by", "edit")
            .filter(pk=hold_id)
            .first()
        )
        if hold is None:
            return None
        call, job = hold.call, hold.job
        attempts = list(Attempt.objects.filter(call=call).select_related("node").order_by("number"))
        veil, tool = Veil.over(role), call.tool_slug
        arguments = veil.value(tool, value_of(call.arguments, call.arguments_body_id, whole=whole))
        running = Call.objects.filter(job=job, state__in=STOP_RUNNING).count()
        first = attempts[0].started_at if attempts else call.created_at
        rules = deciding_rules(tenant)
        needed = rules.needed(call.kind)
        given = standing(hold, hold.binding or None, question_of(hold, rules))
        return Card(
            hold_id=hold.pk,
            shown_id=ids.show(ids.HOLD, hold.pk),
            kind=HoldKind(hold.kind),
            state=HoldState(hold.state),
            open=hold.closed_at is None,
            why=hold.why,
            rule=hold.rule_id,
            policy=hold.policy_number,
            opened_at=hold.opened_at,
            closed_at=hold.closed_at,
            expires_at=hold.expires_at,
            answer=hold.answer,
            closed_says=answered(hold),
            answered_by_id=hold.answered_by_id,
            note=veil.text(tool, hold.note),
            name=name_of(call),
            model_name=call.model_name,
            function_kind=call.kind,
            tainted_by=job.tainted_by,
            honours_key=call.honours_key,
            read_only=call.read_only,
            key=call.key,
            key_since=first,
            may_write_twice=_twice(call, first, now),
            check_text=_check_text(call),
            arguments=arguments,
            compared=_compared(call, arguments, hidden=veil.hides(tool)),
            same=same_calls([call]).get(call.pk) if hold.closed_at is None and call.tool_slug else None,
            edits=() if veil.hides(tool) else _edits(hold),
            call_id=ids.show(ids.CALL, call.pk),
            call_state=CallState(call.state),
            shown_job=ids.show(ids.JOB, job.pk),
            job_title=job.title,
            job_state=job.state,
            agent=job.agent_name,
            started=started(job),
            started_by_id=job.started_by_id,
            attempts=tuple(veil.attempt(tool, attempt_row(one)) for one in attempts),
            alike=alike_calls(call),
            approvals=given,
            needed=needed,
            again=_again(call),
            may_ask_again=hold.kind == HoldKind.APPROVE
            and may_ask_again(call.state, call.reason, attempts=call.attempts_made),
            again_of=ids.show(ids.CALL, call.again_of_id) if call.again_of_id else "",
            twin=twin_of(call),
            may_extend=_may_extend(hold, now),
            ends_before=_ends_before(hold),
            job_over=job.state in JOB_FINAL,
            options=answers.of_one(_stand(hold, running, sum(one.person_id != reader for one in given), needed)),
            shown=shown_digest(hold=hold.pk, kind=hold.kind, binding=hold.binding, arguments=call.args_digest),
            rules=rules,
            now=now,
        )


def _compared(call: Call, arguments: Value, *, hidden: bool) -> Compared:
    names = required_of(call.function.input_schema.get("required")) if call.function else ()
    shown = lines(in_order(arguments.value, names)) if arguments.shown and not hidden else ()
    return compared(call, shown) if shown else Compared(0, (), ())


def _twice(call: Call, first: datetime, now: datetime) -> str:
    """Why running it again may write twice; nothing when its key surely prevents that."""
    if call.read_only:
        return ""
    if not call.honours_key:
        return "This function does not honour the key: running it again may write twice."
    if now - first > KEY_LIFE:
        return f"The key is {figures.duration(now - first)} old, older than 24 h: running it again may write twice."
    return ""


def _check_text(call: Call) -> str:
    """The plugin's own words on how to find out whether it happened."""
    tool = Tool.objects.filter(pk=call.function.tool_id).first() if call.function else None
    text = tool.check_text.get(call.function_name, "") if tool else ""
    return text if isinstance(text, str) else ""


def _edits(hold: Hold) -> tuple[EditRow, ...]:
    """Every edit of the call so far, the newest first; of a closed question only up to itself."""
    found = Hold.objects.filter(call_id=hold.call_id, edit__isnull=False).select_related("edit", "answered_by")
    if hold.closed_at is not None:
        found = found.filter(closed_at__lte=hold.closed_at)
    return tuple(
        EditRow(
            by=one.answered_by.get_username() if one.answered_by else "",
            at=one.closed_at or hold.opened_at,
            changes=changed_fields(one.edit.data["before"], one.edit.data["after"]) if one.edit else (),
            here=one.pk == hold.pk,
        )
        for one in found.order_by("-closed_at")
    )


def _again(call: Call) -> AgainRow | None:
    """The call that took this one's place once it had expired (RULES A8)."""
    found = Call.objects.filter(again_of_id=call.pk).first()
    if found is None:
        return None
    asked = Hold.objects.filter(call_id=found.pk, closed_at__isnull=True).values_list("pk", flat=True).first()
    return AgainRow(ids.show(ids.CALL, found.pk), CallState(found.state), ids.show(ids.HOLD, asked) if asked else "")


def _stand(hold: Hold, running: int, have: int, needed: int) -> Stand:
    acted = hold.call.effect == Effect.MAYBE
    return Stand(HoldKind(hold.kind), running, acted, hold.job.on_unknown, have, needed)


def _may_extend(hold: Hold, now: datetime) -> bool:
    """Whether a day from now is later than when the question expires, and not past a week from its opening."""
    if hold.closed_at is not None or hold.expires_at is None:
        return False
    return min(now + APPROVAL_LIFE, hold.opened_at + LONGEST_APPROVAL) > hold.expires_at


def _ends_before(hold: Hold) -> datetime | None:
    """When its job reaches its limit, if well before the question expires. While only people are waited for: never."""
    limit = None if hold.job.state == JobState.WAITING else hold.job.deadline_at
    expires = hold.expires_at
    return limit if limit is not None and expires is not None and limit < expires - SOON else None
