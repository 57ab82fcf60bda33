"""A call that is stopped: by its deadline, a cancel, or the end of its client's side, wherever it is (RULES W4)."""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.budgets.serving import (
    CHECK,
    MODES,
    STARTS,
    USED,
    called,
    fresh,
    program,
    quick,
    saying,
    stall,
)
from tests.repo.tree import ROOT
from tests.servers.journals import Asked, Journal
from tests.servers.raw_http import Peer
from tests.waiting import until

PLACES = ("stream", "page", "retry", "recording")
WAITS = saying("503 Busy", Retry_After="2")


async def endless(peer: Peer, asked: Asked) -> None:
    await peer.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    try:
        while True:
            await peer.chunk(b" ")
            await asyncio.sleep(0.01)
    except ConnectionError:
        asked.closed.set()


def at(journal: Journal, place: str) -> tuple[str, dict[str, Any], list[str]]:
    """A call that stands in that place once the journal was asked for the last of these."""
    journal.denied = {0}
    journal.pages["usage"] = [[{"event_id": "e0"}], [{"event_id": "e1"}], [{"event_id": "e2"}]]
    journal.script = {}
    del journal.asked[:]
    match place:
        case "stream":
            journal.script["GET usage"] = [None, endless]
            return "usage_list", {}, ["GET usage"] * 2
        case "page":
            journal.script["GET usage"] = [None, stall]
            return "usage_list", {}, ["GET usage"] * 2
        case "retry":
            journal.script["GET usage"] = [None, WAITS, None]
            return "usage_list", {}, ["GET usage"] * 2
        case _:
            journal.script["POST ingest"] = [WAITS, None]
            arguments = {"operation_id": fresh(), "checks": [CHECK]}
            return "budget_check_batch", arguments, ["POST check/batches", "POST ingest"]


@pytest.mark.rule("W1")
@pytest.mark.rule("W4")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("place", PLACES)
def test_at_the_deadline_the_code_the_data_and_the_cursor_are_told_and_nothing_follows(
    journal: Journal, place: str, mode: Any
):
    tool, arguments, asked = at(journal, place)
    began = time.monotonic()
    found = called(journal, tool, **arguments, _mode=mode, _bounds=quick(1.2))
    assert time.monotonic() - began < 10
    assert found["error"]["code"] == "operation_deadline"
    if place == "recording":
        assert found["data"]["items"][0]["state"] == found["recovery"]["items"][0]["state"] == "completed"
        assert found["recovery"]["recording"] == "unknown"
    else:
        assert [row["event_id"] for row in found["data"]["usage"]] == ["e0"]
        assert found["recovery"]["cursor"] == "c1"
    threading.Event().wait(2.2 if place in ("retry", "recording") else 0)
    assert journal.names == asked


@pytest.mark.rule("W4")
@pytest.mark.parametrize("mode", MODES)
def test_after_a_cancel_nothing_follows_and_the_server_goes_on(journal: Journal, mode: Any, tmp_path: Path):
    """One server, cancelled in each place; what it answers afterwards is the control."""

    async def later(peer: Peer, asked: Asked) -> None:
        await asyncio.sleep(2.2)  # past the wait of a second try
        await journal.answer(peer, asked)

    async def whole() -> None:
        async with program(journal, tmp_path, mode=mode) as client:
            for place in PLACES:
                tool, arguments, asked = at(journal, place)
                task = asyncio.create_task(client.call_tool(tool, arguments))
                await asyncio.to_thread(until, lambda a=asked: journal.names == a, f"{place} was not reached")
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                if place in ("stream", "page"):
                    assert await asyncio.to_thread(journal.asked[-1].closed.wait, 20), f"{place}: still connected"
                journal.script["GET runs"] = [later if place in ("retry", "recording") else None]
                assert not (await client.call_tool("runs_list", {})).is_error
                assert journal.names == [*asked, "GET runs"], place

    asyncio.run(whole())


