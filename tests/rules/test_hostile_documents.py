"""Forty documents that are wrong on purpose: each is refused with its file, line and fix, fast and in little memory.

CASES S11: aliases that unfold. Of every kind of file that an author or a client writes: the manifest, agents, skills,
the measured listing, the drill, and a client's list of servers.
"""

import json
import time
import tracemalloc
from collections.abc import Iterator

import pytest

from catalog.rules.drill_file import drill_problems
from catalog.rules.findings import Severity
from catalog.rules.lint import lint_files
from catalog.rules.mcp_servers import BadServersFile, read_servers
from catalog.rules.plugins import read_plugin
from catalog.rules.problems import BadPlugin
from tests.rules.good_pack import FILES

SECONDS, BYTES = 1.0, 50 * 2**20
MANIFEST, AGENT, SKILL = "oz0-plugin.yaml", "agents/shelver.yaml", "skills/use.md"
LISTING, DRILL, SERVERS = "oz0-listing.json", "oz0-drill.yaml", "mcp.json"
HEAD = 'name: shelf\nversion: "1"\n'
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{two}: &{two} [{', '.join([f'*{one}'] * 9)}]\n" for one, two in zip("abcdefgh", "bcdefghi", strict=True)
)
GOOD = {
    **FILES,
    LISTING: b'{"format": 1, "sources": "", "tools": {"shelf": {"functions": []}}}',
    DRILL: b"tools:\n  - id: shelf\n",
}


