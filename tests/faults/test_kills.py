"""A node is killed in mid-call: reads run again, a keyed write is made once, a plain write becomes a question."""

import os
import random
import signal
import threading
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from uuid import UUID

import pytest

from jobs.models import Attempt, Call
from jobs.rules.limits import LEASE
from jobs.rules.reasons import Reason
from jobs.rules.states import AttemptState, CallState, Effect, HoldKind, JobState, NodeState
from tests.faults.processes import lives
from tests.faults.stand import PATIENCE, RunningNode, Services
from tests.waiting import until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]
KILLS = 20  # of each kind of call, in mid-call
MOST_ROUNDS = 30
TIMEOUT = 5.0  # seconds; the tool's
WAIT = 0.3  # seconds before the effect, and again after it
NOTICED_IN = timedelta(seconds=15)
READ, KEYED, PLAIN = "balance", "charge", "note"


@pytest.fixture
def dice() -> random.Random:
    """Dice whose seed is shown when a test fails; `OZ0_DRILL_SEED` throws the same again."""
    seed = int(os.environ.get("OZ0_DRILL_SEED") or random.SystemRandom().randrange(10**6))
    print(f"OZ0_DRILL_SEED={seed}")
    return random.Random(seed)


@dataclass
class Cut:
    """A job whose node was killed, and which of its calls were being made just then."""

    job: UUID
    functions: frozenset[str]
    acted: frozenset[str]  # those of them that had written into the ledger


def in_flight(stand: Services) -> UUID:
    """A job that makes one call of each kind just now."""
    job = stand.start("three-kinds")
    until(lambda: len(stand.attempts(*stand.calls(job))) == 3, "the calls were never begun", PATIENCE)
    return job


def cut(stand: Services, job: UUID, *nodes: RunningNode) -> Cut:
    """Kill these nodes; what was being made."""
    servers = [process for node in nodes for process in node.family()]
    for node in nodes:
        node.kill()
    # else one may still write after the ledger was looked at
    until(lambda: not any(map(lives, servers)), "a server outlived its node")
    open_ = [attempt.call for attempt in stand.open_attempts(job)]
    acted = {call.function_name for call in open_ if stand.ledger()[call.key]}
    return Cut(job, frozenset(call.function_name for call in open_), frozenset(acted))


def pass_the_limit(stand: Services) -> None:
    """The dead node's lease and every attempt's full limit are over. Nobody may be running."""
    stand.move_clock(LEASE + TIMEOUT + 1)


def until_settled(stand: Services, job: UUID) -> None:
    """Wait until nothing of the job is under way: each call has ended or is a question."""
    moving = {CallState.QUEUED, CallState.RUNNING, CallState.RETRYING}
    until(lambda: not any(call.state in moving for call in stand.calls(job)), "a call stayed under way", PATIENCE)


def check_repeated(stand: Services, call: Call, was_cut: bool) -> None:
    """A retry-safe call was made again, once, after its lost attempt."""
    attempts = stand.attempts(call)
    assert call.state == CallState.SUCCEEDED
    assert [attempt.state for attempt in attempts] == [AttemptState.LOST] * was_cut + [AttemptState.ANSWERED]
    assert [attempt.reason for attempt in attempts] == [Reason.NODE_LOST] * was_cut + [Reason.ANSWERED]


def check(stand: Services, done: Cut) -> None:
    """What RULES L5, L8, U2, U3 and U4 say of a killed node's calls, and nothing else."""
    check_repeated(stand, stand.call(done.job, READ), READ in done.functions)
    charge = stand.call(done.job, KEYED)
    check_repeated(stand, charge, KEYED in done.functions)
    assert (charge.effect, stand.ledger()[charge.key]) == (Effect.MADE, 1)
    note, holds = stand.call(done.job, PLAIN), stand.holds(done.job)
    assert note.attempts_made == 1
    if PLAIN in done.functions:
        assert (note.state, note.reason, note.effect) == (CallState.UNKNOWN, Reason.NODE_LOST, Effect.MAYBE)
        assert [(hold.kind, hold.call_id) for hold in holds] == [(HoldKind.UNKNOWN, note.pk)]
        assert stand.ledger()[note.key] == (PLAIN in done.acted)
        assert stand.job(done.job).state == JobState.WAITING
    else:
        assert (note.state, holds) == (CallState.SUCCEEDED, [])
        assert stand.ledger()[note.key] == 1


