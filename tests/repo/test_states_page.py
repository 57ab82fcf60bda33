"""The tables of moves are those that were agreed on, and the page drawn from them is the one in docs/."""

from collections.abc import Mapping

import pytest

from tests.repo.states_page import MACHINES, PAGE, machine, page

# Written out by hand from docs/machines.md §1, not read from the code: a move that is not there must not creep in.
AGREED: Mapping[str, Mapping[str, str]] = {
    "call": {
        "new": "held queued REFUSED ERRORED SUCCEEDED",
        "held": "queued REFUSED CANCELED held unknown",
        "queued": "running held REFUSED CANCELED FAILED unknown",
        "running": "SUCCEEDED ERRORED FAILED retrying unknown cancelling",
        "retrying": "running held FAILED unknown CANCELED",
        "unknown": "queued held HAPPENED CANCELED FAILED",
        "cancelling": "CANCELED SUCCEEDED ERRORED",
    },
    "job": {
        "new": "queued",
        "queued": "running cancelling",
        "running": "waiting COMPLETED FAILED CANCELED cancelling",
        "waiting": "running COMPLETED FAILED CANCELED cancelling",
        "cancelling": "CANCELED FAILED",
    },
    "attempt": {
        "new": "open",
        "open": "answered busy not_made timed_out broken unreadable lost stopped",
    },
    "hold": {
        "new": "open",
        "open": "answered withdrawn expired",
    },
    "session": {
        "new": "starting",
        "starting": "running stopped",
        "running": "ended lost stopped",
        "lost": "settling",
        "settling": "starting asking stopped",
        "asking": "starting ended stopped",
    },
    "turn": {
        "new": "asked",
        "asked": "answered failed lost busy",
        "lost": "asked",
        "busy": "asked",
    },
    "node": {
        "new": "alive",
        "alive": "draining lost",
        "draining": "gone lost",
    },
}
# A job is drawn as a chain that may be left early; an end that the core does not use from *waiting* it does not have.
CHAINS = {"job"}


def moves_of(name: str) -> set[tuple[str, str]]:
    _, starts, moves = machine(name)
    first = {("new", start.value) for start in starts}
    return first | {(old.value, new.value) for old, targets in moves.items() for new in targets}


def agreed_moves_of(name: str) -> set[tuple[str, str]]:
    return {(old, new) for old, targets in AGREED[name].items() for new in targets.split()}


@pytest.mark.parametrize("name", MACHINES)
def test_no_machine_has_a_move_that_was_not_agreed_on(name: str) -> None:
    extra = moves_of(name) - agreed_moves_of(name)
    assert not extra, f"{name}: not in docs/machines.md: {sorted(extra)}"


@pytest.mark.parametrize("name", [name for name in MACHINES if name not in CHAINS])
def test_no_agreed_move_is_missing(name: str) -> None:
    missing = agreed_moves_of(name) - moves_of(name)
    assert not missing, f"{name}: in docs/machines.md and not in the tables: {sorted(missing)}"


@pytest.mark.parametrize("name", MACHINES)
def test_every_state_can_be_reached(name: str) -> None:
    words, starts, moves = machine(name)
    reached = set(starts)
    while more := {new for old in reached for new in moves.get(old, frozenset())} - reached:
        reached |= more
    assert reached == set(words)


@pytest.mark.parametrize("name", ["call", "job"])
def test_small_letters_move_and_capitals_are_final(name: str) -> None:
    words, _, moves = machine(name)
    assert {word for word in words if word.value.isupper()} == set(words) - moves.keys()
    assert all(moves.values())


def test_the_page_is_drawn_from_the_tables() -> None:
    assert PAGE.read_text() == page(), (
        "docs/states.md is not what the tables say: run `make states` and look at the diff"
    )
