"""Sandboxed tools on a node: a server for each job, kept apart, one call at a time, ended with the call that is cut."""

import json
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from base import sandbox
from base.sandbox import Isolation
from catalog.rules.sandbox import Sandbox
from jobs.node import Opened
from jobs.rules.orders import End
from jobs.rules.reasons import Reason
from tests.node.driving import SERVERS, Driven, driven, until


@pytest.fixture
def boxed(tmp_path: Path) -> Iterator[Driven]:
    with driven("boxed", tmp_path, sandbox=Sandbox(memory=512), job=uuid4()) as drive:
        yield drive


def family(word: str = "boxed") -> set[psutil.Process]:
    """The live processes below this one with the word in their command line, also those in other sessions."""
    found = set()
    for process in psutil.Process().children(recursive=True):
        try:
            if any(word in part for part in process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                found.add(process)
        except psutil.NoSuchProcess:
            continue
    return found


def looked(drive: Driven, port: int, secret: Path) -> dict[str, object]:
    arguments = {"secret": str(secret), "host": "127.0.0.1", "port": port}
    return json.loads(drive.call("look", arguments).result.text)


def test_this_machine_can_keep_a_server_apart() -> None:
    """What the next tests stand on: install bubblewrap, or allow user namespaces, where this fails."""
    assert sandbox.measured() is not Isolation.PROCESS_GROUP


def test_a_sandboxed_server_reaches_nothing_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CASES S19. The control is the same server outside a sandbox, which reaches and sees what the other does not."""
    monkeypatch.setenv("OZ0_SECRET_KEY", "the studio's own")
    (tmp_path / "services.json").write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with driven("boxed", tmp_path) as outside:
            seen = looked(outside, port, tmp_path / "services.json")
        assert (seen["secret_is_there"], seen["reached"], seen["read_only"]) == (True, True, [])
        with driven("boxed", tmp_path, sandbox=Sandbox(), job=uuid4(), env={"TOKEN": "the tool's"}) as boxed:
            seen = looked(boxed, port, tmp_path / "services.json")
    assert (seen["secret_is_there"], seen["reached"], seen["root"]) == (False, False, False)
    assert seen["interfaces"] == ["lo"]
    assert seen["read_only"] == ["/", "/usr", str(SERVERS)]
    assert seen["processes"] < 10
    assert set(seen["environment"]) <= {*sandbox.HANDED_ON, "HOME", "TMPDIR", "TOKEN", "LEDGER"}


def test_the_network_is_there_for_a_plugin_that_asks_for_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with driven("boxed", tmp_path, sandbox=Sandbox(network=True), job=uuid4()) as boxed:
            assert looked(boxed, listener.getsockname()[1], tmp_path / "no")["reached"] is True


def test_a_machine_without_either_says_process_group_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "measured", lambda: Isolation.PROCESS_GROUP)
    with driven("boxed", tmp_path, sandbox=Sandbox(), job=uuid4()) as drive:
        assert drive.open().listing.isolation == "process_group"
        assert drive.call("eats", {"mebibytes": 1}).end is End.ANSWERED


def test_the_listing_says_what_kept_its_server_apart(boxed: Driven) -> None:
    assert boxed.open().listing.isolation == sandbox.measured()
    assert boxed.node.measure(replace(boxed.spec, job=None)).isolation == sandbox.measured()
    assert {status.job for status in boxed.node.servers()} == {boxed.spec.job}  # the listing's own server is gone


def test_each_job_has_a_server_of_its_own_that_keeps_its_scratch_folder(boxed: Driven) -> None:
    other = replace(boxed.spec, job=uuid4())
    assert isinstance(boxed.node.open(other), Opened)
    assert [boxed.call("who").result.text for _ in range(2)] == ["first", "again"]
    assert boxed.call("who", server=other).result.text == "first"


def test_a_jobs_server_gets_one_call_at_a_time(boxed: Driven) -> None:
    first = boxed.order("hangs")
    running = boxed.start(first)
    until(lambda: boxed.node.open_attempts(), "the first call")
    assert boxed.call("who").reason == Reason.NO_SLOT
    boxed.node.stop(first.attempt_id, Reason.STOPPED_CANCEL)
    running.result(20)


@pytest.mark.rule("L1")
@pytest.mark.rule("L2")
def test_a_stopped_call_has_ended_with_its_process_after_the_clean_up_time(boxed: Driven) -> None:
    """CASES L05: a function that cannot be interrupted ends with its server, and that is known."""
    order = boxed.order("hangs", cleanup=1.0)
    running = boxed.start(order)
    until(lambda: boxed.node.servers()[0].open_calls, "the call")
    before = family()
    assert before
    began = time.monotonic()
    boxed.node.stop(order.attempt_id, Reason.STOPPED_CANCEL)
    outcome = running.result(20)
    assert (outcome.end, outcome.reason, outcome.end_known) == (End.STOPPED, Reason.STOPPED_CANCEL, True)
    assert time.monotonic() - began >= 1.0
    assert not [process for process in before if process.is_running()]
    boxed.open()
    assert boxed.call("who").result.text == "first"  # the job's next call has a new server


@pytest.mark.rule("L10")
def test_a_stubborn_server_and_its_grandchild_are_gone_when_its_call_is_said_to_have_ended(tmp_path: Path) -> None:
    with driven("boxed", tmp_path, sandbox=Sandbox(), job=uuid4(), env={"STUBBORN": "1"}) as drive:
        order = drive.order("hangs", cleanup=0.2)
        running = drive.start(order)
        until(lambda: drive.node.servers()[0].open_calls, "the call")
        (grandchild,) = family("boxed-grandchild")
        before = family()
        drive.node.stop(order.attempt_id, Reason.STOPPED_CANCEL)
        assert running.result(20).end_known
        assert not grandchild.is_running()
        assert not [process for process in before if process.is_running()]


@pytest.mark.rule("L4")
@pytest.mark.rule("L5")
def test_a_call_at_its_time_limit_has_ended_with_its_process_before_the_next_attempt(boxed: Driven) -> None:
    before = family()
    outcome = boxed.call("hangs", timeout=2.0, own_limit=1.0)
    assert (outcome.end, outcome.end_known) == (End.TIMED_OUT, True)
    assert not [process for process in before if process.is_running()]


def test_the_server_of_a_job_that_is_over_is_ended(boxed: Driven) -> None:
    boxed.node.end_servers_of({uuid4()})
    assert boxed.call("who").end is End.ANSWERED
    assert boxed.spec.job is not None
    boxed.node.end_servers_of({boxed.spec.job})
    until(lambda: not boxed.node.servers() and not family(), "its end")


def test_an_idle_server_makes_room_for_another_jobs(tmp_path: Path) -> None:
    with driven("boxed", tmp_path, sandbox=Sandbox(), job=uuid4(), slots=1) as drive:
        other = replace(drive.spec, job=uuid4())
        assert isinstance(drive.node.open(other), Opened)
        until(lambda: [status.job for status in drive.node.servers()] == [other.job], "the first one's end")


def test_a_process_that_wants_more_memory_than_its_tool_has_ends_alone(boxed: Driven) -> None:
    other = replace(boxed.spec, job=uuid4())
    assert isinstance(boxed.node.open(other), Opened)
    assert boxed.call("eats", {"mebibytes": 100}).end is End.ANSWERED  # the control
    outcome = boxed.call("eats", {"mebibytes": 600})
    assert outcome.end is End.BROKEN
    assert "SIGABRT" in outcome.wire.detail
    assert boxed.call("who", server=other).end is End.ANSWERED