def documents() -> Iterator[tuple[str, str, bytes, int, str]]:
    """What is wrong, the file, what stands in it, the line to be told, and words of what is said."""
    deep = "\n".join("  " * n + "a:" for n in range(40))
    yield "alias bomb", MANIFEST, (HEAD + BOMB).encode(), 7, "unfolds to more than"
    yield "alias to itself", MANIFEST, (HEAD + "tools: &t [*t]\n").encode(), 3, "before its &t has ended"
    yield "alias of nothing", MANIFEST, (HEAD + "tools: *gone\n").encode(), 3, "before its &gone"
    yield "merge key", MANIFEST, (HEAD + "tools:\n  - &one {id: a}\n  - <<: *one\n").encode(), 5, "merge keys"
    yield "Python object", MANIFEST, (HEAD + "tools: !!python/object/apply:os.system [id]\n").encode(), 3, "the tag"
    yield "tag of one's own", MANIFEST, (HEAD + "tool_tokens: !secret 5\n").encode(), 3, "the tag"
    yield "key twice", MANIFEST, (HEAD + "name: other\n").encode(), 3, "here twice, first on line 1"
    yield "two documents", MANIFEST, (HEAD + "---\n" + HEAD).encode(), 3, "a second document"
    yield "tab as indent", MANIFEST, (HEAD + "tools:\n\t- id: a\n").encode(), 4, "cannot start any token"
    yield "nested deeply", MANIFEST, (HEAD + "tools: " + "[" * 5_000).encode(), 3, "nested deeper"
    yield "zero byte", MANIFEST, (HEAD + "tool_tokens: \x005\n").encode(), 3, "U+0000"
    yield "control character", MANIFEST, (HEAD + "# \x07\n").encode(), 3, "U+0007"
    yield "Latin-1", MANIFEST, HEAD.encode() + "# caf\xe9\n".encode("latin-1"), 3, "not UTF-8"
    yield "UTF-16", MANIFEST, HEAD.encode("utf-16"), 1, "not UTF-8"
    yield "UTF-32", MANIFEST, HEAD.encode("utf-32"), 1, "not UTF-8"
    yield "enormous text", MANIFEST, (HEAD + "x: " + "y" * 2**20).encode(), 1, "larger than 256 KiB"
    yield "enormous file", MANIFEST, b"# " + b"y" * (30 * 2**20), 1, "larger than 256 KiB"
    yield "enormous key", MANIFEST, (HEAD + "k" * 200_000 + ": 1\n").encode(), 3, ""
    yield "many keys", MANIFEST, (HEAD + "".join(f"k{n}: 1\n" for n in range(20_000))).encode(), 8_001, "unfolds"
    yield (
        "many unknown keys",
        MANIFEST,
        (HEAD + "".join(f"nam{n}: 1\n" for n in range(7_000))).encode(),
        3,
        "not a known",
    )
    yield "huge number", MANIFEST, (HEAD + "tool_tokens: " + "9" * 100_000 + "\n").encode(), 3, "a number has more than"
    yield "float beyond all", MANIFEST, (HEAD + "tool_tokens: 1e999\n").encode(), 3, "whole number"
    yield (
        "not a number",
        MANIFEST,
        (HEAD + "tools: [{id: a, mcp: [x], timeout: .nan}]\n").encode(),
        3,
        "number of seconds",
    )
    yield "a list", MANIFEST, b"- name: shelf\n", 1, "expected a map"
    yield "a word", MANIFEST, b"shelf\n", 1, "expected a map"
    yield "nothing", MANIFEST, b"", 1, "expected a map"
    yield "unknown key", MANIFEST, (HEAD + "verison: 2\n").encode(), 3, "not a known key"
    yield "number as a key", MANIFEST, (HEAD + "1: x\n").encode(), 3, "not a known key"
    yield "list as a key", MANIFEST, (HEAD + "? [a, b]\n: x\n").encode(), 3, "a key is not plain text"
    yield (
        "no as a switch",
        MANIFEST,
        (HEAD + "tools: [{id: a, mcp: [x], sensitive: no}]\n").encode(),
        3,
        "true or false",
    )
    yield "a date as a version", MANIFEST, b"name: shelf\nversion: 2026-11-30 10:00\n", 2, "is not a version"
    yield "a number as a version", MANIFEST, b"name: shelf\nversion: 1.0\n", 2, "expected text"
    yield "program as text", MANIFEST, (HEAD + "tools: [{id: a, mcp: python x.py}]\n").encode(), 3, "expected a list"
    yield "tool twice", MANIFEST, (HEAD + "tools: [{id: a, mcp: [x]}, {id: a, mcp: [y]}]\n").encode(), 3, "used twice"
    yield "folder outside", MANIFEST, (HEAD + "agents: [../../etc]\n").encode(), 3, "not a folder inside"
    yield "agent that is a bomb", AGENT, ("name: clerk\n" + BOMB).encode(), 6, "unfolds to more than"
    yield "agent of objects", AGENT, b"name: clerk\nmodel: !!python/name:os.system x\n", 2, "the tag"
    yield "agent with wrong types", AGENT, b"name: [clerk]\nmodel: rehearsal\n", 1, "is not a name"
    yield "agent, nested", AGENT, f"name: clerk\ninput:\n{deep}\n".encode(), 35, "nested deeper"
    yield "skill that is a bomb", SKILL, f"---\nname: s\n{BOMB}---\nText.\n".encode(), 7, "unfolds to more than"
    yield "skill without an end", SKILL, b"---\nname: s\n", 1, "does not begin with its name"
    yield "skill of blank lines", SKILL, b"\n" * (8 * 2**20), 1, "larger than 256 KiB"
    yield "skill with a zero", SKILL, b"---\nname: s\ndescription: d\n---\nText\0.\n", 5, "NUL character"
    yield "skill of tags", SKILL, b"---\nname: !!python/object:x {}\n---\nText.\n", 2, "the tag"
    yield "drill that is a bomb", DRILL, BOMB.encode(), 5, "unfolds to more than"
    yield "drill of nobody's tool", DRILL, b"tools:\n  - id: other\n", 2, "is not a tool of this plugin"
    one = '{"format": 1, "sources": "",\n "tools": {"shelf": {"functions": [%s]}}}'
    yield (
        "listing key twice",
        LISTING,
        (one % '\n{"name": "a", "name": "b"}').encode(),
        3,
        "here twice, first on line 3",
    )
    yield "listing nested", LISTING, (one % ("[" * 100_000)).encode(), 2, "nested deeper"
    yield "listing of many", LISTING, (one % ("0," * 2**20 + "0")).encode(), 2, "holds more than 200,000 values"
    yield "listing, enormous", LISTING, (one % ("0," * 2**23)).encode(), 1, "larger than"
    yield "listing of numbers", LISTING, (one % ("9" * 100_000)).encode(), 2, "a number has more than"
    yield "listing of no number", LISTING, (one % "NaN").encode(), 2, "is no JSON"
    yield "listing, endless", LISTING, (one % "1e999").encode(), 2, "too large a number"
    yield "listing in UTF-16", LISTING, (one % "").encode("utf-16"), 1, "not UTF-8"
    yield "listing with a mark", LISTING, ("\ufeff" + one % "").encode(), 1, "byte order mark"
    yield "listing, half a character", LISTING, (one % '{"name": "\\ud800"}').encode(), 2, "half a character"
    yield "listing with a zero", LISTING, (one % '{"name": "\\u0000"}').encode(), 2, "zero character"
    yield "listing of a list", LISTING, b"[]", 1, "not of format"
    yield "listing, wrong inside", LISTING, (one % '{"name": 5}').encode(), 2, "an entry has no name"
    yield "listing, control character", LISTING, (one % '"a\x01b"').encode(), 2, "control character"
    yield "listing without an end", LISTING, (one % '"').encode(), 2, "no end"
    servers = '{"mcpServers": {\n%s}}'
    yield "servers twice", SERVERS, (servers % '"a": {}, "a": {}').encode(), 2, "is written twice"
    yield "servers nested", SERVERS, (servers % ('{"a":' * 50_000)).encode(), 2, "nested deeper"
    yield "servers in comments", SERVERS, (servers % (",/*" * 1_000_000)).encode(), 2, "JSON"
    yield "servers of slashes", SERVERS, (servers % ("/" * 1_000_000)).encode(), 2, "JSON"
    yield "servers, endless", SERVERS, (servers % '"a": {"command": 1e999}').encode(), 2, "too large a number"
    yield "servers, a list", SERVERS, b"[1, 2]", 0, "holds no list"


