"""One attempt of one call: claimed, made by a node, settled (DESIGN 3).

Intent, commit, act, outcome: nothing is sent inside a transaction, and a crash in between leaves an open attempt
that the sweep settles by rule.
"""

from datetime import datetime, timedelta
from typing import Any, Final, assert_never
from uuid import UUID

from base import db
from catalog.models import Transport
from catalog.operations import listings, sign_ins
from catalog.queries import functions
from catalog.rules.policy import Allow, Ask, Wait
from catalog.rules.servers import ServerSpec
from jobs import wake
from jobs.models import END_STATES, Attempt, Call, Job
from jobs.operations import bodies, events, holds, masking, moves, resuming, verdicts
from jobs.operations.servers import server_of
from jobs.queries import locks, open_work
from jobs.rules import reasons
from jobs.rules.limits import MAX_OPENINGS, backoff, own_limit
from jobs.rules.orders import End, Order, Outcome, Result
from jobs.rules.reasons import Reason
from jobs.rules.retry import AskPerson, Facts, Finish, RetryAt, next_step
from jobs.rules.states import CallState, Effect, HoldKind, JobState
from jobs.rules.why import RATE_FULL, SENTENCES, Why

CHANGED: Final = (Reason.LISTING_CHANGED, Reason.FUNCTION_GONE)  # the session lists something else than what is kept


def server_needed(*, tenant: UUID, call_id: UUID) -> ServerSpec | None:
    """The server to have ready before this call is claimed, or None when it is not due (MACHINES 3)."""
    with db.read(tenant) as now:
        due = open_work.due_call(call_id, now)
        return server_of(functions.entry(due.function_id).tool, due.job_id) if due is not None else None


def start(*, tenant: UUID, call_id: UUID, node_id: UUID, attempt_id: UUID) -> Order | None:
    """Claim a call: judge it once more, and open its attempt. None when it may not or need not run now.

    The common case holds the job shared, so that calls of one job are claimed side by side. A verdict that moves the
    job as well is reached again holding it alone.
    """
    with db.write(tenant, named="start") as now:
        order = _claim(call_id, node_id, attempt_id, now, alone=False)
    if order is _AGAIN_ALONE:
        with db.write(tenant, named="start") as now:
            order = _claim(call_id, node_id, attempt_id, now, alone=True)
    return order if isinstance(order, Order) else None


_AGAIN_ALONE: Final = object()


def _claim(call_id: UUID, node_id: UUID, attempt_id: UUID, now: datetime, *, alone: bool) -> Order | object | None:
    locks.gate_shared()
    job_id = open_work.job_of_call(call_id)
    if job_id is None:
        return None
    job = locks.job(job_id) if alone else locks.job_shared(job_id)
    call = locks.call_for_node(call_id, node_id)
    if job is None or call is None or call.due_at is None or call.due_at > now or job.state != JobState.RUNNING:
        return None
    if call.function_id is None:  # an entry is never deleted; a call without one never got here
        return None
    function = call.function = functions.entry(call.function_id)
    if function.tool.transport == Transport.SANDBOX:
        if not alone:
            return _AGAIN_ALONE
        if _server_is_taken(call):
            return None
    ruling = verdicts.rule_on(call, job, claiming=True)
    if isinstance(ruling, verdicts.Ruling):
        if ruling.paused:
            return None
        may_run = isinstance(ruling.verdict, Allow) or (
            isinstance(ruling.verdict, Ask) and verdicts.approved(call, ruling)
        )
        if may_run and ruling.wait is not None:
            _wait(call, ruling.wait)
            return None
        if may_run and not _may_write_twice(call, now):
            return _open_attempt(call, job, node_id, attempt_id, ruling, now)
        if may_run and alone:
            forgotten = SENTENCES[Why.OLD_KEY]
            holds.nobody_knows(call, job, reason=Why.OLD_KEY, evidence=forgotten, now=now, **verdicts.word_of(call))
            events.judge_later(job.pk)
            return None
    if not alone:
        return _AGAIN_ALONE
    _stop_before_start(call, job, ruling, now)
    events.judge_later(job.pk)
    return None


def _wait(call: Call, wait: Wait) -> None:
    """A call that may run stays due later, as a rate of the policy is full: it is judged again then (RULES A2, B6)."""
    detail = f"{RATE_FULL}rule “{wait.rule.title}”, {wait.rule.why}."
    if call.detail != detail:
        events.record(call.job_id, "call.waits", call=call.pk, why="rate", rule=wait.rule.id)
    call.due_at, call.detail = wait.until, detail
    call.save(update_fields=["due_at", "detail"])


def _may_write_twice(call: Call, now: datetime) -> bool:
    """Whether a retry has waited for so long, for want of a node or paused, that its key may be forgotten (RULES U7).

    A person who ran it again or approved it was shown the key's age; that call is queued.
    """
    written = call.state == CallState.RETRYING and call.effect == Effect.MAYBE and not call.read_only
    return written and open_work.key_is_old(call.pk, now)


