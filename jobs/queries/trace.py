"""The trace of a job as a page: its head, and its turns and calls as lines on one axis of time."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import F

from base import db, ids
from jobs.models import Attempt, Call, Driver, Hold, Job, JobCounter, Turn
from jobs.queries import history, runs, stopping
from jobs.queries.drawing import Drawing, Drawn
from jobs.queries.lists import why_it_ended
from jobs.queries.sessions import SessionLine, session_of
from jobs.queries.standstill import Standstill
from jobs.queries.started import WITH, Started, started
from jobs.queries.story import Says, says_of
from jobs.queries.taints import Taint, taint_of
from jobs.queries.twins import Twin, twins
from jobs.queries.veil import Veil
from jobs.rules.axis import Fold, Tick
from jobs.rules.states import JOB_FINAL, CallState, JobState, TurnState
from jobs.rules.turns import tokens_of
from jobs.rules.why import Why

WINDOW: Final = 200  # calls on one page


@dataclass(frozen=True, slots=True)
class TurnLine:
    """One question to the model."""

    shown_id: str
    number: int
    state: TurnState
    model: str
    tokens: int
    say: str
    error: str
    sums_up: bool
    asked: int
    asked_at: datetime
    ended_at: datetime | None
    drawn: Drawn


@dataclass(frozen=True, slots=True)
class CallLine:
    """One call. `says` is what a person should know of it without opening it; `asks` its question while one is open."""

    shown_id: str
    name: str
    kind: str
    state: CallState
    effect: str
    says: Says
    asks: str
    twin: Twin | None
    created_at: datetime
    ended_at: datetime | None
    drawn: Drawn


@dataclass(frozen=True, slots=True)
class TurnLines:
    """A turn with its calls; `turn` is None for calls that no turn asked for."""

    turn: TurnLine | None
    calls: tuple[CallLine, ...]


@dataclass(frozen=True, slots=True)
class JobHead:
    """What stands above the trace. `outside`: a client outside decides on its calls (RULES G7)."""

    id: UUID
    shown_id: str
    title: str
    agent: str
    plugin_version: str
    state: JobState
    ends_as: str
    why: str
    failure_kind: str
    stop_asked_by: str
    stop_asked_at: datetime | None
    waits_for: str
    may_have_done: str
    taint: Taint | None
    started: Started
    started_by_id: int | None
    outside: bool
    idle_at: datetime | None
    input: object
    output: str
    calls: int
    turns: int
    tokens: int
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    over: bool

    @property
    def starter(self) -> str:
        """The kind of what started it."""
        return self.started.starter

    @property
    def started_by(self) -> str:
        """The person that it counts as."""
        return self.started.person


@dataclass(frozen=True, slots=True)
class Trace:
    """The page, of one of the job's `runs`, counted from 0: it continued as new between two (RULES G3).

    `summary` is what the run's model was given of the one before, `recorded` how many of the earlier calls the studio
    told it of. `seq` is the newest event that it surely shows; `before` and `after` are activities to page to. `stands`
    says why the job's due turn is not asked, when there is a reason, and `stands_until` how long if that is known.
    """

    head: JobHead
    run: int
    runs: int
    stands: str
    stands_until: datetime | None
    seq: int
    now: datetime
    turns: tuple[TurnLines, ...]
    ticks: tuple[Tick, ...]
    folds: tuple[Fold, ...]
    folded: float
    earlier: int
    before: int | None
    after: int | None
    session: SessionLine | None = None
    summary: str = ""
    recorded: int = 0

    @property
    def continued(self) -> int:
        """How often the job continued as new."""
        return self.runs - 1


def trace(
    tenant: UUID, job_id: UUID, *, role: str = "", start: int | None = None, run: int | None = None
) -> Trace | None:
    """The trace of a job's `run` or newest one as `role` may see it, from activity `start` or the newest 200 calls.

    None when the tenant has no such job, or the job no such run.
    """
    with db.read(tenant) as now:
        seq = JobCounter.objects.filter(job_id=job_id).values_list("events", flat=True).first()
        job = _job(job_id)
        if job is None or seq is None or (run or 0) > job.run_number:
            return None
        run = job.run_number if run is None else run
        calls = _window(job_id, run, start)
        first = calls[0].activity if calls else 1
        turns = _turns(job_id, run, calls, newest=start is None)
        attempts, holds = _by_call(calls)
        still = Standstill(job, now)
        veil = Veil.over(role)
        stories = {call.pk: veil.says(call, says_of(call, attempts[call.pk], holds[call.pk], still)) for call in calls}
        head, stands = _head(job, tokens=_tokens(job_id)), still.why_no_turn()
        session = session_of(job, run)
        summary = runs.summary_before(job, run)
        recorded = runs.telling(job, run).count() if summary else 0
        after = calls[-1].activity + 1 if calls and _goes_on(calls[-1]) else None
    origin = turns[0].asked_at if turns and (first > 1 or run) else session.created_at if session else job.created_at
    end = session.ended_at if session and run < job.run_number else _end_of(job, run, turns)
    drawing = Drawing(turns, calls, attempts, origin=origin, end=end or now)
    return Trace(
        head=head,
        run=run,
        runs=job.run_number + 1,
        stands=stands,
        stands_until=still.no_turn_until,
        seq=seq,
        now=now,
        turns=_lines(turns, calls, attempts, holds, stories, drawing),
        ticks=drawing.axis.ticks(),
        folds=drawing.axis.folds,
        folded=drawing.axis.folded,
        earlier=first - 1,
        before=max(1, first - WINDOW) if first > 1 else None,
        after=after,
        session=session,
        summary=summary,
        recorded=recorded,
    )


def head(tenant: UUID, job_id: UUID) -> JobHead | None:
    """The head alone; None when the tenant has no such job."""
    with db.read(tenant):
        job = _job(job_id)
        return _head(job, tokens=_tokens(job_id)) if job else None


def _job(job_id: UUID) -> Job | None:
    people = ("started_by", "cancel_requested_by")
    return Job.objects.select_related(*people, *WITH, "agent__plugin_version").filter(pk=job_id).first()


def job_input(tenant: UUID, job_id: UUID) -> Any:
    """What a job was started with, to start one like it; None when the tenant has no such job."""
    with db.read(tenant):
        return history.first_input(job_id)


def _end_of(job: Job, run: int, turns: list[Turn]) -> datetime | None:
    """When a run ended: with the turn that continued as new, or with the job."""
    return turns[-1].ended_at if turns and run < job.run_number else job.ended_at


def _goes_on(call: Call) -> bool:
    return Call.objects.filter(job_id=call.job_id, run_number=call.run_number, activity__gt=call.activity).exists()


def _window(job_id: UUID, run: int, start: int | None) -> list[Call]:
    calls = (
        Call.objects.filter(job_id=job_id, run_number=run)
        .defer("arguments")
        .select_related("function__tool", "function__listing")
    )
    calls = calls.annotate(turn_number=F("turn__number"))
    if start is not None:
        return list(calls.filter(activity__gte=start).order_by("activity")[:WINDOW])
    return list(reversed(calls.order_by("-activity")[:WINDOW]))


def _turns(job_id: UUID, run: int, calls: list[Call], *, newest: bool) -> list[Turn]:
    numbers = {number for call in calls if (number := getattr(call, "turn_number", None)) is not None}
    turns = Turn.objects.filter(job_id=job_id, run_number=run).defer("wanted").order_by("number")
    if not numbers:
        return list(turns.order_by("-number")[:WINDOW])[::-1]
    turns = turns.filter(number__gte=min(numbers))
    return list((turns if newest else turns.filter(number__lte=max(numbers)))[: 2 * WINDOW])


def _by_call(calls: list[Call]) -> tuple[Mapping[UUID, list[Attempt]], Mapping[UUID, list[Hold]]]:
    attempts: dict[UUID, list[Attempt]] = defaultdict(list)
    holds: dict[UUID, list[Hold]] = defaultdict(list)
    shown = [call.pk for call in calls]
    for attempt in Attempt.objects.filter(call_id__in=shown).select_related("node").order_by("number"):
        attempts[attempt.call_id].append(attempt)
    for hold in Hold.objects.filter(call_id__in=shown).select_related("answered_by").order_by("opened_at"):
        holds[hold.call_id].append(hold)
    return attempts, holds


def _tokens(job_id: UUID) -> int:
    usages = Turn.objects.filter(job_id=job_id).values_list("usage", flat=True)[:2000]
    return sum(tokens_of(usage) for usage in usages)


def _lines(
    turns: list[Turn],
    calls: list[Call],
    attempts: Mapping[UUID, list[Attempt]],
    holds: Mapping[UUID, list[Hold]],
    stories: Mapping[UUID, Says],
    drawing: Drawing,
) -> tuple[TurnLines, ...]:
    of_turn: dict[UUID | None, list[CallLine]] = defaultdict(list)
    alike = twins(calls)
    for call in calls:
        line = _call_line(call, attempts[call.pk], holds[call.pk], stories[call.pk], drawing, alike.get(call.pk))
        of_turn[call.turn_id].append(line)
    shown = {turn.pk for turn in turns}
    loose = [line for turn_id, lines in of_turn.items() if turn_id not in shown for line in lines]
    grouped = [TurnLines(_turn_line(turn, drawing), tuple(of_turn[turn.pk])) for turn in turns]
    return (*([TurnLines(None, tuple(loose))] if loose else []), *grouped)


def _turn_line(turn: Turn, drawing: Drawing) -> TurnLine:
    return TurnLine(
        shown_id=ids.show(ids.TURN, turn.pk),
        number=turn.number,
        state=TurnState(turn.state),
        model=turn.model,
        tokens=tokens_of(turn.usage),
        say=turn.say,
        error=turn.error,
        sums_up=turn.sums_up,
        asked=turn.asked,
        asked_at=turn.asked_at,
        ended_at=turn.ended_at,
        drawn=drawing.turn(turn),
    )


def _call_line(
    call: Call, attempts: list[Attempt], holds: list[Hold], says: Says, drawing: Drawing, twin: Twin | None
) -> CallLine:
    return CallLine(
        shown_id=ids.show(ids.CALL, call.pk),
        name=name_of(call),
        kind=call.kind,
        state=CallState(call.state),
        effect=call.effect,
        says=says,
        asks=next((ids.show(ids.HOLD, hold.pk) for hold in holds if hold.closed_at is None), ""),
        twin=twin,
        created_at=call.created_at,
        ended_at=call.ended_at,
        drawn=drawing.call(call, attempts, holds, says),
    )


def name_of(call: Call) -> str:
    """`tool.function`, or what the model called it when it named nothing."""
    return f"{call.tool_slug}.{call.function_name}" if call.function_name else call.model_name


def _head(job: Job, *, tokens: int) -> JobHead:
    person = job.cancel_requested_by.get_username() if job.cancel_requested_by else ""
    return JobHead(
        id=job.pk,
        shown_id=ids.show(ids.JOB, job.pk),
        title=job.title,
        agent=job.agent_name,
        plugin_version=job.agent.plugin_version.version,
        state=JobState(job.state),
        ends_as=job.ends_as,
        why="" if person and job.reason == Why.CANCELLED else why_it_ended(job),
        failure_kind=job.failure_kind,
        stop_asked_by=person,
        stop_asked_at=job.cancel_requested_at,
        waits_for=stopping.of_job(job) if job.state == JobState.CANCELLING else "",
        may_have_done=stopping.what_it_may_have_done(job),
        taint=taint_of(job),
        started=started(job),
        started_by_id=job.started_by_id,
        outside=job.driver == Driver.OUTSIDE,
        idle_at=job.idle_at if job.state == JobState.RUNNING else None,
        input=job.input,
        output=job.output,
        calls=job.calls_made,
        turns=job.turns_made,
        tokens=tokens,
        created_at=job.created_at,
        started_at=job.started_at,
        ended_at=job.ended_at,
        over=job.state in JOB_FINAL,
    )