DOCUMENTS = [pytest.param(*rest, id=name) for name, *rest in documents()]


def problems_of(file: str, content: bytes) -> list[tuple[str, int, str, str]]:
    """File, line, message and fix of all that is wrong, by the readers that every command and page uses."""
    if file == SERVERS:
        try:
            read_servers(file, content.decode(), {})
        except BadServersFile as error:
            one = error.problem
            return [(one.file, one.line, one.message, one.fix)]
        return []
    files = {**GOOD, file: content}
    try:
        spec = read_plugin(files)
    except BadPlugin as error:
        return [(one.file, one.line, one.message, one.fix) for one in error.problems]
    found = [one for one in lint_files(spec, files) if one.severity is Severity.ERROR]
    assert [one.file for one in found] == [one.file for one in drill_problems(spec, files)] or file == LISTING
    return [(one.file, one.line, one.message, one.fix) for one in found]


def test_there_are_forty_of_them_and_more_and_the_good_ones_pass_the_same_readers() -> None:
    assert len(DOCUMENTS) >= 40
    for file in GOOD:
        assert problems_of(file, GOOD[file]) == []
    assert problems_of(SERVERS, json.dumps({"mcpServers": {"a": {"command": "x"}}}).encode()) == []


@pytest.mark.rule("D3")
@pytest.mark.parametrize(("file", "content", "line", "said"), DOCUMENTS)
def test_a_hostile_document_is_refused_with_file_line_and_fix_at_little_cost(
    file: str, content: bytes, line: int, said: str
) -> None:
    before = time.process_time()
    found = problems_of(file, content)
    spent = time.process_time() - before
    tracemalloc.start()
    try:
        problems_of(file, content)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [one for one in found if one[0] == file and one[1] == line and said in one[2] and one[3]], found[:3]
    assert all(len(message) < 1_000 for _, _, message, _ in found)
    assert spent < SECONDS
    assert peak < BYTES
