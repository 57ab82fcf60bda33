"""A sample of the fault lab: trials of every kind side by side, among nodes that die, and all that must hold holds.

`OZ0_DRILL_SEED` draws the same trials again; `python -m tests.faults.lab.chaos` runs at length.
"""

import os
from collections.abc import Iterator
from random import SystemRandom

import pytest
from pytest_django import DjangoDbBlocker

from tests.faults.lab.laboratory import Laboratory, a_laboratory
from tests.faults.lab.report import told
from tests.faults.stand import a_stand

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]
SECONDS = 90.0  # in which trials begin
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


def test_whatever_breaks_off_and_whoever_dies_what_must_hold_holds(laboratory: Laboratory) -> None:
    results = laboratory.run(SECONDS, every=EVERY, side_by_side=SIDE_BY_SIDE)
    report = told(results)
    print(report)
    assert not results.violations, report
    assert not results.complaints, report
    assert not results.counted["by itself"], "a node ended that nothing was done to"
    assert len(results.done) >= LEAST
