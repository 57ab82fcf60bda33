"""Servers: started once for all who wait, left alone after failures, replaced, listed in full, ended with the node."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from jobs.node import CannotMeasure, Node, NotOpened, Opened
from jobs.rules.backoff import before_start
from jobs.rules.orders import End
from jobs.rules.reasons import Reason
from tests.node.driving import Driven, driven, spec_of, until


def test_many_who_wait_for_one_server_share_one_start(tmp_path: Path) -> None:
    with driven("misbehaved", tmp_path, opened=False) as drive, ThreadPoolExecutor(20) as threads:
        answers = list(threads.map(lambda _: drive.node.open(drive.spec), range(20)))
        assert all(isinstance(answer, Opened) for answer in answers)
        (status,) = drive.node.servers()
        assert status.starts == 1


@pytest.mark.rule("C2")
def test_the_listing_is_all_pages_of_the_server_itself(misbehaved: Driven) -> None:
    listing = misbehaved.node.measure(misbehaved.spec)
    names = [function.name for function in listing.functions]
    assert names == sorted(names)
    assert {"asks_the_person", "wants_input"} < set(names)  # the first and the second page
    assert (listing.server_name, listing.server_version, listing.protocol) == ("misbehaved", "1.2", "2025-11-25")


@pytest.mark.parametrize("env", [{"BANNER": "1"}, {}])
def test_a_banner_before_the_protocol_does_no_harm(tmp_path: Path, env: dict[str, str]) -> None:
    """CASES I02."""
    with driven("misbehaved", tmp_path, env=env) as drive:
        assert drive.call("ok").end is End.ANSWERED
        (status,) = drive.node.servers()
        assert ("stdout: Welcome to my server!" in status.log) == bool(env)


def test_a_server_that_will_not_start_says_why_and_is_left_alone_for_longer_each_time(tmp_path: Path) -> None:
    with driven("misbehaved", tmp_path, opened=False, env={"DIES_AT_START": "1"}) as drive:
        answers = [drive.node.open(drive.spec) for _ in range(2)]
        assert [(answer.reason, answer.failures) for answer in answers] == [(Reason.SERVER_NOT_UP, n) for n in (1, 2)]
        assert [round(answer.retry_in) for answer in answers] == [1, 2]
        assert answers[0].detail == "The server's process ended with code 5."
        (status,) = drive.node.servers()
        assert (status.state, status.starts, status.failures) == ("down", 2, 2)
        assert "stderr: cannot find my configuration" in status.log


def test_a_server_that_dies_again_and_again_is_started_for_each_who_wants_it(misbehaved: Driven) -> None:
    for _life in range(3):
        misbehaved.open()
        assert misbehaved.call("effect_then_dies").end is End.BROKEN
    misbehaved.open()
    (status,) = misbehaved.node.servers()
    assert (status.starts, status.failures) == (4, 0)


@pytest.mark.parametrize(("failures", "wait"), [(0, 0), (1, 1), (2, 2), (3, 4), (6, 30), (10**6, 30)])
def test_the_back_off_doubles_and_ends_at_half_a_minute(failures: int, wait: float) -> None:
    assert before_start(failures) == wait


def test_a_program_that_is_not_there_is_named_with_the_path_searched(tmp_path: Path) -> None:
    """CASES I01."""
    with driven("misbehaved", tmp_path, opened=False, argv=("no-such-program", "x")) as drive:
        answer = drive.node.open(drive.spec)
        assert isinstance(answer, NotOpened)
        assert "no-such-program was not found in" in answer.detail and "/bin" in answer.detail
        with pytest.raises(CannotMeasure, match="no-such-program"):
            drive.node.measure(drive.spec)


def test_a_server_that_says_nothing_is_given_up_at_its_startup_limit_and_killed(tmp_path: Path) -> None:
    """CASES G09, when it is registered: listing it is a node's work, at which no page waits."""
    with driven("misbehaved", tmp_path, opened=False, env={"SILENT": "1"}, startup=1.0) as drive:
        began = time.monotonic()
        answer = drive.node.open(drive.spec)
        assert isinstance(answer, NotOpened)
        assert answer.detail == "The server was not ready within its 1 s to start."
        assert time.monotonic() - began < 5
        assert not _servers_of("misbehaved.py")


