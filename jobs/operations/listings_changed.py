"""A tool's server describes a function otherwise: what was asked or allowed by the old entry is void (RULES C3, A4).

The same when a person takes back the approval that made an entry's word count.

A waiting question is withdrawn and asked anew by the entry as it is now; a call in the queue is judged by it when it
is claimed. One that is being retried keeps its old entry, which the node refuses to send.
"""

from datetime import datetime
from typing import Any, assert_never
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet

from base import db
from catalog.models import Function
from catalog.queries.functions import listed_now
from catalog.rules.policy import Allow, Ask, Refuse
from jobs.models import Call, Hold, Job
from jobs.operations import bodies, events, holds, masking, moves, verdicts
from jobs.queries import locks
from jobs.rules.arguments import misfit
from jobs.rules.states import JOB_FINAL, CallState, Effect, HoldKind, HoldState, JobState
from jobs.rules.why import Why, sentence


def ask_anew(*, tenant: UUID, tool_id: UUID) -> int:
    """Take up every waiting call of a tool whose entry is another by now, job by job; returns how many jobs.

    It may be repeated: what was taken up is not taken up again.
    """
    with db.read(tenant):
        jobs = list(_stale(tool_id).order_by("job_id").values_list("job_id", flat=True).distinct())
    return sum(_in_job(tenant, job_id, _stale(tool_id), Why.ENTRY_CHANGED) for job_id in jobs)


def word_withdrawn(*, tenant: UUID, tool: str, function: str) -> int:
    """Take up every waiting call of a function whose entry's approval was taken back; returns how many jobs.

    A waiting question showed what the function was believed to be, so it is void and asked anew by what is believed
    now. What a person had already approved of a call in the queue is void by its binding (`verdicts`).
    """
    waiting = Call.objects.filter(state__in=[CallState.HELD, CallState.QUEUED], tool_slug=tool, function_name=function)
    with db.read(tenant):
        jobs = list(waiting.order_by("job_id").values_list("job_id", flat=True).distinct())
    return sum(_in_job(tenant, job_id, waiting, Why.WORD_WITHDRAWN) for job_id in jobs)


def _stale(tool_id: UUID) -> QuerySet[Call]:
    """Held and queued calls whose entry is not what the tool's newest listing has."""
    same = Function.objects.filter(
        listing__current=True,
        tool_id=OuterRef("function__tool_id"),
        name=OuterRef("function__name"),
        entry_digest=OuterRef("entry_digest"),
    )
    live = Call.objects.filter(state__in=[CallState.HELD, CallState.QUEUED], function__tool_id=tool_id)
    return live.filter(~Exists(same))


def _in_job(tenant: UUID, job_id: UUID, void: QuerySet[Call], why: Why) -> bool:
    with db.write(tenant) as now:
        locks.gate_shared()
        job = locks.job(job_id)
        if job is None or job.state in JOB_FINAL or job.state == JobState.CANCELLING:
            return False
        found = list(void.filter(job_id=job_id).order_by("pk").values_list("pk", flat=True))
        for call_id in found:
            call = locks.call(call_id)
            if call is not None and call.state in (CallState.HELD, CallState.QUEUED):
                _take_up(call, job, why, now)
        events.judge_later(job.pk)
        return bool(found)


def _take_up(call: Call, job: Job, why: Why, now: datetime) -> None:
    held = Hold.objects.select_for_update(no_key=True).filter(call_id=call.pk, closed_at__isnull=True).first()
    if held is not None:
        moves.hold(held, HoldState.WITHDRAWN, now=now)
    entry = listed_now(call.function) if call.function else None
    if call.effect == Effect.MAYBE:
        holds.nobody_knows(call, job, reason=why, evidence=f"It may have acted before. {sentence(why)}", now=now)
    elif entry is None:
        moves.call(call, CallState.REFUSED, reason=Why.TOOL_GONE, now=now)
    elif trouble := _misfit(call, entry):
        moves.call(call, CallState.REFUSED, reason=Why.ENTRY_CHANGED, now=now, detail=f"its arguments: {trouble}")
    else:
        call.function, call.entry_digest = entry, entry.entry_digest
        _judge(call, job, HoldKind(held.kind) if held is not None else None, why, now)


def _misfit(call: Call, entry: Function) -> str:
    """Where a call's arguments do not fit the entry as it is now, without what either entry marks as secret."""
    arguments = bodies.arguments_of(call)
    both = [one for one in (call.function, entry) if one is not None]
    secret = tuple(path for one in both for path in masking.marked(arguments, one))
    return masking.told(misfit(arguments, entry.input_schema), arguments, secret)


def _judge(call: Call, job: Job, asked: HoldKind | None, why: Why, now: datetime) -> None:
    """Ask anew by the entry as it is now; a call in the queue is judged when it is claimed."""
    ruling = verdicts.rule_on(call, job)
    entry: dict[str, Any] = {"function": call.function, "entry_digest": call.entry_digest, **verdicts.word_of(call)}
    events.record(job.pk, f"call.{why}", call=call.pk, entry=call.entry_digest)
    if asked is None:
        call.save(update_fields=[*entry])
        return
    if isinstance(ruling, verdicts.Switched):
        moves.call(call, CallState.CANCELED, reason=ruling.reason, now=now, detail=ruling.detail, **entry)
        return
    rule = ruling.verdict.rule
    entry |= {"rule_id": rule.id, "rule_digest": rule.digest, "policy_number": ruling.policy}
    match ruling.verdict:
        case Ask():
            moves.call(call, CallState.HELD, reason=why, now=now, **entry)
            holds.open_approval(call, asked, ruling, now=now)
        case Allow():
            holds.queue(call, reason=why, now=now, **entry)
        case Refuse():
            moves.call(call, CallState.REFUSED, reason=Why.POLICY_REFUSES, now=now, detail=ruling.why, **entry)
        case never:
            assert_never(never)
