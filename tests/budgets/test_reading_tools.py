"""`usage_list`, `runs_list` and `run_find`: complete pages, the first unread cursor, and no match from half a list."""

import gzip
import json
from typing import Any

import pytest

from budgets.sessions.bounds import MIB
from tests.budgets.serving import MODES, called, fresh, lose, quick, saying, stall
from tests.servers.journals import Asked, Journal
from tests.servers.raw_http import Peer


def usage(*sizes: int, filler: int = 0) -> list[list[dict[str, Any]]]:
    """Pages of so many events each."""
    return [
        [{"event_id": f"e{page}-{row}", "note": "x" * filler} for row in range(size)] for page, size in enumerate(sizes)
    ]


def ids(found: dict[str, Any]) -> list[str]:
    return [row["event_id"] for row in found["data"]["usage"]]


@pytest.mark.rule("W2")
@pytest.mark.rule("W5")
@pytest.mark.parametrize("mode", MODES)
def test_ten_pages_are_read_empty_ones_too_and_the_cursor_of_the_eleventh_is_told(journal: Journal, mode: Any):
    journal.pages["usage"] = usage(1, 0, 0, 1, 1, 1, 1, 1, 1, 1)
    whole = called(journal, "usage_list", _mode=mode)
    assert whole["ok"]
    assert (len(ids(whole)), whole["data"]["complete"], whole["recovery"]["cursor"]) == (8, True, None)
    journal.pages["usage"] += usage(0, 2)
    cut = called(journal, "usage_list", _mode=mode)
    assert cut["error"]["code"] == "page_limit"
    assert (len(ids(cut)), cut["data"]["complete"], cut["recovery"]["cursor"]) == (8, False, "c10")
    rest = called(journal, "usage_list", cursor="c10", _mode=mode)
    assert (ids(rest), rest["recovery"]["cursor"]) == (["e1-0", "e1-1"], None)
    assert [one.query.get("cursor") for one in journal.asked[-2:]] == ["c10", "c11"]


async def endless(peer: Peer, asked: Asked) -> None:
    await peer.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        await peer.chunk(b" " * 65_536)


@pytest.mark.rule("W5")
@pytest.mark.parametrize(
    ("step", "code"),
    [
        (stall, "operation_deadline"),
        (endless, "response_size_limit"),
        (lose, "read_failed"),
        (saying("200 OK", gzip.compress(b"{}"), Content_Encoding="gzip"), "response_encoding_unsupported"),
        (saying("200 OK", b"{"), "invalid_response"),
        (saying("200 OK", {"usage": [], "next": 7}), "invalid_response"),
        (saying("200 OK", {"usage": [], "next": "c" * 4_097}), "cursor_size_limit"),
        (saying("500 Oops"), "status_500"),
        (saying("308 Elsewhere", Location="/"), "redirect_refused"),
        (saying("429 Slow", Retry_After="60"), "rate_limited"),
    ],
)
def test_a_read_that_breaks_off_keeps_its_complete_pages_and_the_first_unread_cursor(
    journal: Journal, step: Any, code: str
):
    journal.pages["usage"] = usage(1, 1, 1, 1)
    journal.script["GET usage"] = [None, None, step]
    found = called(journal, "usage_list", _bounds=quick(2.0 if code == "operation_deadline" else 30.0))
    assert found["error"]["code"] == code
    assert (ids(found), found["recovery"]["cursor"]) == (["e0-0", "e1-0"], "c2")


@pytest.mark.rule("W2")
def test_a_cursor_of_4096_characters_is_used_and_a_longer_one_is_not_sent(journal: Journal):
    journal.script["GET usage"] = [saying("200 OK", {"usage": [], "next": None})]
    longest = "c" * 4_096
    assert called(journal, "usage_list", cursor=longest)["ok"]
    assert journal.asked[0].query["cursor"] == longest
    found = called(journal, "usage_list", cursor=longest + "c")
    assert found["error"]["code"] == "cursor_size_limit"
    assert len(journal.asked) == 1
    journal.script["GET usage"] = [saying("200 OK", {"usage": [], "next": "c" * 4_096}), None]
    assert called(journal, "usage_list")["error"]["code"] != "cursor_size_limit"


