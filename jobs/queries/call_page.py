"""Everything about one call: arguments, result, verdict, key, attempts with their evidence, and who answered what."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from base import db, ids
from catalog.rules.listing_diff import Change, changed_fields
from catalog.rules.manifest import RESERVED_TOOL
from jobs.models import Attempt, Body, Call, Hold
from jobs.queries.standstill import Standstill
from jobs.queries.story import Says, answered, says_of
from jobs.queries.trace import name_of
from jobs.queries.twins import Twin, twin_of
from jobs.queries.veil import Veil
from jobs.rules.limits import MAX_ATTEMPTS
from jobs.rules.progress import share_done
from jobs.rules.resume import sentence as how_it_began
from jobs.rules.states import CALL_FINAL, AttemptState, CallState, HoldKind, HoldState
from jobs.rules.why import sentence

INLINE: int = 64 * 1024  # bytes of a body that is shown without being asked for


@dataclass(frozen=True, slots=True)
class Value:
    """A value to show, or only its size when it is too large to show unasked."""

    value: Any
    size: int
    shown: bool


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One attempt with its evidence. `done` is the share of its progress, 0 to 100, None without a total.

    `was` is the share that earlier attempts had done where it went on. `began` says where that is, or why it started
    over.
    """

    shown_id: str
    number: int
    state: AttemptState
    why: str
    evidence: str
    wire: str
    node: str
    started_at: datetime
    ended_at: datetime | None
    own_limit: float
    limit_at: datetime
    progress: str
    done: float | None
    was: float
    began: str
    retry_after: float | None
    stop_requested_at: datetime | None
    end_known: bool
    late: object


@dataclass(frozen=True, slots=True)
class HoldRow:
    """One question that was asked about the call."""

    shown_id: str
    kind: HoldKind
    state: HoldState
    why: str
    opened_at: datetime
    closed_at: datetime | None
    says: str
    note: str
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class CallPage:
    """One call."""

    shown_id: str
    job_id: UUID
    shown_job: str
    job_title: str
    agent: str
    name: str
    model_name: str
    asked_through: str
    built_in: bool
    kind: str
    read_only: bool
    retry_safe: bool
    honours_key: bool
    state: CallState
    effect: str
    why: str
    detail: str
    says: Says
    rule: str
    policy: int
    key: str
    run_number: int
    activity: int
    most_attempts: int
    arguments: Value
    result: Value
    result_text: str
    created_at: datetime
    ended_at: datetime | None
    attempts: tuple[AttemptRow, ...]
    holds: tuple[HoldRow, ...]
    open_hold: str | None
    again_of: str
    twin: Twin | None
    over: bool
    now: datetime


def call_page(tenant: UUID, call_id: UUID, *, role: str = "", whole: str = "") -> CallPage | None:
    """One call of the tenant as `role` may see it; `whole` names a large value to load after all (`arguments` or
    `result`)."""
    with db.read(tenant) as now:
        call = Call.objects.select_related("job", "function__tool", "function__listing").filter(pk=call_id).first()
        if call is None:
            return None
        attempts = list(Attempt.objects.filter(call=call).select_related("node").order_by("number"))
        holds = list(Hold.objects.filter(call=call).select_related("answered_by", "edit").order_by("opened_at"))
        veil, tool = Veil.over(role), call.tool_slug
        return CallPage(
            shown_id=ids.show(ids.CALL, call.pk),
            job_id=call.job_id,
            shown_job=ids.show(ids.JOB, call.job_id),
            job_title=call.job.title,
            agent=call.job.agent_name,
            name=name_of(call),
            model_name=call.model_name,
            asked_through=call.asked_through.replace("__", ".", 1),
            built_in=call.tool_slug == RESERVED_TOOL,
            kind=call.kind,
            read_only=call.read_only,
            retry_safe=call.retry_safe,
            honours_key=call.honours_key,
            state=CallState(call.state),
            effect=call.effect,
            why=sentence(call.reason) if call.reason else "",
            detail=veil.text(tool, call.detail),
            says=veil.says(call, says_of(call, attempts, holds, Standstill(call.job, now))),
            rule=call.rule_id,
            policy=call.policy_number,
            key=call.key,
            run_number=call.run_number,
            activity=call.activity,
            most_attempts=MAX_ATTEMPTS if call.retry_safe else 1,
            arguments=veil.value(tool, value_of(call.arguments, call.arguments_body_id, whole=whole == "arguments")),
            result=veil.value(tool, value_of(None, call.result_body_id, whole=whole == "result")),
            result_text=veil.text(tool, call.result_text),
            created_at=call.created_at,
            ended_at=call.ended_at,
            attempts=tuple(veil.attempt(tool, attempt_row(one)) for one in attempts),
            holds=tuple(veil.hold(tool, _hold_row(one)) for one in holds),
            open_hold=next((ids.show(ids.HOLD, one.pk) for one in holds if one.closed_at is None), None),
            again_of=ids.show(ids.CALL, call.again_of_id) if call.again_of_id else "",
            twin=twin_of(call),
            over=call.state in CALL_FINAL,
            now=now,
        )


def value_of(small: Any, body_id: UUID | None, *, whole: bool) -> Value:
    """A kept value: as it is when small, only its size when it is a large body nobody asked for."""
    if body_id is None:
        return Value(small, 0, shown=True)
    size = Body.objects.values_list("size", flat=True).get(pk=body_id)
    if size > INLINE and not whole:
        return Value(None, size, shown=False)
    return Value(Body.objects.get(pk=body_id).data, size, shown=True)


def attempt_row(one: Attempt) -> AttemptRow:
    """An attempt as it is shown; its node is loaded."""
    wire = one.wire or {}
    return AttemptRow(
        shown_id=ids.show(ids.ATTEMPT, one.pk),
        number=one.number,
        state=AttemptState(one.state),
        why=sentence(one.reason) if one.reason else "",
        evidence=str(wire.get("detail", "")),
        wire=_wire(wire),
        node=one.node.name,
        started_at=one.started_at,
        ended_at=one.ended_at,
        own_limit=one.own_limit,
        limit_at=one.limit_at,
        progress=_progress(one),
        done=share_done(one.progress, one.total) if one.progress is not None and one.total else None,
        was=share_done(one.resumed_from, one.resumed_of),
        began=how_it_began(one.resumed_from, one.resumed_of, one.started_over_because),
        retry_after=one.retry_after,
        stop_requested_at=one.stop_requested_at,
        end_known=one.end_known,
        late=one.late,
    )


def _wire(wire: dict[str, Any]) -> str:
    if not wire:
        return ""
    if not wire.get("went_out"):
        return "nothing went out" if wire.get("connected") else "not connected, nothing went out"
    status = f", status {wire['status']}" if wire.get("status") else ""
    ended = {"none": "no answer", "complete": "a complete answer", "too_large": "an answer too large to keep"}
    return f"the request went out{status}, {ended.get(str(wire.get('ended')), 'answer ' + str(wire.get('ended', '')))}"


def _progress(one: Attempt) -> str:
    if one.progress is None:
        return ""
    return f"progress {one.progress:g} of {one.total:g}" if one.total else f"progress {one.progress:g}"


def _hold_row(hold: Hold) -> HoldRow:
    return HoldRow(
        shown_id=ids.show(ids.HOLD, hold.pk),
        kind=HoldKind(hold.kind),
        state=HoldState(hold.state),
        why=hold.why,
        opened_at=hold.opened_at,
        closed_at=hold.closed_at,
        says=answered(hold),
        note=hold.note,
        changes=changed_fields(hold.edit.data["before"], hold.edit.data["after"]) if hold.edit else (),
    )