def answer(stand: Services, done: Cut, said: str) -> None:
    """Answer the question, and see the job go on to its end as the answer promises (RULES U6, K1)."""
    if PLAIN not in done.functions:
        stand.until_over(done.job)
        assert stand.job(done.job).state == JobState.COMPLETED
        return
    (hold,) = stand.holds(done.job)
    stand.answer(hold, said)
    stand.until_over(done.job)
    note = stand.call(done.job, PLAIN)
    ends = {
        "happened": (CallState.HAPPENED, 1, JobState.COMPLETED),
        "again": (CallState.SUCCEEDED, 2, JobState.COMPLETED),
        "stop": (CallState.CANCELED, 1, JobState.CANCELED),
    }
    assert (note.state, note.attempts_made, stand.job(done.job).state) == ends[said]
    assert stand.ledger()[note.key] == (PLAIN in done.acted) + (said == "again")


def check_no_overlap(stand: Services, jobs: list[UUID]) -> None:
    """No attempt of a call began before the one before it had ended, by our journal and by the server's (RULES L5)."""
    by_call: dict[UUID, list[Attempt]] = {}
    for attempt in stand.attempts(*stand.calls(*jobs)):
        by_call.setdefault(attempt.call_id, []).append(attempt)
    for attempts in by_call.values():
        for one, next_ in pairwise(attempts):
            assert one.ended_at is not None and next_.started_at >= one.ended_at
            assert one.state != AttemptState.LOST or one.ended_at >= one.limit_at
    begun = stand.journal("begun")
    assert begun and all(line["alone"] for line in begun)
    made = {call.key: call.attempts_made for call in stand.calls(*jobs)}
    assert all(times <= made[key] for key, times in stand.begun().items() if key in made)


def doubled(stand: Services, jobs: list[UUID]) -> list[str]:
    """The keys of charges with more than one line in the ledger (RULES K1, U2)."""
    keys = [call.key for call in stand.calls(*jobs) if call.function_name == KEYED]
    return [key for key in keys if stand.ledger()[key] > 1]


