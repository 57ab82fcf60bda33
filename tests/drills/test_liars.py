"""Functions that do not keep what they declare: the drill names each, with its fault, and nobody who keeps it."""

import pytest

from catalog.rules.drill_file import read_drill
from catalog.rules.plugins import read_plugin
from jobs.drills import drill
from jobs.rules.drills import Drilled, Fault, Verdict
from tests.drills.liars import liars

LIARS = {
    "drops_the_key": Fault.REPEATED,
    "forgets_soon": Fault.REPEATED_LATER,
    "forgets_at_restart": Fault.REPEATED_AFTER_RESTART,
    "writes_while_reading": Fault.WRITES_NOTHING,
    "keeps_busy": Fault.BUSY_NOT_KEPT,
    "retries_inside": Fault.BUSY_ASKED_ONCE,
    "ignores_cancel": Fault.CANCELLED,
    "write_4": Fault.REPEATED,  # one of five that are alike: it forgets to pass the key
    "acknowledges_and_acts": Fault.CANCEL_ACKNOWLEDGED,
    "shares_keys": Fault.ANOTHER_CALL,
    "keeps_the_key_first": Fault.KILLED_MID_WAY,
    "looks_then_acts": Fault.AT_ONCE,
}
TRUE = ("honest", "looks", "write_1", "write_2", "write_3", "write_5")
ALSO = {  # what follows from the one lie
    "drops_the_key": {Fault.REPEATED_LATER, Fault.REPEATED_AFTER_RESTART, Fault.AT_ONCE, Fault.REPLY_DROPPED}
    | {Fault.KILLED_AFTER, Fault.CANCELLED_LATE},
    "forgets_soon": {Fault.REPEATED_AFTER_RESTART, Fault.REPLY_DROPPED, Fault.KILLED_AFTER, Fault.CANCELLED_LATE},
    "forgets_at_restart": {Fault.KILLED_AFTER},
    "writes_while_reading": {Fault.KILLED_AFTER},
    "acknowledges_and_acts": {Fault.CANCELLED},
    "keeps_the_key_first": {Fault.EOF_MID_WAY, Fault.TERM_MID_WAY},
}
ALSO["write_4"] = ALSO["drops_the_key"]
ALL = (*LIARS, *TRUE)


@pytest.fixture(scope="module")
def drilled() -> Drilled:
    """All of them side by side: a drill waits far more than it works."""
    files = liars(*ALL)
    spec = read_plugin(files)
    only = [f"liars.{name}" for name in ALL]
    return drill(spec, read_drill(spec, files), files, only=only, side_by_side=len(ALL))


def failed(drilled: Drilled, function: str) -> set[Fault]:
    return {one.fault for one in drilled.findings if one.function == function and one.verdict is Verdict.FAILED}


@pytest.mark.timeout(400)
@pytest.mark.rule("D2")
@pytest.mark.parametrize("liar", LIARS)
def test_a_liar_is_named_with_its_fault_and_with_no_other(liar: str, drilled: Drilled) -> None:
    """CASES R14, R15, R17, R22, C13."""
    assert LIARS[liar] in failed(drilled, liar)
    assert failed(drilled, liar) <= {LIARS[liar]} | ALSO.get(liar, set())


@pytest.mark.timeout(400)
@pytest.mark.rule("D2")
@pytest.mark.parametrize("function", TRUE)
def test_who_keeps_what_it_declares_is_proven_with_a_control_for_every_fault(function: str, drilled: Drilled) -> None:
    mine = [one for one in drilled.findings if one.function == function]
    assert {one.verdict for one in mine} == {Verdict.PROVEN, Verdict.NOT_APPLICABLE}
    assert len(mine) == len(Fault) - 2  # of which two are of the whole server
    assert all(one.control for one in mine if one.verdict is Verdict.PROVEN)
    proven = {one.fault for one in mine if one.verdict is Verdict.PROVEN}
    if function != "looks":
        assert set(Fault) - proven == {
            Fault.WRITES_NOTHING,
            Fault.REPEATED_AFTER_A_DAY,
            Fault.CANCEL_ACKNOWLEDGED,
            Fault.EOF,
            Fault.TERM,
        }


@pytest.mark.timeout(400)
def test_what_is_told_of_a_liar_says_what_was_seen_and_what_to_do(drilled: Drilled) -> None:
    told = {(one.function, one.fault): one for one in drilled.findings}
    repeated = told["write_4", Fault.REPEATED]
    assert repeated.said == "2 effects under one key: its repeat acted again"
    assert "one transaction" in repeated.fix
    assert told["keeps_the_key_first", Fault.KILLED_MID_WAY].control.startswith(
        "its call was struck at its first progress"
    )
    assert told["honest", Fault.KILLED_MID_WAY].control.startswith("its call was struck while it ran")
    assert told["retries_inside", Fault.BUSY_ASKED_ONCE].said.startswith("the service was asked 3 times in one attempt")
