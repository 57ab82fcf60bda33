"""Questions to a person: opening, answering once, extending, withdrawing and expiring (RULES A3–A9, U6)."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, assert_never
from uuid import UUID

from base import db
from catalog.queries.functions import still_listed
from catalog.rules.policy import Ask, Refuse
from jobs import wake
from jobs.models import Call, Hold, Job, Session
from jobs.operations import cancel, events, moves, sessions, verdicts
from jobs.queries import locks
from jobs.rules.limits import APPROVAL_LIFE, LONGEST_APPROVAL
from jobs.rules.states import JOB_FINAL, CallState, Effect, HoldKind, HoldState, JobState, SessionState
from jobs.rules.why import Why


class Answer(StrEnum):
    """What a person can say."""

    APPROVE = "approve"
    EDIT = "edit"
    DENY = "deny"
    HAPPENED = "happened"
    AGAIN = "again"
    START_AGAIN = "start_again"
    FINISHED = "finished"
    STOP = "stop"


ANSWERS: Final = {
    HoldKind.APPROVE: (Answer.APPROVE, Answer.EDIT, Answer.DENY, Answer.STOP),
    HoldKind.RETRY: (Answer.APPROVE, Answer.EDIT, Answer.DENY, Answer.STOP),
    HoldKind.UNKNOWN: (Answer.HAPPENED, Answer.AGAIN, Answer.STOP),
    HoldKind.SESSION: (Answer.START_AGAIN, Answer.FINISHED, Answer.STOP),
}


APPROVING: Final = (Answer.APPROVE, Answer.EDIT)


class BadAnswer(ValueError):
    """An answer that cannot be taken as it is; the message says what is wrong. Nothing moved."""


class EntryChanged(BadAnswer):
    """The question is void: the tool's server describes the function otherwise since it was asked (RULES C3)."""

    def __init__(self, tool_id: UUID) -> None:
        self.tool_id = tool_id
        super().__init__("the server describes this function otherwise now, so it is asked anew; look again")


@dataclass(frozen=True, slots=True)
class Closed:
    """The hold was closed before: by whom, with what, when. Nothing moved (RULES A6)."""

    state: HoldState
    answer: str
    by: int | None
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Taken:
    """The answer was taken and the hold is closed by it."""

    call_state: CallState


def open_approval(call: Call, kind: HoldKind, ruling: verdicts.Ruling, *, now: datetime) -> None:
    """Ask whether the call may run. The approval will be bound to exactly what the ruling looked at (RULES A4)."""
    rule = ruling.verdict.rule
    hold = Hold(
        tenant_id=call.tenant_id,
        job_id=call.job_id,
        call=call,
        kind=kind,
        binding=ruling.binding,
        rule_id=rule.id,
        rule_digest=rule.digest,
        policy_number=ruling.policy,
        why=ruling.why,
        opened_at=now,
        expires_at=now + APPROVAL_LIFE,
    )
    _open(hold)


def nobody_knows(call: Call, job: Job, *, reason: str, evidence: str, now: datetime, **fields: Any) -> None:
    """The call is *unknown*: ask a person, or fail it and its job, as its agent says (RULES U4, U5).

    The question never expires (RULES U6). The job must be held alone, and no other hold of the call be open.
    """
    moves.call(call, CallState.UNKNOWN, reason=reason, now=now, detail=evidence, **fields)
    if job.on_unknown == "ask":
        _open(
            Hold(tenant_id=call.tenant_id, job_id=job.pk, call=call, kind=HoldKind.UNKNOWN, why=evidence, opened_at=now)
        )
        return
    moves.call(call, CallState.FAILED, reason=reason, now=now)
    cancel.end(
        job,
        ends_as=JobState.FAILED,
        reason=Why.UNKNOWN_OUTCOME,
        failure_kind="unknown_outcome",
        detail=f"{call.model_name}: {evidence}",
        now=now,
    )


def ask_about_session(call: Call, why: str, *, now: datetime) -> None:
    """Ask what becomes of a lost harness session: start it again, it is finished, or stop (RULES K6).

    The question is about the first of its calls that may have gone out and is not safe to repeat: what a person looks
    at to decide. It never expires. The job must be held alone; the call is over.
    """
    session = HoldKind.SESSION
    _open(Hold(tenant_id=call.tenant_id, job_id=call.job_id, call=call, kind=session, why=why, opened_at=now))


