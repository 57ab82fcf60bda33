"""What changed between two listings, field by field."""

from dataclasses import replace
from typing import Any

import pytest

from catalog.rules.listing import listing
from catalog.rules.listing_diff import Change, Entry, Missing, Piece, compare, pieces

RAW: dict[str, Any] = {
    "name": "find",
    "title": "Find",
    "description": "Finds a book",
    "inputSchema": {"type": "object", "properties": {"isbn": {"type": "string"}}, "required": ["isbn"]},
    "annotations": {"readOnlyHint": True},
    "_meta": {"oz0/resume": True},
}


def entries(*raw: dict[str, Any]) -> list[Entry]:
    measured = listing(raw, protocol="2026-07-28", server_name="s", server_version="1")
    return [
        Entry(f.name, f.digest, f.title, f.description, f.input_schema, f.output_schema, f.annotations, f.meta)
        for f in measured.functions
    ]


@pytest.mark.rule("C3")
@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({"title": "Seek"}, Change("title", "Find", "Seek")),
        ({"description": "Finds a book."}, Change("description", "Finds a book", "Finds a book.")),
        ({"description": "Finds  a book"}, Change("description", "Finds a book", "Finds  a book")),
        ({"description": "Finds a boo\u200bk"}, Change("description", "Finds a book", "Finds a boo\u200bk")),
        ({"annotations": {"readOnlyHint": False}}, Change("annotations.readOnlyHint", True, False)),
        ({"annotations": {"readOnlyHint": 1}}, Change("annotations.readOnlyHint", True, 1)),
        ({"annotations": {}}, Change("annotations", {"readOnlyHint": True}, Missing.HERE)),
        ({"outputSchema": {"type": "object"}}, Change("outputSchema", Missing.HERE, {"type": "object"})),
        ({"_meta": {"oz0/resume": "yes"}}, Change("_meta.oz0/resume", True, "yes")),
        (
            {"inputSchema": RAW["inputSchema"] | {"properties": {"isbn": {"type": "number"}}}},
            Change("inputSchema.properties.isbn.type", "string", "number"),
        ),
        (
            {"inputSchema": RAW["inputSchema"] | {"required": []}},
            Change("inputSchema.required", ["isbn"], []),
        ),
    ],
)
def test_each_change_of_an_entry_is_shown_with_its_field_before_and_after(
    change: dict[str, Any], shown: Change
) -> None:
    diff = compare(entries(RAW), entries(RAW | change))
    assert (diff.added, diff.removed) == ((), ())
    assert diff.changed[0].changes == (shown,)


@pytest.mark.rule("C3")
def test_letters_composed_otherwise_are_a_change() -> None:
    diff = compare(entries(RAW | {"title": "Café"}), entries(RAW | {"title": "Cafe\u0301"}))
    assert len(diff.changed) == 1


@pytest.mark.rule("C3")
def test_order_alone_is_no_change() -> None:
    other = RAW | {"name": "look"}
    turned = {name: RAW[name] for name in reversed(RAW)}
    assert not compare(entries(RAW, other), entries(other, turned))


@pytest.mark.rule("C3")
def test_entries_come_and_go_and_a_rename_is_both() -> None:
    diff = compare(entries(RAW, RAW | {"name": "old", "title": "Old"}), entries(RAW | {"name": "seek"}, RAW))
    assert [(added.entry.name, added.was) for added in diff.added] == [("seek", "")]
    assert [entry.name for entry in diff.removed] == ["old"]
    renamed = compare(entries(RAW), entries(RAW | {"name": "seek"}))
    assert [(added.entry.name, added.was) for added in renamed.added] == [("seek", "find")]


def test_a_long_text_shows_the_place_of_the_change_and_not_the_whole() -> None:
    before = "a" * 500 + "read" + "b" * 500
    assert pieces(before, before.replace("read", "write")) == (
        Piece("cut", "440 characters"),
        Piece("same", "a" * 60),
        Piece("gone", "read"),
        Piece("new", "write"),
        Piece("same", "b" * 60),
        Piece("cut", "440 characters"),
    )
    assert pieces("a book", "a book.") == (Piece("same", "a book"), Piece("new", "."))
    assert pieces("", "new") == (Piece("new", "new"),)


def test_an_entry_with_the_same_digest_is_not_compared_further() -> None:
    (entry,) = entries(RAW)
    assert not compare([entry], [replace(entry, title="not covered by a digest that says it is the same")])
