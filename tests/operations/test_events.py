"""The journal of a job tells all of it: folding its events gives the state of every row."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from base import db
from jobs.models import Attempt, Call, Event, Hold, Job, JobCounter, Turn
from jobs.operations import events
from jobs.rules import states
from jobs.rules.orders import End
from jobs.rules.states import JobState
from tests.builders import World, a_job, a_turn, a_world, an_outcome, made
from tests.wanderer import Wanderer

pytestmark = pytest.mark.usefixtures("database")

type Folded = dict[tuple[str, str], str]

STEPS = 60
MOVES = {"job": (states.JobState, states.JOB_MOVES), "call": (states.CallState, states.CALL_MOVES)}


def fold(job: Job) -> Folded:
    """What a job's events say of the state of it, its calls, attempts, holds and turns.

    Each move must begin where the one before ended, and be one that the tables have.
    """
    rows: Folded = {}
    for event in Event.objects.filter(job=job).order_by("seq"):
        data = event.data
        match event.kind:
            case "job.started":
                rows["job", str(job.pk)] = data["to"]
            case "job.moved":
                _move(rows, "job", str(job.pk), data)
            case "call.submitted":
                rows["call", str(event.call)] = data["to"]
                rows["effect", str(event.call)] = "none"
            case "call.moved":
                _move(rows, "call", str(event.call), data)
                rows["effect", str(event.call)] = data["effect"]
            case "attempt.started":
                rows["attempt", data["attempt"]] = "open"
            case "attempt.ended":
                assert rows["attempt", data["attempt"]] == "open"
                rows["attempt", data["attempt"]] = data["end"]
            case "hold.opened":
                rows["hold", data["hold"]] = "open"
            case "hold.closed":
                assert rows["hold", data["hold"]] == "open"
                rows["hold", data["hold"]] = data["to"]
            case "turn.asked":
                rows["turn", str(data["turn"])] = "asked"
            case "turn.moved":
                assert rows["turn", str(data["turn"])] == data["frm"]
                rows["turn", str(data["turn"])] = data["to"]
            case "attempt.late" | "call.waits" | "job.cancel_asked" | "call.edited" | "hold.counted" | "hold.extended":
                continue
            case kind:
                raise AssertionError(f"the fold knows no event {kind!r}: does it change a state?")
    return rows


def _move(rows: Folded, what: str, row: str, data: dict[str, str]) -> None:
    kind, moves = MOVES[what]
    assert rows[what, row] == data["frm"]
    states.check(moves, kind(data["frm"]), kind(data["to"]))  # type: ignore[type-var]
    rows[what, row] = data["to"]


def stands(job: Job) -> Folded:
    """The state of a job's rows as they stand."""
    rows: Folded = {("job", str(job.pk)): job.state}
    for call in Call.objects.filter(job=job):
        rows["call", str(call.pk)], rows["effect", str(call.pk)] = call.state, call.effect
    rows |= {("attempt", str(pk)): state for pk, state in Attempt.objects.filter(job=job).values_list("pk", "state")}
    rows |= {("hold", str(pk)): state for pk, state in Hold.objects.filter(job=job).values_list("pk", "state")}
    rows |= {("turn", str(n)): state for n, state in Turn.objects.filter(job=job).values_list("number", "state")}
    return rows


def assert_told(world: World) -> int:
    """Every job's events are numbered without a gap and fold to its rows; returns how many events there are."""
    with db.read(world.tenant):
        for job in Job.objects.all():
            numbers = list(Event.objects.filter(job=job).order_by("seq").values_list("seq", flat=True))
            assert numbers == list(range(1, len(numbers) + 1))
            assert JobCounter.objects.get(job=job).events == len(numbers)
            assert fold(job) == stands(job)
        return Event.objects.count()


@pytest.mark.parametrize("seed", [1, 2])
def test_after_any_walk_the_events_of_every_job_fold_to_its_rows_and_are_numbered_without_a_gap(
    seed: int, move_clock: Callable[[timedelta], None]
) -> None:
    world = a_world()
    walk = Wanderer(world, seed, move_clock)
    for n in range(STEPS):
        walk.step()
        if n % 20 == 0:
            assert_told(world)
    assert assert_told(world) > STEPS / 2
    walk.finish()
    assert_told(world)


def test_a_move_without_its_event_is_seen_by_the_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    world = a_world()
    (call,) = a_turn(world, a_job(world), "note")
    really = events.record

    def forgetful(job_id: object, kind: str, **data: object) -> None:
        if kind != "call.moved":
            really(job_id, kind, **data)  # type: ignore[arg-type]

    monkeypatch.setattr(events, "record", forgetful)
    made(world, call, an_outcome(End.ANSWERED))
    with pytest.raises(AssertionError):
        assert_told(world)


def test_a_write_that_is_rolled_back_leaves_neither_row_nor_event_nor_gap() -> None:
    from jobs.operations import moves
    from jobs.queries import locks

    world = a_world()
    job = a_job(world)
    with pytest.raises(ZeroDivisionError), db.write(world.tenant) as now:
        row = locks.job(job)
        assert row is not None
        moves.job(row, JobState.RUNNING, reason="", now=now)
        raise ZeroDivisionError
    assert assert_told(world) == 1
    a_turn(world, job, say="Done.")
    assert_told(world)