def test_another_version_replaces_a_server_once_its_calls_have_ended(misbehaved: Driven) -> None:
    order = misbehaved.order("error_when_cancelled")
    running = misbehaved.begin(order)
    newer = replace(misbehaved.spec, version="v2")
    assert isinstance(misbehaved.node.open(newer), Opened)
    assert {status.version for status in misbehaved.node.servers()} == {"v1", "v2"}
    assert not running.done()
    misbehaved.node.stop(order.attempt_id, Reason.STOPPED_CANCEL)
    assert running.result(5).end is End.STOPPED
    until(lambda: {status.version for status in misbehaved.node.servers()} == {"v2"}, "the older server's end")


def test_tenants_never_share_a_server(misbehaved: Driven) -> None:
    other = replace(misbehaved.spec, tenant=uuid4())
    assert isinstance(misbehaved.node.open(other), Opened)
    first, second = misbehaved.node.servers()
    assert first.pid != second.pid
    assert misbehaved.call("ok", server=replace(misbehaved.spec, tenant=uuid4())).reason == Reason.SERVER_NOT_UP


def test_a_servers_environment_holds_no_secret_of_the_studio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OZ0_SECRET_KEY", "the studio's own")
    with driven("misbehaved", tmp_path, env={"TOKEN": "the tool's"}) as drive:
        (server,) = _servers_of("misbehaved.py")
        environment = psutil.Process(server).environ()
        assert environment["TOKEN"] == "the tool's"
        assert "OZ0_SECRET_KEY" not in environment
        assert "the tool's" not in repr(drive.spec) + repr(drive.order("ok"))


@pytest.mark.rule("L11")
def test_a_node_that_stops_lets_calls_finish_within_the_grace(behaved: Driven) -> None:
    running = behaved.begin(behaved.order("slow", {"seconds": 0.5}))
    behaved.node.shutdown(10)
    assert running.result(1).end is End.ANSWERED


@pytest.mark.rule("L11")
def test_a_node_that_stops_settles_every_call_and_leaves_no_process(misbehaved: Driven) -> None:
    held = [misbehaved.begin(misbehaved.order("never")) for _ in range(3)]
    acknowledged = misbehaved.begin(misbehaved.order("error_when_cancelled"))
    began = time.monotonic()
    misbehaved.node.shutdown(0.2)
    assert time.monotonic() - began < 5
    outcomes = [running.result(1) for running in [*held, acknowledged]]
    assert {(outcome.end, outcome.reason) for outcome in outcomes} == {(End.LOST, Reason.NODE_STOPPING)}
    assert all(outcome.wire.went_out and outcome.end_known for outcome in outcomes)
    assert not _servers_of("misbehaved.py")
    assert misbehaved.call("ok").reason == Reason.NODE_STOPPING
    answer = misbehaved.node.open(misbehaved.spec)
    assert isinstance(answer, NotOpened)
    assert answer.reason == Reason.NODE_STOPPING


def test_a_server_that_ignores_its_end_is_killed(tmp_path: Path) -> None:
    stubborn = "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    stubborn += f"sys.path.insert(0, {str(Path(__file__).parent.parent / 'servers')!r}); "
    stubborn += "import misbehaved; misbehaved.serve(); time.sleep(600)"
    with driven("misbehaved", tmp_path, argv=(sys.executable, "-c", stubborn)) as drive:
        assert drive.call("ok").end is End.ANSWERED
        began = time.monotonic()
        drive.node.shutdown(0)
        assert time.monotonic() - began < 5
        assert not _servers_of("misbehaved.serve")


def test_a_node_starts_once() -> None:
    node = Node()
    node.start()
    with pytest.raises(RuntimeError, match="starts once"):
        node.start()
    node.shutdown(0)
    node.shutdown(0)


def test_a_spec_is_shared_by_what_it_is_and_not_by_its_secrets(tmp_path: Path) -> None:
    spec = spec_of("behaved", tmp_path / "ledger")
    assert replace(spec, env={"TOKEN": "x"}).key == spec.key
    assert replace(spec, credential_version="c2").key != spec.key


def _servers_of(word: str) -> list[int]:
    """The live processes below this one whose command line has the word, guardians left out."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            line = process.cmdline()
        except psutil.NoSuchProcess:
            continue
        if any(word in part for part in line) and not any("guardian" in part for part in line):
            found.append(process.pid)
    return found
