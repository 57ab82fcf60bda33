"""`oz0 up` is ended while calls run: attempts are settled or honestly lost, no child stays, the next start goes on."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import psutil
import pytest
from pytest_django import DjangoDbBlocker

from jobs.rules.reasons import Reason
from jobs.rules.states import AttemptState, CallState, JobState
from studio.embedded import kept
from tests.clusters import connected, seed
from tests.faults.processes import family, lives
from tests.faults.processes import until as happens
from tests.faults.stand import PATIENCE, Services, Stand
from tests.faults.studios import GONE_IN, Studio, state_folder, studio_in
from tests.waiting import until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(400)]
TIMEOUT = 6.0
FOR_EVER = 600  # seconds the functions wait when they are to be cut off
DRAIN = 5.0  # seconds


@contextmanager
def at(studio: Studio) -> Iterator[None]:
    """This process looks into the running studio's database."""
    studio.ready()
    with connected(kept.load(studio.home)["DATABASE_URL"]):
        yield


def mentioning(home: Path) -> list[list[str]]:
    """The command lines of whatever still runs that has this state folder in its words or its environment."""
    found = []
    for process in psutil.process_iter():
        try:
            words, env = process.cmdline(), process.environ()
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        if lives(process) and (str(home) in " ".join(words) or env.get("OZ0_HOME") == str(home)):
            found.append(words)
    return found


def begin(stand: Stand, **drill: float) -> UUID:
    """A job with one call of each kind in flight, whose writes are in the ledger already."""
    stand.drill(**drill)
    job = stand.start("three-kinds")
    until(lambda: len(stand.calls(job)) == 3, "the calls were never asked for", PATIENCE)
    writes = {stand.call(job, "charge").key, stand.call(job, "note").key}
    until(lambda: writes <= stand.ledger().keys(), "the writes were never made", PATIENCE)
    until(lambda: stand.begun()[stand.call(job, "balance").key] == 1, "the read never reached the server", PATIENCE)
    return job


def check_gone(studio: Studio, number: signal.Signals, limit: float) -> None:
    """End the studio: everything is gone in time."""
    assert len(family(studio.process.pid)) > 12  # the control: web, node, both services, the tool's server, guardians
    took, left = studio.end(number, limit)
    assert left == [], studio.lines
    assert mentioning(studio.home) == []
    assert took < limit
    assert studio.process.returncode == (-signal.SIGKILL if number is signal.SIGKILL else 0)


def check_cut(stand: Stand, job: UUID, reasons: set[str]) -> None:
    """What the next start has made of a job whose calls were cut off: safe ones again, the plain write a question."""
    until(lambda: stand.call(job, "note").state == CallState.UNKNOWN, "the note was not asked about", PATIENCE)
    for function in ("balance", "charge"):
        until(
            lambda f=function: stand.call(job, f).state == CallState.SUCCEEDED, f"{function} was not repeated", PATIENCE
        )
    for function, number in (("balance", 2), ("charge", 2), ("note", 1)):
        first, *again = stand.attempts(stand.call(job, function))
        assert first.state == AttemptState.LOST and first.reason in reasons
        assert [attempt.state for attempt in again] == [AttemptState.ANSWERED] * (number - 1)
        assert all(attempt.started_at >= first.ended_at for attempt in again)
        if first.reason == Reason.NODE_LOST:
            assert first.ended_at >= first.limit_at
    (hold,) = stand.holds(job)
    stand.answer(hold, "happened")
    stand.until_over(job)
    assert stand.job(job).state == JobState.COMPLETED
    assert [stand.ledger()[stand.call(job, function).key] for function in ("charge", "note")] == [1, 1]
    assert all(line["alone"] for line in stand.journal("begun"))


@pytest.mark.rule("L10")
@pytest.mark.rule("L11")
@pytest.mark.rule("L5")
def test_whatever_ends_it_calls_are_settled_or_lost_and_the_next_start_goes_on(
    tmp_path: Path, django_db_blocker: DjangoDbBlocker
) -> None:
    with django_db_blocker.unblock(), state_folder(tmp_path / "home") as home:
        seed(home)
        with studio_in(home) as studio, at(studio):
            stand = Stand(home)
            stand.use_plugin("--stay", timeout=TIMEOUT)
            stand.until_listed()
            job = begin(stand, wait_after=FOR_EVER)
            check_gone(studio, signal.SIGINT, GONE_IN)
        with studio_in(home, OZ0_DRAIN="0") as studio, at(studio):
            stand.drill()
            check_cut(stand, job, {Reason.NODE_STOPPING})
            job = begin(stand, wait_after=FOR_EVER)
            check_gone(studio, signal.SIGTERM, GONE_IN)
        with studio_in(home) as studio, at(studio):
            stand.drill()
            check_cut(stand, job, {Reason.NODE_STOPPING})
            job = begin(stand, wait_after=FOR_EVER)
            check_gone(studio, signal.SIGKILL, GONE_IN)
        with studio_in(home, OZ0_DRAIN=str(DRAIN)) as studio, at(studio):
            stand.drill()
            check_cut(stand, job, {Reason.NODE_STOPPING, Reason.NODE_LOST})
            job = begin(stand, wait_after=1)
            check_gone(studio, signal.SIGTERM, DRAIN + GONE_IN)
        with studio_in(home) as studio, at(studio):
            stand.drill()
            stand.until_over(job)
            assert [(call.state, call.attempts_made) for call in stand.calls(job)] == [(CallState.SUCCEEDED, 1)] * 3
            assert [stand.nodes()[after_sigterm].state for after_sigterm in (1, 3)] == ["gone", "gone"]


@pytest.mark.rule("L10")
@pytest.mark.parametrize("without", ["", "guardian"])
def test_a_server_that_will_not_leave_is_gone_with_its_node_only_because_of_its_guardian(
    stand: Services, without: str
) -> None:
    stand.use_plugin("--stay")
    node = stand.node(without=without)
    stand.until_listed()
    job = begin(stand, wait_after=FOR_EVER)
    servers = [process for process in node.family() if "watched_billing.py" in " ".join(process.cmdline())]
    assert servers
    node.kill()
    try:
        assert happens(lambda: not any(map(lives, servers)), GONE_IN) is (without == "")
    finally:
        for server in servers:
            if lives(server):
                server.kill()
    assert stand.job(job).state == JobState.RUNNING
