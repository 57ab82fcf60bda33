"""A node that is killed takes its sandboxed servers with it, also one that ignores every request to end (RULES L10)."""

import select
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.faults.processes import alive, until

pytestmark = pytest.mark.faults

HOST = textwrap.dedent("""
    import os, subprocess, sys, time
    from pathlib import Path
    from uuid import uuid4
    from catalog.rules.sandbox import Sandbox
    from jobs.node import Node, Opened
    from tests.node.driving import spec_of
    spec = spec_of("boxed", Path(sys.argv[2]), env={"STUBBORN": "1"}, sandbox=Sandbox(), job=uuid4())
    if sys.argv[1] == "bare":
        env = os.environ | spec.env
        subprocess.Popen(spec.argv, cwd=spec.cwd, env=env, stdin=subprocess.PIPE, start_new_session=True)
    else:
        node = Node()
        node.start()
        assert isinstance(node.open(spec), Opened)
    print("up", flush=True)
    time.sleep(600)
""")


def processes_of(host: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Every process below the host that belongs to the server or its grandchild."""
    found = []
    for process in psutil.Process(host.pid).children(recursive=True):
        try:
            if any("boxed" in word for word in process.cmdline()):
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found


@contextmanager
def a_host(how: str, folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], list[psutil.Process]]]:
    host = subprocess.Popen([sys.executable, "-c", HOST, how, str(folder)], stdout=subprocess.PIPE)
    family: list[psutil.Process] = []
    try:
        assert host.stdout is not None
        assert select.select([host.stdout], [], [], 60)[0] and host.stdout.readline() == b"up\n"
        there = lambda: any("boxed-grandchild" in one.cmdline() for one in processes_of(host))  # noqa: E731
        assert until(there, 30), "the server and its grandchild did not start"
        family = processes_of(host)
        yield host, family
    finally:
        host.kill()
        host.wait(60)
        host.stdout.close()
        for process in family:
            if process.is_running():
                process.kill()


@pytest.mark.rule("L10")
def test_no_sandboxed_server_survives_its_node_nor_does_its_grandchild_in_a_session_of_its_own(tmp_path: Path) -> None:
    with a_host("node", tmp_path / "ledger") as (host, family):
        host.kill()
        host.wait(60)
        assert until(lambda: not alive(family), 5.0), alive(family)


def test_without_a_node_to_guard_it_the_same_server_lives_on(tmp_path: Path) -> None:
    """The control: it does ignore the end of its input, and its grandchild does outlive a parent."""
    with a_host("bare", tmp_path / "ledger") as (host, family):
        host.kill()
        host.wait(60)
        assert not until(lambda: not alive(family), 1.0), "the fault does not show: the test above proves nothing"