def lines(tool: str, arguments: dict[str, Any], mode: str) -> list[dict[str, Any]]:
    """What a client writes to have a tool called."""
    params: dict[str, Any] = {"name": tool, "arguments": arguments}
    info = {"name": "test", "version": "1"}
    if mode == "legacy":
        start = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
        return [
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": start},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params},
        ]
    kept = {"protocolVersion": mode, "clientInfo": info, "clientCapabilities": {}}
    params["_meta"] = {f"io.modelcontextprotocol/{name}": value for name, value in kept.items()}
    return [{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}]


def started(journal: Journal, home: Path, **env: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", STARTS.format(seconds=30), "--profile", "full", "--studio", journal.url]
    every = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], "OZ0_BUDGET_KEY": "key-1", **env}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=home, env=every, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)


def asks(process: "subprocess.Popen[bytes]", tool: str, arguments: dict[str, Any], mode: str) -> None:
    assert process.stdin is not None
    for line in lines(tool, arguments, mode):
        process.stdin.write(json.dumps(line).encode() + b"\n")
    process.stdin.flush()


@pytest.mark.rule("W4")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("place", PLACES)
def test_when_its_client_has_gone_the_server_ends_and_nothing_follows(
    journal: Journal, place: str, mode: str, tmp_path: Path
):
    tool, arguments, asked = at(journal, place)
    with started(journal, tmp_path) as process:
        asks(process, tool, arguments, mode)
        until(lambda: journal.names == asked, f"{place} was not reached")
        assert process.stdin is not None
        process.stdin.close()
        began = time.monotonic()
        assert process.wait(20) == 0
        assert time.monotonic() - began < 10
    assert journal.names == asked


@pytest.mark.rule("S11")
@pytest.mark.rule("W4")
def test_what_the_journal_admitted_stays_admitted_when_its_client_goes(journal: Journal, tmp_path: Path):
    """The reply was lost with the client: the id that it kept finds what was reserved."""
    taken = threading.Event()

    async def admit(peer: Peer, asked: Asked) -> None:
        journal.operations[asked.body["operation_id"]] = journal.batch(asked.body)
        taken.set()
        await stall(peer, asked)

    journal.script["POST check/batches"] = [admit]
    operation = fresh()
    with started(journal, tmp_path) as process:
        asks(process, "budget_check_batch", {"operation_id": operation, "checks": [CHECK]}, "legacy")
        assert taken.wait(20)
        assert process.stdin is not None
        process.stdin.close()
        process.wait(20)
    found = called(journal, "budget_check_batch", operation_id=operation, recover_only=True)
    assert found["recovery"]["items"][0]["reservation_id"] == "res-0"
    assert journal.count("POST check/batches") == 1


@pytest.mark.rule("W4")
def test_a_worker_in_the_operating_system_delays_the_end_and_the_result_says_so(journal: Journal, tmp_path: Path):
    """The key's file is a pipe that nobody writes to: reading it cannot be ended from here."""
    pipe = tmp_path / "key"
    os.mkfifo(pipe)
    command = [sys.executable, "-c", STARTS.format(seconds=0.5), "--profile", "full", "--studio", journal.url]
    env = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], "OZ0_BUDGET_KEY_FILE": str(pipe)}
    with subprocess.Popen(command, cwd=tmp_path, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        asks(
            process, "budget_confirm", {"reservation_id": "01a22e93-7b6d-7554-ad9f-74b078da5299", **USED}, "2026-07-28"
        )
        assert process.stdout is not None
        assert process.stdin is not None
        told = json.loads(process.stdout.readline())["result"]["structuredContent"]
        assert (told["error"]["code"], told["error"]["worker_may_delay_exit"]) == ("operation_deadline", True)
        assert told["recovery"]["settlement"] == "not_submitted"
        process.stdin.close()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
        pipe.write_text("key-1")
        assert process.wait(20) == 0
    assert journal.asked == []
