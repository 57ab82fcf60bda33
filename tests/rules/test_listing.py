"""Digests of a listing, and what is wrong with an entry."""

from typing import Any

import pytest

from catalog.rules.listing import listing
from catalog.rules.servers import MeasuredListing

ENTRY: dict[str, Any] = {
    "name": "find",
    "title": "Find",
    "description": "Finds a book",
    "inputSchema": {"type": "object", "properties": {"isbn": {"type": "string"}}},
    "outputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
    "_meta": {"oz0/resume": True},
}


def measured(*entries: object) -> MeasuredListing:
    return listing(entries, protocol="2026-07-28", server_name="s", server_version="1")


@pytest.mark.rule("C2")
@pytest.mark.parametrize(
    "change",
    [
        {"name": "search"},
        {"title": "Seek"},
        {"description": "Finds a book."},
        {"inputSchema": {"type": "object"}},
        {"outputSchema": None},
        {"annotations": {"readOnlyHint": False}},
        {"annotations": {"readOnlyHint": "true"}},
        {"_meta": {}},
    ],
)
def test_an_entrys_digest_covers_all_that_is_seen_of_it(change: dict[str, Any]) -> None:
    """CASES C15."""
    before, after = measured(ENTRY), measured(ENTRY | change)
    assert before.functions[0].digest != after.functions[0].digest
    assert before.digest != after.digest


@pytest.mark.rule("C2")
def test_the_order_of_entries_and_of_keys_changes_no_digest() -> None:
    other = ENTRY | {"name": "buy"}
    turned = dict(reversed(other.items()))
    assert measured(ENTRY, other).digest == measured(turned, ENTRY).digest


def test_an_entry_with_an_integer_beyond_json_is_digested_all_the_same() -> None:
    huge = [ENTRY | {"inputSchema": {"type": "object", "maximum": bound}} for bound in (2**64, 2**64 + 1)]
    assert measured(huge[0]).digest != measured(huge[1]).digest


def test_entries_that_cannot_be_called_by_name_are_left_out_and_named() -> None:
    found = measured(
        ENTRY, {"inputSchema": {}}, {"name": "bare"}, 7, {"name": "x", "inputSchema": {}, "outputSchema": []}
    )
    assert [function.name for function in found.functions] == ["find"]
    assert found.problems == (
        "an entry has no name",
        "'bare' has no input schema",
        "an entry is not an object",
        "'x' has an output schema that is not an object",
    )


def test_a_name_listed_twice_names_nothing() -> None:
    found = measured(ENTRY, ENTRY | {"description": "another"}, ENTRY | {"name": "buy"})
    assert [function.name for function in found.functions] == ["buy"]
    assert found.problems == ("'find' is listed twice",)
