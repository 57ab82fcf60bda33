"""Finding functions by words: what comes first, and that it is always the same."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.rules.looking_up import Entry, near, shelve

ENTRIES = (
    Entry("billing__charge", "Charge an order once.", ("order_id", "amount")),
    Entry("billing__refund", "Pay money back to a customer.", ("order_id", "amount")),
    Entry("billing__list_ledger", "List what was charged and paid back.", ("after",)),
    Entry("repo__git_log", "Shows the commit logs.", ("repo_path", "max_count")),
    Entry("repo__git_diff_unstaged", "Shows changes that are not yet staged.", ("repo_path",)),
    Entry("archive__searchDocuments", "Looks through the archive page by page.", ("words",)),
    Entry("depot__hon", "日本語の本を検索します", ()),
    Entry("depot__get", "", ()),
)
SHELF = shelve(ENTRIES)


@pytest.mark.rule("T4")
@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("charging an order", "billing__charge"),
        ("how do I give the money back?", "billing__refund"),
        ("refund", "billing__refund"),
        ("the commits of a repository", "repo__git_log"),
        ("git diff", "repo__git_diff_unstaged"),
        ("serach documents", "archive__searchDocuments"),
        ("max count", "repo__git_log"),
        ("LEDGER", "billing__list_ledger"),
        ("billing.charge", "billing__charge"),
        ("depot__get", "depot__get"),
        ("検索", "depot__hon"),
    ],
)
def test_what_fits_the_words_best_comes_first(query: str, first: str) -> None:
    assert SHELF.ranked(query)[0] == first


@pytest.mark.rule("T4")
def test_what_fits_no_word_is_not_found_and_no_word_finds_all_by_name() -> None:
    assert SHELF.ranked("zebra crossing") == []
    assert SHELF.ranked("") == SHELF.ranked("?!") == sorted(entry.name for entry in ENTRIES)
    assert shelve(()).ranked("anything") == []


@given(st.text(max_size=60), st.randoms())
def test_the_order_depends_on_nothing_but_the_words_and_the_functions(query: str, dice: random.Random) -> None:
    mixed = list(ENTRIES)
    dice.shuffle(mixed)
    found = SHELF.ranked(query)
    assert shelve(mixed).ranked(query) == found
    assert len(set(found)) == len(found)


def test_five_thousand_functions_are_looked_through_in_a_moment_whatever_is_asked() -> None:
    shelf = shelve(
        Entry(f"tool_{n % 50}__do_{n}_{n % 97}", f"Does the thing number {n}, with word{n % 1_000} in it.", ("path",))
        for n in range(5_000)
    )
    began = time.process_time()
    assert shelf.ranked("thing number 4711")[0].startswith("tool_11__do_4711_")
    shelf.ranked(" ".join(f"mispelt{n}" for n in range(400)))
    assert time.process_time() - began < 2


def test_names_spelt_nearly_alike_are_near() -> None:
    names = [entry.name for entry in ENTRIES]
    assert near("billing.chrage", names)[0] == "billing__charge"
    assert near("refund", names) == ["billing__refund"]
    assert near("", names) == near("quite_another", names) == []