@pytest.mark.rule("L5")
@pytest.mark.rule("K1")
@pytest.mark.rule("U2")
@pytest.mark.rule("U3")
@pytest.mark.rule("U4")
def test_twenty_kills_at_random_in_mid_call_of_each_kind(stand: Services, dice: random.Random) -> None:
    """CASES R06."""
    stand.drill(wait_before=WAIT, wait_after=WAIT)
    node = stand.node()
    stand.until_listed()
    kinds: Counter[str] = Counter()
    acted: Counter[str] = Counter()
    jobs: list[UUID] = []
    for said in ["happened", "again", "stop"] * (MOST_ROUNDS // 3):
        job = in_flight(stand)
        threading.Event().wait(dice.uniform(0, 2 * WAIT))  # the moment of the kill
        done = cut(stand, job, node)
        pass_the_limit(stand)
        beside = stand.start("one-charge")  # work of its own, for which the new node starts the server at once
        node = stand.node()
        until_settled(stand, job)
        check(stand, done)
        answer(stand, done, said)
        stand.until_over(beside)
        jobs += [job, beside]
        kinds.update(done.functions)
        acted.update(done.acted)
        if min(kinds[kind] for kind in (READ, KEYED, PLAIN)) >= KILLS:
            break
    print(f"{len(jobs) // 2} kills cut {dict(kinds)}; had acted: {dict(acted)}")
    assert min(kinds[kind] for kind in (READ, KEYED, PLAIN)) >= KILLS
    assert all(0 < acted[kind] < kinds[kind] for kind in (KEYED, PLAIN)), "the kills missed one side of the effect"
    check_no_overlap(stand, jobs)
    assert doubled(stand, jobs) == []
    assert stand.open_attempts() == []
    node.kill()


def test_a_server_that_forgets_its_keys_charges_twice(stand: Services) -> None:
    """The control of the drill above: what it looks for is there when the key is not honoured."""
    stand.use_plugin("--forget-keys")
    node = stand.node()
    stand.until_listed()
    stand.drill(wait_after=TIMEOUT)
    job = in_flight(stand)
    until(lambda: stand.ledger()[stand.call(job, KEYED).key] == 1, "the charge was never made")
    done = cut(stand, job, node)
    assert KEYED in done.acted
    pass_the_limit(stand)
    stand.drill()
    node = stand.node()
    until_settled(stand, job)
    assert doubled(stand, [job]) == [stand.call(job, KEYED).key]
    node.kill()
    stand.use_plugin()


@pytest.mark.rule("L8")
def test_without_the_sweep_a_killed_nodes_calls_stay_running_and_with_it_they_do_not(stand: Services) -> None:
    node = stand.node()
    stand.until_listed()
    stand.drill(wait_before=TIMEOUT)
    job = in_flight(stand)
    done = cut(stand, job, node)
    assert done.functions == {READ, KEYED, PLAIN}
    stand.drill()
    pass_the_limit(stand)
    node = stand.node(without="sweep")
    began = node.row.heartbeat_at
    until(lambda: node.row.heartbeat_at - began > timedelta(seconds=2.5), "the node's pulse stands still")
    assert {call.state for call in stand.calls(job)} == {CallState.RUNNING}
    node.kill()
    node = stand.node()
    until_settled(stand, job)
    check(stand, done)
    answer(stand, done, "happened")
    node.kill()


@pytest.mark.rule("L8")
@pytest.mark.rule("U4")
def test_on_a_real_clock_a_lost_node_is_noticed_and_its_plain_write_asked_about_in_time(stand: Services) -> None:
    one, other = stand.node(), stand.node()
    stand.until_listed()
    stand.drill(wait_after=TIMEOUT)
    job = in_flight(stand)
    (attempt,) = stand.attempts(stand.call(job, PLAIN))
    dead, survivor = (one, other) if attempt.node_id == one.row.pk else (other, one)
    until(lambda: stand.ledger()[stand.call(job, PLAIN).key] == 1, "the note was never written")
    done = cut(stand, job, dead)
    assert PLAIN in done.acted
    stand.drill()
    until(lambda: dead.row.state == NodeState.LOST, "the node was never missed", 20)
    lost = dead.row
    assert lost.ended_at is not None and lost.ended_at - lost.heartbeat_at <= NOTICED_IN
    check_asked_in_time(stand, job)
    again = in_flight_with(stand, wait_after=TIMEOUT)
    second = cut(stand, again, survivor)
    stand.drill()
    node = stand.node()  # as a supervisor would: at once
    check_asked_in_time(stand, again)
    for each in (done, second):
        until_settled(stand, each.job)
        answer(stand, each, "happened")
    check_no_overlap(stand, [job, again])
    assert doubled(stand, [job, again]) == []
    node.kill()


def in_flight_with(stand: Services, **drill: float) -> UUID:
    """A job in flight under another drill."""
    stand.drill(**drill)
    return in_flight(stand)


def check_asked_in_time(stand: Services, job: UUID) -> None:
    """The note is a question, no later than 15 s after its attempt's full limit."""
    until(lambda: stand.call(job, PLAIN).state == CallState.UNKNOWN, "the note never became a question", 40)
    (hold,), (attempt,) = stand.holds(job), stand.attempts(stand.call(job, PLAIN))
    assert attempt.limit_at <= hold.opened_at <= attempt.limit_at + NOTICED_IN


@pytest.mark.rule("G2")
def test_what_was_made_before_a_wait_for_a_person_is_not_made_again_after_the_node_was_replaced(
    stand: Services,
) -> None:
    """CASES R21."""
    stand.drill()
    node = stand.node()
    stand.until_listed()
    job = stand.start("careful")
    until(lambda: stand.job(job).state == JobState.WAITING, "the job never waited", PATIENCE)
    node.kill()
    pass_the_limit(stand)
    node = stand.node()
    (hold,) = stand.holds(job)
    stand.answer(hold, "approve")
    stand.until_over(job)
    assert stand.job(job).state == JobState.COMPLETED
    assert [(call.state, call.attempts_made) for call in stand.calls(job)] == [(CallState.SUCCEEDED, 1)] * 4
    assert [stand.ledger()[call.key] for call in stand.calls(job)] == [1, 1, 1, 0]
    node.kill()


@pytest.mark.rule("L5")
@pytest.mark.rule("L9")
def test_a_node_that_was_taken_for_dead_comes_back_changes_nothing_and_works_on(stand: Services) -> None:
    stand.drill(wait_after=3)
    paused = stand.node()
    stand.until_listed()
    first = paused.row
    job = in_flight(stand)
    writes = {stand.call(job, function).key for function in (KEYED, PLAIN)}
    until(lambda: writes <= stand.ledger().keys(), "the writes were never made")
    paused.ask(signal.SIGSTOP)
    keys = {call.key for call in stand.calls(job)}
    until(lambda: keys <= {line["key"] for line in stand.journal("ended")}, "the server never ended", PATIENCE)
    pass_the_limit(stand)
    other = stand.node()
    until_settled(stand, job)
    done = Cut(job, frozenset({READ, KEYED, PLAIN}), frozenset({KEYED, PLAIN}))
    check(stand, done)
    paused.ask(signal.SIGCONT)
    until(lambda: paused.row.pk != first.pk, "it never registered anew", PATIENCE)
    until(lambda: stand.attempts(stand.call(job, PLAIN))[0].late is not None, "its reply was not kept", PATIENCE)
    check(stand, done)
    other.kill()
    answer(stand, done, "happened")  # by the one that came back
    check_no_overlap(stand, [job])
    paused.kill()