def _open(hold: Hold) -> None:
    hold.save(force_insert=True)
    events.record(hold.job_id, "hold.opened", call=hold.call_id, hold=str(hold.pk), hold_kind=hold.kind)
    events.judge_later(hold.job_id)


@dataclass(frozen=True, slots=True)
class Held:
    """A question with its call and job, each locked until the open write commits."""

    job: Job
    call: Call
    hold: Hold


def held(hold_id: UUID) -> Held:
    """Lock a question, in the order of MACHINES 2. Demands an open write. Raises `Hold.DoesNotExist`."""
    db.must_write()
    found = Hold.objects.only("job_id", "call_id").get(pk=hold_id)
    locks.gate_shared()
    job, call, hold = locks.job(found.job_id), locks.call(found.call_id), locks.hold(hold_id)
    assert job is not None and call is not None and hold is not None  # noqa: S101 - rows are never deleted
    return Held(job, call, hold)


def closed(held: Held, answer: Answer) -> Closed | None:
    """How the question was closed before this answer. An approval that comes after its time finds it expired."""
    now, hold = db.must_write(), held.hold
    if hold.closed_at is not None:
        return _closed(hold)
    if answer in APPROVING and hold.expires_at is not None and hold.expires_at <= now:
        _expire(held.call, held.job, hold, now)  # no sweep has found it yet, but its time is over (RULES A8)
        return _closed(hold)
    return None


def approves(held: Held, answer: Answer) -> str:
    """What an answer to an open question is an approval of, by its binding; empty when it is none (RULES A4, U6).

    Raises `BadAnswer` when the question does not take the answer as things stand.
    """
    call, takes = held.call, ANSWERS[HoldKind(held.hold.kind)]
    if answer not in takes:
        raise BadAnswer(f"{answer.value!r} does not answer this question; it takes {', '.join(takes)}")
    running = answer in APPROVING or answer is Answer.AGAIN
    if running and call.function is not None and not still_listed(call.function):
        if answer is not Answer.AGAIN:
            raise EntryChanged(call.function.tool_id)
        raise BadAnswer("the server describes this function otherwise now, so the call cannot be run again as it was")
    if answer is Answer.AGAIN:
        return _may_run_again(call, held.job)
    return held.hold.binding if answer is Answer.APPROVE else ""


def answer(*, hold_id: UUID, answer: Answer, person: int, note: str = "") -> Taken | Closed:
    """Take a person's answer. Demands an open write; the caller has checked that the person may decide.

    An approval that comes after the hold's time is none: the hold is *expired* by it. Editing is `editing.edit`.

    Raises `BadAnswer` when the answer is not one of this question's, or `Hold.DoesNotExist`.
    """
    now, found = db.must_write(), held(hold_id)
    job, call, hold = found.job, found.call, found.hold
    if (before := closed(found, answer)) is not None:
        return before
    approved = approves(found, answer)
    if answer is Answer.DENY and not note.strip():
        raise BadAnswer("denying takes a reason, which the agent reads")
    moves.hold(hold, HoldState.ANSWERED, now=now, answer=answer, answered_by_id=person, note=note, approves=approved)
    match answer:
        case Answer.APPROVE:
            queue(call, reason=Why.APPROVED, now=now)
        case Answer.DENY:
            acted = "An attempt of it may have acted before it was denied."
            end_unapproved(call, job, reason=Why.DENIED, now=now, detail=note, evidence=acted)
        case Answer.HAPPENED:
            moves.call(call, CallState.HAPPENED, reason=Why.HAPPENED, now=now, result_text=note, effect=Effect.MADE)
        case Answer.AGAIN:
            queue(call, reason=Why.RUN_AGAIN, now=now)
        case Answer.STOP:
            cancel.end(job, ends_as=JobState.CANCELED, reason=Why.STOPPED_BY_PERSON, person=person, now=now)
            call.refresh_from_db()
        case Answer.START_AGAIN:
            sessions.start_again(_asking(job), reason=Why.STARTED_AGAIN_BY_PERSON, now=now, due_at=now)
        case Answer.FINISHED:
            sessions.finish(_asking(job), reason=Why.FINISHED, now=now, output=note)
        case Answer.EDIT:
            raise BadAnswer("editing takes the arguments that are to run instead")
        case never:
            assert_never(never)
    events.judge_later(job.pk)
    return Taken(CallState(call.state))


