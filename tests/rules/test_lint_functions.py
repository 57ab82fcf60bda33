"""What lint finds in single functions: hints, key, cancelling, schemas; and in a tool's manual."""

from typing import Any

import pytest

from catalog.rules.findings import Finding
from catalog.rules.lint import lint, not_taken
from catalog.rules.listing import listing
from catalog.rules.listing_file import read, write
from catalog.rules.plugins import read_plugin

MANIFEST = b"""name: shop
version: "1"
tools:
  - id: shop
    mcp: [python, -m, shop]
    cleanup: 4
"""
READ = {"readOnlyHint": True, "destructiveHint": False}
ADDS = {"readOnlyHint": False, "destructiveHint": False}
DELETES = {"readOnlyHint": False, "destructiveHint": True}


def function(name: str = "look", **more: Any) -> dict[str, Any]:
    return {"name": name, "description": "Looks.", "inputSchema": {"type": "object"}, "annotations": READ} | more


def found(*raw: dict[str, Any], manifest: bytes = MANIFEST, **sources: str) -> list[Finding]:
    files = {"oz0-plugin.yaml": manifest} | {f"{name}.py": text.encode() for name, text in sources.items()}
    measured = listing(raw, protocol="2026-07-28", server_name="shop", server_version="1")
    kept = read(write(files, {"shop": measured}).encode())
    return lint(read_plugin(files), files, kept)


def codes(*raw: dict[str, Any], manifest: bytes = MANIFEST, **sources: str) -> list[tuple[str, str]]:
    return [(one.code, one.severity) for one in found(*raw, manifest=manifest, **sources)]


@pytest.mark.rule("T6")
@pytest.mark.rule("A1")
@pytest.mark.parametrize(
    ("hints", "severity"),
    [
        ({"readOnlyHint": True, "destructiveHint": True}, "error"),
        (ADDS | {"idempotentHint": "yes"}, "warning"),
        (READ | {"openWorldHint": 0}, "warning"),
    ],
)
def test_hints_that_contradict_each_other_or_are_no_booleans_are_found(hints: dict[str, Any], severity: str) -> None:
    assert codes(function(annotations=hints)) == [("tools.annotations", severity)]


def test_hints_that_were_pasted_are_found_and_three_reads_are_not() -> None:
    adding = [function(name, annotations=ADDS) for name in ("look", "note", "wipe")]
    assert codes(*adding) == [("tools.annotations", "warning")]
    assert codes(*adding[:2]) == []
    assert codes(*[function(name) for name in ("look", "find", "list_all")]) == []
    (finding,) = found(*[function(name) for name in ("look", "find", "delete_all")])
    assert finding.code == "tools.annotations"
    assert "delete_all" in finding.message


def test_a_read_that_leaves_destructive_hint_out_is_told_once_for_the_tool() -> None:
    """CASES C17."""
    bare = [function(name, annotations={"readOnlyHint": True}) for name in ("a", "b", "c", "d", "e")]
    (finding,) = found(*bare)
    assert finding.message.startswith("destructiveHint is left out by a, b, c and 2 more")


@pytest.mark.rule("U1")
def test_an_idempotent_write_without_the_promise_is_told_that_the_hint_alone_is_not_enough() -> None:
    """CASES R13."""
    idempotent = ADDS | {"idempotentHint": True}
    (finding,) = found(function(annotations=idempotent))
    assert (finding.code, finding.severity) == ("tools.key", "warning")
    assert "the hint alone makes nothing safe to repeat" in finding.message
    assert codes(function(annotations=idempotent, _meta={"oz0/idempotency_key": True})) == []
    assert codes(function(annotations=idempotent, _meta={"oz0/idempotency_key": "true"})) == [("tools.key", "warning")]
    assert codes(function(annotations=READ | {"idempotentHint": True})) == []


def test_a_key_that_the_model_is_to_fill_in_is_told() -> None:
    """CASES R22."""
    schema = {"type": "object", "properties": {"idempotency_key": {"type": "string"}}}
    (finding,) = found(function(inputSchema=schema))
    assert finding.code == "tools.key"
    assert "stays the same" in finding.fix


SOURCE = """
import anyio, time
CLEANUP = 9
@server.tool()
def stubborn(): pass
@server.tool()
def asks():
    anyio.from_thread.check_cancelled()
@server.tool(name="listed_so")
async def waits():
    time.sleep(9)
@server.tool()
async def shielded():
    try: pass
    finally:
        with anyio.move_on_after(2, shield=True): pass
@server.tool()
async def too_long():
    with anyio.move_on_after(CLEANUP, shield=True): pass
@server.tool()
async def endless():
    with anyio.CancelScope(shield=True): pass
"""