def _server_is_taken(call: Call) -> bool:
    """A sandboxed tool makes one call of a job at a time, on whatever node; the caller holds the job alone."""
    assert call.function is not None  # noqa: S101 - `_claim` has looked
    same = Attempt.objects.filter(job_id=call.job_id, call__function__tool_id=call.function.tool_id)
    return same.filter(ended_at__isnull=True).exists()


def _open_attempt(
    call: Call, job: Job, node_id: UUID, attempt_id: UUID, ruling: verdicts.Ruling, now: datetime
) -> Order:
    assert call.function is not None  # noqa: S101 - `_claim` has looked
    tool = call.function.tool
    rule = ruling.verdict.rule
    attempt = Attempt(
        pk=attempt_id,
        tenant_id=call.tenant_id,
        call=call,
        job_id=job.pk,
        number=call.attempts_made + 1,
        node_id=node_id,
        started_at=now,
        limit_at=now + timedelta(seconds=tool.timeout),
        own_limit=own_limit(tool.timeout),
    )
    server = server_of(tool, job.pk)
    resume = resuming.prepare(attempt, call, server)
    moves.open_attempt(attempt)
    moves.call(
        call,
        CallState.RUNNING,
        reason="",
        now=now,
        attempts_made=attempt.number,
        openings_failed=0,
        rule_id=rule.id,
        rule_digest=rule.digest,
        policy_number=ruling.policy,
        **verdicts.word_of(call),
    )
    return Order(
        tenant=call.tenant_id,
        job_id=job.pk,
        call_id=call.pk,
        attempt_id=attempt.pk,
        number=attempt.number,
        server=server,
        function=call.function_name,
        arguments=bodies.arguments_of(call),
        key=call.key,
        entry_digest=call.entry_digest,
        retry_safe=call.retry_safe,
        timeout=tool.timeout,
        own_limit=attempt.own_limit,
        cleanup=tool.cleanup,
        resume=resume,
    )


def _stop_before_start(call: Call, job: Job, ruling: verdicts.Ruling | verdicts.Switched, now: datetime) -> None:
    """A due call that may not run now: held, refused, stopped or, when it may have acted before, a question."""
    again = call.attempts_made > 0
    if isinstance(ruling, verdicts.Switched):
        if ruling.reason is Why.TOOL_GONE:
            _tool_gone(call, job, ruling.detail, now)
        else:
            moves.call(call, CallState.CANCELED, reason=ruling.reason, now=now, detail=ruling.detail)
        return
    rule = ruling.verdict.rule
    judged: dict[str, Any] = {"rule_id": rule.id, "rule_digest": rule.digest, "policy_number": ruling.policy}
    judged |= verdicts.word_of(call)
    if isinstance(ruling.verdict, Ask):
        reason = Why.POLICY_ASKS_AGAIN if call.holds.exclude(approves="").exists() else Why.POLICY_ASKS
        moves.call(call, CallState.HELD, reason=reason, now=now, **judged)
        holds.open_approval(call, HoldKind.RETRY if again else HoldKind.APPROVE, ruling, now=now)
    elif call.effect == Effect.MAYBE:
        acted = f"It may have acted before the policy refused its next attempt ({ruling.why})."
        holds.nobody_knows(call, job, reason=Why.POLICY_REFUSES, evidence=acted, now=now, **judged)
    elif call.state == CallState.RETRYING:
        moves.call(call, CallState.FAILED, reason=Why.POLICY_REFUSES, now=now, detail=ruling.why, **judged)
    else:
        moves.call(call, CallState.REFUSED, reason=Why.POLICY_REFUSES, now=now, detail=ruling.why, **judged)


def _tool_gone(call: Call, job: Job, why: str, now: datetime) -> None:
    """Nothing starts of a plugin that was removed; whether an earlier attempt acted is still worth knowing."""
    if call.effect == Effect.MAYBE:
        evidence = f"It may have acted before {why}."
        holds.nobody_knows(call, job, reason=Why.TOOL_GONE, evidence=evidence, now=now)
    else:
        ended = CallState.FAILED if call.state == CallState.RETRYING else CallState.REFUSED
        moves.call(call, ended, reason=Why.TOOL_GONE, now=now, detail=why)


def opening_failed(*, tenant: UUID, call_id: UUID, why: str, jitter: float, status: int | None = None) -> None:
    """A server would not start for a due call: it stays queued with the reason; after three failures it is FAILED,
    not made (MACHINES 3). `status` is the HTTP status that a remote server refused it with."""
    with db.write(tenant) as now:
        found = Call.objects.filter(pk=call_id).values_list("job_id", flat=True).first()
        job = locks.job(found) if found else None
        call = locks.call_for_claim(call_id)
        if job is None or call is None:
            return
        if status == sign_ins.TOKEN_REFUSED and call.function is not None:
            sign_ins.refused(call.function.tool, sent_at=now)
        failed = call.openings_failed + 1
        if failed < MAX_OPENINGS:
            call.openings_failed, call.detail = failed, why[:500]
            call.due_at = backoff(now, failures=failed, jitter=jitter)
            call.save(update_fields=["openings_failed", "detail", "due_at"])
            events.record(job.pk, "call.waits", call=call.pk, why="server_starting", failed=failed)
            return
        _not_made(call, job, why, now)
        events.judge_later(job.pk)


