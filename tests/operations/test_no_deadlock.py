"""Claims, settles, answers, cancels, switches and sweeps from many threads on few jobs: no deadlock, and all ends."""

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import OperationalError
from psycopg.errors import DeadlockDetected

from base import db
from jobs.models import Attempt, Hold, Job
from jobs.queries import locks
from jobs.rules.states import JOB_FINAL
from tests.builders import a_job, a_world, swept
from tests.operations.test_events import assert_told
from tests.races import PATIENCE, Side
from tests.wanderer import Wanderer

pytestmark = pytest.mark.usefixtures("database")

THREADS = 8
STEPS = 40  # of each thread
JOBS = 5


@pytest.mark.rule("A6")
@pytest.mark.rule("L2")
@pytest.mark.timeout(300)
def test_no_two_operations_deadlock_and_every_job_comes_to_its_end(move_clock: Callable[[timedelta], None]) -> None:
    world = a_world()
    for _ in range(JOBS):
        a_job(world)
    walks = [Wanderer(world, seed, move_clock) for seed in range(THREADS)]

    def wander(walk: Wanderer) -> None:
        for _ in range(STEPS):
            walk.step()

    def all_at_once(act: Callable[[Wanderer], None]) -> None:
        sides = [Side(lambda w=walk: act(w)).start() for walk in walks]
        for side in sides:
            assert side.ended.wait(240)
        for side in sides:
            side.join()  # raises whatever an operation raised: a deadlock, a conflict, a broken constraint

    all_at_once(wander)
    all_at_once(Wanderer.finish)
    move_clock(timedelta(hours=2))  # past the limit of whatever a dying node left behind, and of every cancel
    swept()
    with db.read(world.tenant):
        assert set(Job.objects.values_list("state", flat=True)) <= JOB_FINAL
        assert not Attempt.objects.filter(ended_at__isnull=True).exists()
        assert not Hold.objects.filter(closed_at__isnull=True).exists()
    assert_told(world)


def test_locks_taken_in_the_wrong_order_are_seen_as_a_deadlock() -> None:
    world = a_world()
    one, other = a_job(world), a_job(world)
    both = threading.Barrier(2)

    def crosswise(*jobs: object) -> None:
        with db.write(world.tenant):
            locks.job(jobs[0])  # type: ignore[arg-type]
            both.wait(PATIENCE)
            locks.job(jobs[1])  # type: ignore[arg-type]

    sides = [Side(lambda: crosswise(one, other)).start(), Side(lambda: crosswise(other, one)).start()]
    for side in sides:
        assert side.ended.wait(PATIENCE)
    (error,) = [side.error for side in sides if side.error is not None]
    assert isinstance(error, OperationalError)
    assert isinstance(error.__cause__, DeadlockDetected)