@pytest.mark.rule("W2")
@pytest.mark.rule("W5")
def test_a_result_of_two_mebibytes_is_told_and_one_byte_more_leaves_out_its_data_and_keeps_the_cursor(journal: Journal):
    """Text and structured content, what is escaped in them, and 4,096 bytes for what the SDK adds."""
    from mcp.types import CallToolResult, TextContent

    def measured(found: dict[str, Any]) -> int:
        text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
        whole = CallToolResult(content=[TextContent(type="text", text=text)], structured_content=found, is_error=False)
        return len(whole.model_dump_json(by_alias=True).encode())

    def listed(note: str) -> dict[str, Any]:
        body = json.dumps({"usage": [{"event_id": "e0", "note": note}], "next": None}, ensure_ascii=False)
        journal.script["GET usage"] = [saying("200 OK", body.encode())]
        return called(journal, "usage_list", cursor="c0")

    empty = measured(listed(""))
    most = 2 * MIB - 4_096
    for note in ("x", "é", '"'):
        each = measured(listed(note)) - empty
        fit = (most - empty) // each
        found = listed(note * fit)
        assert found["ok"], note
        assert most - each < measured(found) <= most
        found = listed(note * (fit + 1))
        assert (found["error"]["code"], found["data"]) == ("response_size_limit", None)
        assert found["recovery"]["cursor"] == "c0"


@pytest.mark.rule("W5")
def test_a_repeated_cursor_ends_a_list_as_an_error(journal: Journal):
    journal.pages["usage"] = usage(1, 1)
    journal.script["GET usage"] = [None, saying("200 OK", {"usage": [{"event_id": "e1"}], "next": "c1"})]
    found = called(journal, "usage_list")
    assert found["error"]["code"] == "cursor_repeated"
    assert not found["data"]["complete"]
    assert len(journal.asked) == 2


def runs(*pages: list[str]) -> list[list[dict[str, Any]]]:
    return [
        [{"run_id": f"run_{page}{row}", "agent_run_id": name} for row, name in enumerate(names)]
        for page, names in enumerate(pages)
    ]


@pytest.mark.rule("W5")
@pytest.mark.parametrize("mode", MODES)
def test_a_name_is_found_only_by_reading_all_of_the_list(journal: Journal, mode: Any):
    journal.pages["runs"] = runs(["a"], ["nightly"], ["b"])
    found = called(journal, "run_find", name="nightly", _mode=mode)
    assert found["data"] == {
        "match": "unique",
        "run": {"run_id": "run_10", "agent_run_id": "nightly"},
        "candidates": [],
    }
    assert journal.count("GET runs") == 3
    journal.pages["runs"] = runs(["nightly"], ["nightly"])
    twice = called(journal, "run_find", name="nightly")
    assert (twice["error"]["code"], twice["data"]["match"]) == ("run_ambiguous", "ambiguous")
    none = called(journal, "run_find", name="daily")
    assert (none["error"]["code"], none["data"]["match"]) == ("run_not_found", "none")


@pytest.mark.rule("W5")
@pytest.mark.parametrize("cut", ["pages", "deadline", "broken", "repeated", "middle"])
def test_a_search_that_was_cut_short_never_claims_a_unique_match(journal: Journal, cut: str):
    journal.pages["runs"] = runs(["nightly"], *[["a"]] * (12 if cut == "pages" else 2))
    arguments: dict[str, Any] = {"name": "nightly"}
    if cut == "deadline":
        journal.script["GET runs"] = [None, stall]
        arguments["_bounds"] = quick(1.5)
    if cut == "broken":
        journal.script["GET runs"] = [None, lose]
    if cut == "repeated":
        journal.script["GET runs"] = [None, saying("200 OK", {"runs": [], "next": "c1"})]
    if cut == "middle":
        journal.pages["runs"] = runs(["a"], ["nightly"])
        arguments["cursor"] = "c1"
    found = called(journal, "run_find", **arguments)
    assert not found["ok"]
    assert (found["data"]["match"], found["data"]["run"]) == ("undecided", None)
    assert [one["agent_run_id"] for one in found["data"]["candidates"]] == ["nightly"]


def test_an_exact_id_needs_no_search(journal: Journal):
    journal.pages["usage"] = [[{"run_id": "run_7", "agent_run_id": "nightly"}]]
    found = called(journal, "run_find", run_id="run_7")
    assert found["data"]["run"] == {"run_id": "run_7", "agent_run_id": "nightly"}
    assert called(journal, "run_find", run_id="run_8")["error"]["code"] == "run_not_found"
    assert journal.names == ["GET usage"] * 2
    for arguments in ({}, {"name": "a", "run_id": "b"}, {"run_id": "b", "cursor": "c1"}):
        assert called(journal, "run_find", **arguments)["error"]["code"] == "invalid_arguments"


