"""`oz0 up` in tests: started as a person would, in a state folder of the test's own."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from studio.embedded.place import place_of
from tests.faults.processes import alive, family, lives, until

READY_IN = 90.0  # seconds, on a machine that does other things too
GONE_IN = 5.0


class Studio:
    """A supervisor started as a person would, and what it printed so far."""

    def __init__(self, home: Path, port: int, *, demo: bool = False, cwd: Path | None = None, **env_more: str) -> None:
        env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("OZ0_", "DATABASE_", "REDIS_", "BROKER_"))
        }
        self.home = home
        self.port = port
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "studio.cli", "up", "--port", str(port), *(["--demo"] if demo else [])],
            cwd=cwd,
            env=env | {"OZ0_HOME": str(home), "OZ0_DRAIN": "1"} | env_more,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self) -> None:
        with self.process.stdout:
            for line in self.process.stdout:
                self.lines.append(line.rstrip("\n"))

    @property
    def link(self) -> str | None:
        return next((line for line in self.lines if line.startswith("http://")), None)

    def said(self, text: str) -> bool:
        return any(text in line for line in self.lines)

    def ready(self) -> "Studio":
        assert until(lambda: self.link or self.process.poll() is not None, READY_IN), self.lines
        assert self.process.poll() is None, self.lines
        return self

    def part(self, words: str) -> psutil.Process:
        """The running process whose command line contains `words`, below its guardian."""
        found = []

        def look() -> bool:
            lines = [(process, said_by(process)) for process in family(self.process.pid)]
            found[:] = [process for process, line in lines if words in line and "guardian.py" not in line]
            return bool(found)

        assert until(look, READY_IN), f"nothing runs {words}"
        return found[0]

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/nothing-here", timeout=10):
                return True
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False

    def end(self, number: signal.Signals, limit: float = GONE_IN) -> tuple[float, list[list[str]]]:
        """Send a signal; how long it took until everything was gone, and what was left at the limit."""
        everything = [psutil.Process(self.process.pid), *family(self.process.pid)]
        began = time.monotonic()
        self.process.send_signal(number)
        until(lambda: not any(map(lives, everything)), limit)
        took = time.monotonic() - began
        left = alive(everything)
        for process in everything:
            if lives(process):
                process.kill()
        self.process.wait(10)
        self.reader.join(10)
        return took, left


def said_by(process: psutil.Process) -> str:
    """Its command line, empty when it has just ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


def free_port() -> int:
    """A port nobody listens on just now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def studio_in(
    home: Path, port: int | None = None, *, demo: bool = False, cwd: Path | None = None, **env_more: str
) -> Iterator[Studio]:
    """A studio in this state folder, ended when the context is."""
    studio = Studio(home, port or free_port(), demo=demo, cwd=cwd, **env_more)
    try:
        yield studio
    finally:
        if studio.process.poll() is None:
            studio.end(signal.SIGINT)
        studio.reader.join(10)


@contextmanager
def state_folder(folder: Path) -> Iterator[Path]:
    """A state folder whose services' data goes with it; root's lives elsewhere."""
    yield folder
    place = place_of(folder)
    place.remove(place.data / "pg", *place.sockets.iterdir())
