"""The database goes while calls run, in order or not, and comes back: nothing is lost and nothing is made twice."""

import signal
from uuid import UUID

import pytest

from jobs.rules.limits import LEASE, SWEEP_GRACE
from jobs.rules.reasons import Reason
from jobs.rules.states import AttemptState, CallState, JobState
from tests.faults.stand import PATIENCE, Services
from tests.waiting import until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]
TIMEOUT = 30.0
HOWS = pytest.mark.parametrize("kill", [False, True], ids=["stop", "kill -9"])


@pytest.fixture(autouse=True)
def _roomy(stand: Services) -> None:
    stand.use_plugin(timeout=TIMEOUT, slots=32)


def running(stand: Services, jobs: int, agent: str = "two-writes", calls: int = 2) -> list[UUID]:
    """Jobs whose writes have all reached the server."""
    stand.drill(wait_before=1, wait_after=1)
    started = [stand.start(agent) for _ in range(jobs)]
    until(lambda: len(stand.calls(*started)) == calls * jobs, "the calls were never asked for", PATIENCE)
    keys = {call.key for call in stand.calls(*started)}
    until(lambda: keys <= stand.begun().keys(), "the calls never reached the server", PATIENCE)
    return started


def until_answered(stand: Services, jobs: list[str]) -> None:
    """Wait until the server has done with every call, as its own journal says."""
    until(lambda: set(jobs) <= {line["key"] for line in stand.journal("ended")}, "the server never ended", PATIENCE)


@HOWS
def test_nothing_is_lost_or_doubled_when_the_database_restarts_while_twenty_calls_run(
    stand: Services, kill: bool
) -> None:
    node = stand.node()
    stand.until_listed()
    jobs = running(stand, 10)
    keys = [call.key for call in stand.calls(*jobs)]
    stand.lose_database(kill=kill)
    until_answered(stand, keys)
    stand.postgres.start()
    stand.until_over(*jobs)
    assert {stand.job(job).state for job in jobs} == {JobState.COMPLETED}
    assert [(call.state, call.attempts_made) for call in stand.calls(*jobs)] == [(CallState.SUCCEEDED, 1)] * 20
    assert [attempt.late for attempt in stand.attempts(*stand.calls(*jobs))] == [None] * 20
    assert [stand.ledger()[key] for key in keys] == [1] * 20
    node.kill()


@HOWS
def test_claims_cut_by_the_databases_end_are_made_again_or_known_as_not_made(stand: Services, kill: bool) -> None:
    node = stand.node()
    stand.until_listed()
    stand.drill()
    jobs = [stand.start("two-writes") for _ in range(10)]
    until(lambda: stand.calls(*jobs), "no turn was asked", PATIENCE)
    stand.lose_database(kill=kill)
    stand.postgres.start()
    stand.until_over(*jobs, seconds=90)
    assert {stand.job(job).state for job in jobs} == {JobState.COMPLETED}
    for call in stand.calls(*jobs):
        lines = 1 if call.state == CallState.SUCCEEDED else 0
        assert call.state == CallState.SUCCEEDED or (call.function_name, call.state) == ("note", CallState.FAILED)
        assert stand.ledger()[call.key] == lines
    node.kill()


def test_a_node_that_writes_an_outcome_once_only_loses_what_ended_meanwhile(stand: Services) -> None:
    """The control of the drills above: outcomes are kept until they are committed."""
    node = stand.node(without="keeping")
    stand.until_listed()
    (job,) = running(stand, 1)
    keys = [call.key for call in stand.calls(job)]
    stand.lose_database()
    until_answered(stand, keys)
    until(lambda: node.said("the database went away") >= 2, "the outcomes were never written", PATIENCE)
    stand.postgres.start()
    stand.move_clock(TIMEOUT + SWEEP_GRACE + LEASE)
    note = next(call.pk for call in stand.calls(job) if call.function_name == "note")
    until(
        lambda: {c.pk: c.state for c in stand.calls(job)}[note] == CallState.UNKNOWN, "the note was not lost", PATIENCE
    )
    assert stand.ledger()[stand.call(job, "note").key] == 1
    node.kill()


@pytest.mark.rule("L11")
def test_a_node_told_to_stop_while_the_database_is_away_ends_its_calls_in_time(stand: Services) -> None:
    node = stand.fresh_node().ready()
    stand.until_listed()
    (job,) = running(stand, 1)
    stand.drill()
    keys = [call.key for call in stand.calls(job)]
    stand.lose_database()
    node.ask(signal.SIGINT)
    node.ended(10)
    until_answered(stand, keys)  # the server was told, instead of being killed in the middle
    stand.postgres.start()
    stand.move_clock(TIMEOUT + LEASE)
    again = stand.node()
    until(lambda: stand.holds(job), "the note was not asked about", PATIENCE)
    (lost,) = stand.attempts(stand.call(job, "note"))
    assert (lost.state, lost.reason) == (AttemptState.LOST, Reason.NODE_LOST)
    stand.answer(stand.holds(job)[0], "happened")
    stand.until_over(job)
    assert stand.job(job).state == JobState.COMPLETED
    again.kill()


@pytest.mark.rule("L11")
def test_a_node_that_is_still_waiting_for_its_database_stops_when_it_is_told_to(stand: Services) -> None:
    stand.lose_database()
    node = stand.fresh_node()
    until(lambda: node.said("the database does not answer"), "the node does not look for its database", PATIENCE)
    node.ask(signal.SIGTERM)
    assert node.ended(20) == 0
    stand.postgres.start()