def _not_made(call: Call, job: Job, why: str, now: datetime) -> None:
    if call.effect == Effect.MAYBE:
        acted = f"It may have acted before, and its server does not start any more: {why[:500]}"
        holds.nobody_knows(call, job, reason=Why.WOULD_NOT_START, evidence=acted, now=now)
    else:
        moves.call(call, CallState.FAILED, reason=Why.WOULD_NOT_START, now=now, detail=why[:500])


def settle(*, tenant: UUID, attempt_id: UUID, outcome: Outcome, jitter: float) -> bool:
    """Close an attempt and move its call on. A late outcome changes nothing and is kept as evidence (RULES L9).

    `jitter` is a die in [0, 1). False when the attempt was closed before.
    """
    with db.write(tenant, named="settle") as now:
        found = open_work.job_and_call_of(attempt_id)
        if found is None:
            return False
        job, call, attempt = locks.job(found[0]), locks.call(found[1]), locks.attempt(attempt_id)
        assert job is not None and call is not None and attempt is not None  # noqa: S101 - rows are never deleted
        outcome = masking.outcome(call, outcome)
        if not moves.close_attempt(attempt, outcome, now=now):
            # an outcome that is settled twice, since its first commit was not seen, is no late reply
            if attempt.state != END_STATES[outcome.end]:
                _keep_as_evidence(attempt, outcome.result, now)
            return False
        if outcome.wire.status == sign_ins.TOKEN_REFUSED and call.function is not None:
            sign_ins.refused(call.function.tool, sent_at=attempt.started_at)
        match next_step(_facts(call, outcome, now), outcome, now=now, jitter=jitter):
            case RetryAt(at, effect):
                moves.call(call, CallState.RETRYING, reason=outcome.reason, now=now, due_at=at, effect=effect)
                if at <= now:
                    db.after_commit(lambda: wake.call(tenant=tenant, call_id=call.pk))
            case AskPerson(effect):
                evidence = reasons.sentence(outcome.reason)
                holds.nobody_knows(call, job, reason=outcome.reason, evidence=evidence, now=now, effect=effect)
            case Finish(state, effect, reason):
                text, body = bodies.result(outcome.result)
                detail = outcome.wire.detail or reasons.sentence(outcome.reason)
                moves.call(
                    call,
                    state,
                    reason=reason,
                    now=now,
                    effect=effect,
                    detail=detail,
                    result_text=text,
                    result_body_id=body,
                )
            case never:
                assert_never(never)
        if outcome.reason in CHANGED and call.function is not None:
            listings.measure_soon(call.function.tool_id)
        events.judge_later(job.pk)
    return True


def _facts(call: Call, outcome: Outcome, now: datetime) -> Facts:
    may_retry = call.retry_safe and outcome.end is not End.ANSWERED
    return Facts(
        state=CallState(call.state),
        read_only=call.read_only,
        retry_safe=call.retry_safe,
        honours_key=call.honours_key,
        attempts=call.attempts_made,
        effect=Effect(call.effect),
        stop_reason=call.reason if call.state == CallState.CANCELLING else "",
        run_again=may_retry and open_work.was_run_again(call.pk),  # these two keep from a retry, and do nothing else
        old_key=may_retry and not call.read_only and open_work.key_is_old(call.pk, now),
    )


def tenant_of_attempt(attempt_id: UUID) -> UUID | None:
    """The tenant an attempt belongs to, for a node that knows only its id."""
    with db.sweep():
        return Attempt.objects.filter(pk=attempt_id).values_list("tenant_id", flat=True).first()


def keep_late_reply(*, tenant: UUID, attempt_id: UUID, result: Result) -> None:
    """Keep a reply that came after its attempt had ended, as evidence only (RULES L9).

    The node knows that it ended; its outcome may still be on its way into a database that was away.
    """
    with db.write(tenant) as now:
        found = Attempt.objects.filter(pk=attempt_id).values_list("job_id", flat=True).first()
        job = locks.job(found) if found else None
        attempt = locks.attempt(attempt_id)
        if job is not None and attempt is not None:
            _keep_as_evidence(attempt, masking.result(attempt.call, result), now)


def _keep_as_evidence(attempt: Attempt, result: Result | None, now: datetime) -> None:
    if result is None or attempt.late is not None:
        return
    attempt.late = {"at": now.isoformat(), "is_error": result.is_error, "text": result.text[: bodies.RESULT_SHOWN]}
    attempt.save(update_fields=["late"])
    events.record(attempt.job_id, "attempt.late", call=attempt.call_id, attempt=str(attempt.pk))