def _asking(job: Job) -> Session:
    """The session that a person is asked about."""
    row = sessions.open_one(job)
    if row is None or row.state != SessionState.ASKING:
        raise BadAnswer("its session is not lost any more; look again")
    return row


def counted(held: Held, *, person: int, have: int, needed: int) -> None:
    """Note in the job's journal that one more person approved of those that must; the question stays open."""
    call, hold = held.call.pk, str(held.hold.pk)
    events.record(held.job.pk, "hold.counted", call=call, hold=hold, by=person, have=have, needed=needed)


def extend(*, hold_id: UUID) -> datetime | Closed:
    """Let a question wait a day longer from now, at most a week from its opening; returns when it expires then.

    Demands an open write; the caller has checked that the person may. Raises `BadAnswer`.
    """
    now, found = db.must_write(), held(hold_id)
    if (before := closed(found, Answer.APPROVE)) is not None:
        return before
    hold = found.hold
    if hold.expires_at is None:
        raise BadAnswer("this question never expires")
    until = min(now + APPROVAL_LIFE, hold.opened_at + LONGEST_APPROVAL)
    if until <= hold.expires_at:
        raise BadAnswer("a question waits for at most a week from when it was asked")
    hold.expires_at = until
    hold.save(update_fields=["expires_at"])
    events.record(hold.job_id, "hold.extended", call=hold.call_id, hold=str(hold.pk), until=until.isoformat())
    return until


def _closed(hold: Hold) -> Closed:
    return Closed(HoldState(hold.state), hold.answer, hold.answered_by_id, hold.closed_at)


def _may_run_again(call: Call, job: Job) -> str:
    """What the answer "run it again" approves, for it counts as the approval when policy asks (RULES U6).

    Raises `BadAnswer` when a switch or the policy forbids the call by now.
    """
    ruling = verdicts.rule_on(call, job)
    if isinstance(ruling, verdicts.Switched):
        raise BadAnswer(f"a kill switch is on ({ruling.detail}); turn it off first, or answer otherwise")
    if isinstance(ruling.verdict, Refuse):
        raise BadAnswer(f"the policy refuses this call now ({ruling.why}); change it first, or answer otherwise")
    return ruling.binding if isinstance(ruling.verdict, Ask) else ""


def queue(call: Call, *, reason: Why, now: datetime, **fields: Any) -> None:
    """Let the call run when a node claims it."""
    moves.call(call, CallState.QUEUED, reason=reason, now=now, due_at=now, openings_failed=0, **fields)
    tenant, call_id = call.tenant_id, call.pk
    db.after_commit(lambda: wake.call(tenant=tenant, call_id=call_id))


def end_unapproved(call: Call, job: Job, *, reason: Why, now: datetime, evidence: str, detail: str = "") -> None:
    """End a held call that was not approved; one that may have acted before becomes a question (RULES U10)."""
    if call.effect == Effect.MAYBE:
        nobody_knows(call, job, reason=reason, evidence=evidence, now=now)
    else:
        moves.call(call, CallState.REFUSED, reason=reason, now=now, detail=detail)


def expire(*, tenant: UUID, hold_id: UUID) -> bool:
    """Close an approval nobody gave in time: *expired*, never *denied* (RULES A8). False when it was closed before."""
    with db.write(tenant) as now:
        found = Hold.objects.only("job_id", "call_id").get(pk=hold_id)
        job, call, hold = locks.job(found.job_id), locks.call(found.call_id), locks.hold(hold_id)
        if job is None or call is None or hold is None or hold.closed_at is not None:
            return False
        if hold.expires_at is None or hold.expires_at > now or job.state in JOB_FINAL:
            return False
        _expire(call, job, hold, now)
        return True


def _expire(call: Call, job: Job, hold: Hold, now: datetime) -> None:
    moves.hold(hold, HoldState.EXPIRED, now=now)
    acted = "An attempt of it may have acted before its approval expired."
    end_unapproved(call, job, reason=Why.EXPIRED, now=now, evidence=acted)
    events.judge_later(job.pk)
