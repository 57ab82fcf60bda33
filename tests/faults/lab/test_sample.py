"""A sample of the fault lab: trials of every kind side by side, among nodes that die, and all that must hold holds.

`OZ0_DRILL_SEED` draws the same trials again; `python -m tests.faults.lab.chaos` runs at length.
"""

import os
from collections.abc import Iterator
from random import SystemRandom
from typing import Any

import pytest
from pytest_django import DjangoDbBlocker

from tests.faults.lab.draw import Trial
from tests.faults.lab.laboratory import Laboratory, a_laboratory
from tests.faults.lab.report import told
from tests.faults.stand import a_stand

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]
SECONDS = 75.0  # in which trials begin
EVERY = 0.8
SIDE_BY_SIDE = 20
LEAST = 20  # trials, on a machine that does much else


@pytest.fixture(scope="module")
def laboratory(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker) -> Iterator[Laboratory]:
    """A laboratory of this module's own; its seed is shown when a test fails."""
    seed = int(os.environ.get("OZ0_DRILL_SEED") or SystemRandom().randrange(10**6))
    print(f"OZ0_DRILL_SEED={seed}")
    with django_db_blocker.unblock(), a_stand(tmp_path_factory.mktemp("lab")) as stand:
        with a_laboratory(stand, seed) as made:
            yield made


CALM = {"before": 0.2, "after": 0.2}
KNOWN: tuple[tuple[Any, ...], ...] = (
    # the call, what befalls it, and: its end, its attempts, its effects
    ("modern.note", {"plan": {"wire": ["sent_reset"]}}, "HAPPENED", 1, 1),
    ("modern.note", {"plan": {"wire": ["status:401"]}}, "FAILED", 1, 0),
    ("modern.charge", {"plan": {"wire": ["sent_reset", *["status:401"] * 3]}}, "HAPPENED", 4, 1),
    ("legacy.search", {"plan": {"wire": ["cut:0.7"]}}, "SUCCEEDED", 2, 0),
    ("stdio.note", {"plan": {"faults": ["exit_after"]}}, "HAPPENED", 1, 1),
    ("box.busy", {}, "SUCCEEDED", 2, 1),
    ("box.charge", {"plan": {"faults": ["exit_after"]}}, "SUCCEEDED", 2, 1),
    ("box.stubborn", {"fault": "cancel", "moment": "received", "plan": {"faults": ["hangs_before"]}}, "CANCELED", 1, 0),
    (
        "legacy.polling",
        {"fault": "cancel", "moment": "received", "plan": {"faults": ["hangs_before"]}},
        "CANCELED",
        1,
        0,
    ),
)
STRUCK: tuple[tuple[str, dict[str, Any]], ...] = (
    ("stdio.charge", {"fault": "kill", "moment": "effect", "plan": {"after": 1.0}}),
    ("stdio.look", {"fault": "freeze", "moment": "received", "plan": {"before": 1.0}}),
)


def a_trial(call: str, fault: str = "calm", moment: str = "", plan: dict[str, Any] | None = None) -> Trial:
    server, _, function = call.partition(".")
    return Trial(0, server, function, fault, moment, CALM | (plan or {}), says="truth")


@pytest.mark.rule("K1")
@pytest.mark.rule("L2")
@pytest.mark.rule("P3")
@pytest.mark.rule("U2")
@pytest.mark.rule("U3")
@pytest.mark.rule("U4")
@pytest.mark.rule("U10")
def test_each_fault_ends_a_call_as_it_must(laboratory: Laboratory) -> None:
    """CASES L05, U01, U02."""
    laboratory.repeat([a_trial(call, **what) for call, what, *_ in KNOWN])
    done = laboratory.results.done
    assert not laboratory.results.violations, told(laboratory.results)
    ended = {f"{one.trial}": (one.state, one.attempts, one.evidence.effects) for one in done}
    assert ended == {f"{a_trial(call, **what)}": (*end,) for call, what, *end in KNOWN}
    (search,) = [one.evidence for one in done if one.trial.function == "search"]
    assert search.attempts[-1].resumed_from is not None


@pytest.mark.rule("L5")
@pytest.mark.rule("L8")
def test_a_call_whose_node_is_killed_or_frozen_is_made_again_once_that_has_surely_ended(
    laboratory: Laboratory,
) -> None:
    laboratory.results.done.clear()
    laboratory.repeat([a_trial(call, **what) for call, what in STRUCK])
    assert not laboratory.results.violations, told(laboratory.results)
    assert {one.state for one in laboratory.results.done} == {"SUCCEEDED"}
    assert all(one.attempts > 1 for one in laboratory.results.done)


def test_whatever_breaks_off_and_whoever_dies_what_must_hold_holds(laboratory: Laboratory) -> None:
    """CASES L05, L13, R06."""
    laboratory.results.done.clear()
    results = laboratory.run(SECONDS, every=EVERY, side_by_side=SIDE_BY_SIDE)
    report = told(results)
    print(report)
    assert not results.violations, report
    assert not results.complaints, report
    assert not results.counted["by itself"], "a node ended that nothing was done to"
    assert len(results.done) >= LEAST