@pytest.mark.rule("W2")
def test_the_pages_of_a_search_for_a_name_are_of_the_same_ten(journal: Journal):
    journal.pages["runs"] = runs(*[["a"]] * 5, ["nightly"])
    journal.pages["usage"] = usage(*[1] * 6)
    found = called(journal, "usage_list", run="nightly")
    assert found["error"]["code"] == "page_limit"
    assert (journal.count("GET runs"), journal.count("GET usage")) == (6, 4)
    assert journal.asked[-1].query["run_id"] == "run_50" == found["data"]["run_id"]
    assert found["recovery"]["cursor"] == "c4"
    journal.pages["runs"] = runs(*[["a"]] * 11)
    found = called(journal, "usage_list", run="nightly")
    assert (found["error"]["code"], found["data"]["usage"], found["recovery"]["cursor"]) == ("page_limit", [], None)


@pytest.mark.rule("W5")
@pytest.mark.parametrize("kind", ["usage", "runs"])
def test_a_list_that_is_too_large_is_told_without_its_last_pages_and_is_read_on_from_the_first_of_them(
    journal: Journal, kind: str
):
    """Each page has its result twice, as text and structured, and what is quoted once more."""
    journal.pages[kind] = [[{"event_id": f"e{page}", "note": '"' * 120_000}] for page in range(6)]
    seen: list[str] = []
    arguments: dict[str, Any] = {}
    for _ in range(4):
        found = called(journal, f"{kind}_list", **arguments)
        seen += [row["event_id"] for row in found["data"][kind]]
        if found["ok"]:
            break
        assert (found["error"]["code"], found["data"]["complete"]) == ("response_size_limit", False)
        arguments = {"cursor": found["recovery"]["cursor"]}
    assert seen == [f"e{page}" for page in range(6)]


def test_the_first_page_of_a_call_is_short_so_that_each_call_gets_on(journal: Journal):
    """Rows as large as they can be: twenty fit into the answers and into the result, a hundred into neither."""
    row = {
        "model": "\\" * 2_048,
        "agent_run_id": "\x01" * 256,
        "tags": {f"{n}" + "\x01" * 63: "\x01" * 256 for n in range(10)},
    }

    async def rows(peer: Peer, asked: Asked) -> None:
        first, most = int(asked.query.get("cursor", "0")), int(asked.query["limit"])
        names = range(first, min(first + most, 70))
        after = str(names[-1] + 1) if names[-1] < 69 else None
        await peer.status("200 OK", {"usage": [row | {"event_id": f"e{name}"} for name in names], "next": after})

    journal.script["GET usage"] = [rows]
    seen: list[str] = []
    arguments: dict[str, Any] = {}
    for _ in range(5):
        found = called(journal, "usage_list", **arguments)
        seen += ids(found)
        if found["ok"]:
            break
        assert found["error"]["code"] == "response_size_limit"
        arguments = {"cursor": found["recovery"]["cursor"]}
    assert seen == [f"e{number}" for number in range(70)]


@pytest.mark.parametrize("line", ["404 No", "409 Conflict", "410 Gone", "422 Bad", "429 Slow", "500 Oops", "503 Busy"])
def test_what_is_only_read_says_nothing_of_what_was_done_before(journal: Journal, line: str):
    journal.script["GET"] = [saying(line, {"detail": {"code": "operation_expired"}}, Retry_After="60")]
    for tool, arguments in (
        ("usage_list", {}),
        ("budget_check_batch", {"operation_id": fresh(), "recover_only": True}),
    ):
        message = called(journal, tool, **arguments)["error"]["message"]
        assert "nothing" not in message
        assert "may have done" not in message


def test_a_list_with_half_a_character_is_not_believed_and_keeps_what_was_read(journal: Journal):
    journal.pages["usage"] = usage(1, 1)
    journal.script["GET usage"] = [None, saying("200 OK", b'{"usage": [{"tags": {"a": "\\ud800"}}], "next": null}')]
    found = called(journal, "usage_list")
    assert found["error"]["code"] == "invalid_response"
    assert (ids(found), found["recovery"]["cursor"]) == (["e0-0"], "c1")
