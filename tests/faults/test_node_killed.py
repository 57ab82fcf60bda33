"""A node that is killed takes its tools' servers with it (RULES L10)."""

import os
import select
import signal
import subprocess
import sys
import textwrap
import time

import psutil
import pytest

pytestmark = pytest.mark.faults

HOST = textwrap.dedent("""
    import sys, time
    from pathlib import Path
    from jobs.node import Node, Opened
    from tests.node.driving import spec_of
    node = Node()
    node.start()
    assert isinstance(node.open(spec_of("misbehaved", Path(sys.argv[1]) / "ledger")), Opened)
    print("up", flush=True)
    time.sleep(600)
""")


@pytest.mark.rule("L10")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_server_survives_its_node(tmp_path, number) -> None:
    host = subprocess.Popen([sys.executable, "-c", HOST, str(tmp_path)], stdout=subprocess.PIPE)
    try:
        assert select.select([host.stdout], [], [], 30)[0] and host.stdout.readline() == b"up\n"
        children = psutil.Process(host.pid).children(recursive=True)
        assert any("misbehaved.py" in " ".join(child.cmdline()) for child in children)  # the control
        os.kill(host.pid, number)
        host.wait(60)
        began = time.monotonic()
        _, alive = psutil.wait_procs(children, timeout=5)
        assert not alive, f"left after {time.monotonic() - began:.1f} s"
    finally:
        host.kill()
        host.wait(60)
        host.stdout.close()
