"""A server that is tried is forked from an interpreter that has read the MCP library, and cannot tell (RULES D4)."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from studio.dev import warm
from tests.faults.processes import lives
from tests.waiting import until

pytestmark = pytest.mark.rule("D4")
PROBE = """
import json, os, sys
streams = [sys.stdout.encoding, sys.stdout.line_buffering, sys.stdout.write_through, sys.stderr.encoding]
told = {"argv": sys.argv, "name": __name__, "cwd": os.getcwd(), "path": sys.path, "env": dict(os.environ)}
told |= {"streams": streams, "flags": str(sys.flags), "stdin": sys.stdin.read(), "file": __file__}
print(json.dumps(told | {"read": "mcp.server" in sys.modules, "main": "__main__" in sys.modules}))
print("to stderr", file=sys.stderr)
"""
ENV = {"PATH": "/usr/bin:/bin", "HOME": "/", "TOKEN": "t"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The socket of one such interpreter."""
    found = str(tmp_path_factory.mktemp("w") / "w.sock")
    with subprocess.Popen([sys.executable, warm.__file__, "serve", found], env=ENV) as process:
        until(lambda: Path(found).exists() or process.poll() is not None, "it does not listen", seconds=60)
        yield found
        process.kill()


def started(argv: tuple[str, ...], cwd: Path, **more: Any) -> "subprocess.Popen[str]":
    pipe = subprocess.PIPE
    return subprocess.Popen(argv, cwd=cwd, env=ENV, stdin=pipe, stdout=pipe, stderr=pipe, text=True, **more)


def ended(argv: tuple[str, ...], cwd: Path) -> tuple[int, str, str]:
    with started(argv, cwd) as process:
        out, err = process.communicate("from outside", timeout=60)
    return process.returncode, out, err


@pytest.mark.parametrize("words", [("-m", "probe"), ("probe.py",)])
def test_it_is_started_as_from_a_terminal_but_for_what_was_read(
    place: str, tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "probe.py").write_text(f"{PROBE}sys.exit(7)\n")
    cold = (sys.executable, *words, "--state", "x y")
    as_ever, forked = (ended(argv, tmp_path) for argv in (cold, warm.through(place, cold)))
    assert as_ever[0] == forked[0] == 7
    assert as_ever[2] == forked[2] == "to stderr\n"
    mine, its = json.loads(as_ever[1]), json.loads(forked[1])
    assert (mine.pop("read"), its.pop("read")) == (False, True)
    assert mine == its
    assert its["env"]["TOKEN"] == "t"
    assert its["stdin"] == "from outside"


@pytest.mark.parametrize(
    ("source", "code", "said"),
    [
        ("raise SystemExit('no ledger today')", 1, "no ledger today\n"),
        ("raise ValueError('odd')", 1, "ValueError: odd\n"),
        ("import atexit, sys; atexit.register(lambda: print('tidied', file=sys.stderr))", 0, "tidied\n"),
        ("def broken(:", 1, "SyntaxError: invalid syntax\n"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM, ""),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL, ""),
    ],
)
def test_it_ends_as_the_server_ends_and_says_what_it_says(
    place: str, tmp_path: Path, source: str, code: int, said: str
) -> None:
    (tmp_path / "probe.py").write_text(source)
    cold = (sys.executable, "-m", "probe")
    as_ever, forked = (ended(argv, tmp_path) for argv in (cold, warm.through(place, cold)))
    assert as_ever[0] == forked[0] == code
    assert as_ever[2].endswith(said)
    assert forked[2].endswith(said)


WAITS = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
print(os.getpid(), flush=True)
signal.sigwait({signal.SIGTERM})
print("was told", flush=True)
sys.exit(3)
"""


def test_sigterm_reaches_the_server_and_whoever_is_gone_takes_it_along(place: str, tmp_path: Path) -> None:
    (tmp_path / "probe.py").write_text(WAITS)
    argv = warm.through(place, (sys.executable, "-m", "probe"))
    with started(argv, tmp_path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.terminate()
        assert process.stdout.readline() == "was told\n"
        assert process.wait(60) == 3
    with started(argv, tmp_path) as process:
        assert process.stdout is not None
        server = psutil.Process(int(process.stdout.readline()))
        assert lives(server)
        process.kill()
        until(lambda: not lives(server), "the server outlived what stood for it", seconds=60)


def test_what_would_read_another_module_here_and_what_nobody_forks_is_started_as_ever(
    place: str, tmp_path: Path
) -> None:
    (tmp_path / "probe.py").write_text(PROBE)
    cold = (sys.executable, "-m", "probe")
    nobody = warm.through(str(tmp_path / "nobody.sock"), cold)
    assert not json.loads(ended(nobody, tmp_path)[1])["read"]
    assert json.loads(ended(warm.through(place, cold), tmp_path)[1])["read"]  # which the next line changes
    (tmp_path / "anyio.py").write_text("")
    found = json.loads(ended(warm.through(place, cold), tmp_path)[1])
    assert not found["read"]
    assert found["argv"][0].endswith("probe.py")
    for other in ((sys.executable, "-c", "pass"), ("/usr/bin/node", "server.js"), (sys.executable,), ()):
        assert warm.through(place, other) == other