@pytest.mark.rule("D5")
def test_functions_that_cannot_be_stopped_in_time_are_found_at_their_line() -> None:
    names = ("stubborn", "asks", "listed_so", "shielded", "too_long", "endless")
    listed = [function(name, annotations=ADDS | {"openWorldHint": at % 2 == 0}) for at, name in enumerate(names)]
    told = {one.key: (one.line, one.code, one.file) for one in found(*listed, shop=SOURCE)}
    assert told == {
        "shop.stubborn": (5, "tools.cancel", "shop.py"),
        "shop.listed_so": (11, "tools.cancel", "shop.py"),
        "shop.too_long": (19, "tools.cancel", "shop.py"),
        "shop.endless": (22, "tools.cancel", "shop.py"),
    }
    sandboxed = MANIFEST + b"    sandbox: true\n"
    assert "shop.stubborn" not in {one.key for one in found(*listed, manifest=sandboxed, shop=SOURCE)}
    assert codes(function("stubborn"), shop=SOURCE) == []  # a read: nothing of it lands


WHOLES = """
@server.tool()
def file(path: str): return Path(path).read_text()
@server.tool()
async def page(address: str):
    with opened(address) as found:
        return json.dumps(list(found.fetchall()))
@server.tool()
def cut(path: str): return Path(path).read_text()[:1000]
@server.tool()
def some(path: str): return open(path).read(1000)
@server.tool()
def counted(path: str): return len(Path(path).read_bytes())
@server.tool()
async def decoded(): return (await body.read()).decode()
"""


def test_answers_that_are_as_large_as_what_is_read_are_told_at_their_line() -> None:
    """CASES I05."""
    listed = [function(name) for name in ("file", "page", "cut", "some", "counted", "decoded")]
    told = {one.key: (one.line, one.code) for one in found(*listed, shop=WHOLES)}
    assert told == {
        "shop.file": (3, "tools.answer"),
        "shop.page": (7, "tools.answer"),
        "shop.decoded": (15, "tools.answer"),
    }
    (finding,) = found(function("file"), shop=WHOLES)
    assert "all that Path(path).read_text() gives: of more than 10 MiB nothing is kept" in finding.message


def test_a_source_that_python_cannot_read_is_passed_over() -> None:
    assert codes(function(), shop="@server.tool(\ndef look(") == []


@pytest.mark.rule("T6")
@pytest.mark.parametrize(
    ("more", "severity", "said"),
    [
        ({"inputSchema": {"type": "object", "properties": {"a": {"$ref": "https://a.example/b"}}}}, "error", "outside"),
        ({"inputSchema": {"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}}}, "error", "not in it"),
        ({"inputSchema": {"type": "object", "required": "a"}}, "error", "not of type"),
        ({"inputSchema": {"type": "string"}}, "error", "object"),
        ({"inputSchema": {"type": "object", "oneOf": [{}]}}, "warning", "some providers refuse"),
        ({"outputSchema": {"type": "object", "minProperties": -1}}, "error", "output schema"),
    ],
)
def test_schemas_that_cannot_be_used_are_found(more: dict[str, Any], severity: str, said: str) -> None:
    (finding,) = found(function(**more))
    assert (finding.code, finding.severity) == ("tools.schema", severity)
    assert said in finding.message
    inside = {"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"type": "string"}}}
    assert codes(function(inputSchema=inside)) == []


def test_what_a_listing_leaves_out_is_an_error_and_a_server_that_is_down_is_told_with_its_words() -> None:
    measured = listing([{"name": "odd"}], protocol="", server_name="", server_version="")
    told = not_taken([], {"shop": measured}, {"bank": "It exited: no ledger today."})
    assert [(one.code, one.severity, one.key) for one in told] == [
        ("tools.schema", "error", "shop"),
        ("listing.missing", "warning", "bank"),
    ]
    assert "'odd' has no input schema" in told[0].message
    assert "no ledger today" in told[1].message


@pytest.mark.rule("M4")
def test_a_manual_past_2000_tokens_is_warned_about() -> None:
    manifest = MANIFEST + b"    manual: [shop-well]\nskills: [skills/]\n"

    def told(words: int) -> list[str]:
        skill = f"---\nname: shop-well\ndescription: How.\n---\n{'word ' * words}"
        files = {"oz0-plugin.yaml": manifest, "skills/shop-well.md": skill.encode()}
        measured = listing([function()], protocol="", server_name="", server_version="")
        kept = read(write(files, {"shop": measured}).encode())
        return [one.code for one in lint(read_plugin(files), files, kept)]

    assert told(1_900) == []
    assert told(2_100) == ["tools.manual"]
