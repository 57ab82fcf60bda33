"""The drill on the examples: everything that they declare is proven, and what cannot be is said to be so."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from base.folders import files_of
from catalog.rules.drill_file import read_drill
from catalog.rules.plugins import read_plugin
from jobs.drills import drill
from jobs.rules.drills import Drilled, Exit, Fault, Verdict
from tests.examples.serving import EXAMPLES

NAMES = ("billing", "bookshop")


def one(name: str) -> Drilled:
    files = dict(files_of(EXAMPLES / name))
    spec = read_plugin(files)
    return drill(spec, read_drill(spec, files), files)


@pytest.fixture(scope="module")
def drilled() -> dict[str, Drilled]:
    with ThreadPoolExecutor(len(NAMES)) as pool:
        return dict(zip(NAMES, pool.map(one, NAMES), strict=True))


@pytest.mark.timeout(500)
@pytest.mark.rule("D2")
@pytest.mark.parametrize("name", NAMES)
def test_the_drill_on_an_example_passes(name: str, drilled: dict[str, Drilled]) -> None:
    wrong = [found for found in drilled[name].findings if found.verdict in (Verdict.FAILED, Verdict.NOT_MEASURED)]
    assert wrong == []
    assert drilled[name].exit is Exit.CLEAN


@pytest.mark.timeout(500)
@pytest.mark.rule("D5")
@pytest.mark.rule("D2")
def test_async_and_polling_functions_stop_and_one_that_never_asks_is_not_passed(drilled: dict[str, Drilled]) -> None:
    cancelled = {
        found.function: found.verdict for found in drilled["bookshop"].findings if found.fault is Fault.CANCELLED
    }
    assert cancelled["order_book"] is cancelled["rebuild_index"] is Verdict.PROVEN
    assert cancelled["print_catalogue"] is Verdict.NOT_APPLICABLE


@pytest.mark.timeout(500)
def test_a_charge_is_proven_by_every_fault_of_keys(drilled: dict[str, Drilled]) -> None:
    charge = {found.fault: found.verdict for found in drilled["billing"].findings if found.function == "charge"}
    aside = {fault for fault, verdict in charge.items() if verdict is Verdict.NOT_APPLICABLE}
    assert aside == {Fault.WRITES_NOTHING, Fault.REPEATED_AFTER_A_DAY, Fault.CANCEL_ACKNOWLEDGED}
