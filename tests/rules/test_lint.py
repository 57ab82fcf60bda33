"""The measured listing beside a manifest, and what lint finds by it."""

import json
from dataclasses import replace
from typing import Any

import pytest

from catalog.rules.findings import Severity
from catalog.rules.lint import lint
from catalog.rules.listing import listing
from catalog.rules.listing_file import LISTING_FILE, BadListingFile, read, write
from catalog.rules.plugins import read_plugin

MANIFEST = b"""name: shop
version: "1"
tools:
  - id: shop
    mcp: [python, -m, shop]
agents: [agents/]
"""
CLERK = b"""name: clerk
model: rehearsal
functions: ["shop.*"]
limits: {tool_tokens: 40}
rehearsal: [{say: done}]
"""
FILES = {"oz0-plugin.yaml": MANIFEST, "agents/clerk.yaml": CLERK, "shop.py": b"print()"}
LOOK: dict[str, Any] = {
    "name": "look",
    "description": "Looks at the shelf.",
    "inputSchema": {"type": "object", "properties": {"title": {"type": "string"}}},
    "annotations": {"readOnlyHint": True, "destructiveHint": False},
    "_meta": {"oz0/resume": True},
}


def measured(*raw: dict[str, Any]) -> bytes:
    found = listing(raw, protocol="2026-07-28", server_name="shop", server_version="1")
    return write(FILES, {"shop": found}).encode()


def found(*raw: dict[str, Any], files: dict[str, bytes] = FILES) -> dict[str, Severity]:
    return {one.code: one.severity for one in lint(read_plugin(files), files, read(measured(*raw)))}


@pytest.mark.rule("T5")
def test_the_listing_file_keeps_all_that_an_entrys_digest_covers_and_is_the_same_for_the_same_listing() -> None:
    other = LOOK | {"name": "note", "outputSchema": {"type": "object"}, "title": "Note"}
    kept = read(measured(LOOK, other))
    entries = listing([LOOK, other], protocol="", server_name="", server_version="").functions
    assert kept.tools == {"shop": tuple(sorted(entries, key=lambda one: one.name))}
    assert measured(LOOK, other) == measured(other, LOOK)


@pytest.mark.rule("T5")
def test_without_a_listing_lint_says_so_and_checks_nothing() -> None:
    (finding,) = lint(read_plugin(FILES), FILES, None)
    assert (finding.code, finding.severity) == ("listing.missing", "warning")
    assert "were not checked" in finding.message


@pytest.mark.rule("T5")
def test_a_listing_older_than_the_sources_is_told_and_its_own_file_does_not_age_it() -> None:
    with_listing = FILES | {LISTING_FILE: measured(LOOK)}
    assert "listing.old" not in found(LOOK, files=with_listing)
    assert found(LOOK, files=FILES | {"shop.py": b"print(1)"})["listing.old"] == "warning"


@pytest.mark.rule("T3")
@pytest.mark.rule("T2")
def test_an_agent_over_its_budget_is_an_error_and_a_long_definition_a_warning() -> None:
    assert found(LOOK) == {}
    long = LOOK | {"description": "word " * 1_600}
    assert found(long) == {"tools.budget": "error", "tools.tokens": "warning"}


@pytest.mark.rule("T3")
def test_a_plugin_over_its_own_budget_is_an_error_that_names_its_manifest() -> None:
    spec = replace(read_plugin(FILES), tool_tokens=10, agents=())
    (finding,) = lint(spec, FILES, read(measured(LOOK)))
    assert (finding.file, finding.key, finding.code) == ("oz0-plugin.yaml", "tool_tokens", "tools.budget")


@pytest.mark.rule("C4")
@pytest.mark.rule("T6")
def test_an_undeclared_function_is_a_warning_with_the_annotation_to_paste() -> None:
    files, kept = FILES, read(measured(LOOK, LOOK | {"name": "post", "annotations": {}}))
    (finding,) = [one for one in lint(read_plugin(files), files, kept) if one.code == "tools.undeclared"]
    assert (finding.severity, finding.key) == ("warning", "shop.post")
    assert "it has no annotations, so nobody knows whether it changes anything" in finding.message
    assert "    read_only_hint=True,  # it changes nothing" in finding.fix


@pytest.mark.rule("T5")
def test_a_server_that_was_not_listed_is_told_and_a_remote_one_is_not_expected_to_be() -> None:
    more = MANIFEST.replace(b"agents:", b"  - {id: bank, mcp: [bank]}\n  - {id: far, url: https://a.example/}\nagents:")
    files = FILES | {"oz0-plugin.yaml": more}
    missing = [one for one in lint(read_plugin(files), files, read(measured(LOOK))) if one.code == "listing.missing"]
    assert [one.key for one in missing] == ["bank"]


@pytest.mark.rule("C1")
def test_a_name_that_no_provider_takes_is_an_error_by_name() -> None:
    names = ["a.b", "a/b", "a b", "é", "x" * 59]
    bad = [LOOK | {"name": name} for name in names]
    keys = {one.key for one in lint(read_plugin(FILES), FILES, read(measured(*bad))) if one.code == "tools.names"}
    assert keys == {f"shop.{name}" for name in names}


@pytest.mark.rule("C1")
def test_two_long_names_alike_at_their_beginning_are_both_named() -> None:
    """CASES C09."""
    alike = [LOOK | {"name": "x" * 60 + end} for end in "ab"]
    keys = {one.key for one in lint(read_plugin(FILES), FILES, read(measured(*alike))) if one.code == "tools.names"}
    assert len(keys) == 2


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{}", b'{"format": 2}', b'{"format": 1, "sources": "x", "tools": {"a": {"functions": [1]}}}'],
)
def test_a_damaged_listing_file_is_refused(content: bytes) -> None:
    with pytest.raises(BadListingFile):
        read(content)


def test_a_listing_file_that_was_edited_is_not_believed_in_its_digests() -> None:
    whole = json.loads(measured(LOOK))
    whole["tools"]["shop"]["functions"][0]["description"] = "Something else."
    (kept,) = read(json.dumps(whole).encode()).tools["shop"]
    (true,) = read(measured(LOOK)).tools["shop"]
    assert kept.digest != true.digest
