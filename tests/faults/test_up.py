"""`oz0 up`, really up: one terminal, one Ctrl-C, nothing left behind whatever ends it (RULES L10)."""

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
import psycopg
import pytest

from studio.embedded import kept
from studio.embedded.place import place_of
from tests.faults.processes import alive, family, lives, until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(240)]
READY_IN = 90.0  # seconds, on a machine that does other things too
GONE_IN = 5.0


class Studio:
    """A supervisor started as a person would, and what it printed so far."""

    def __init__(self, home: Path, port: int) -> None:
        env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("OZ0_", "DATABASE_", "REDIS_", "BROKER_"))
        }
        self.home = home
        self.port = port
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "studio.cli", "up", "--port", str(port)],
            env=env | {"OZ0_HOME": str(home), "OZ0_DRAIN": "1"},
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
            found[:] = [
                process
                for process in family(self.process.pid)
                if words in " ".join(process.cmdline()) and "guardian.py" not in " ".join(process.cmdline())
            ]
            return bool(found)

        assert until(look, READY_IN), f"nothing runs {words}"
        return found[0]

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/nothing-here", timeout=2):
                return True
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False

    def end(self, number: signal.Signals) -> tuple[float, list[list[str]]]:
        """Send a signal; how long it took until everything was gone, and what was left at the limit."""
        everything = [psutil.Process(self.process.pid), *family(self.process.pid)]
        began = time.monotonic()
        self.process.send_signal(number)
        until(lambda: not any(map(lives, everything)), GONE_IN)
        took = time.monotonic() - began
        left = alive(everything)
        for process in everything:
            if lives(process):
                process.kill()
        self.process.wait(10)
        self.reader.join(10)
        return took, left


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def studio_in(home: Path, port: int | None = None) -> Iterator[Studio]:
    studio = Studio(home, port or free_port())
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


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    """One studio that stays up, whatever is done to its parts."""
    with state_folder(tmp_path_factory.mktemp("up")) as folder, studio_in(folder) as running:
        yield running.ready()


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder in which one studio after the other is started and ended."""
    with state_folder(tmp_path_factory.mktemp("ends")) as folder:
        yield folder


def test_it_prints_one_link_as_soon_as_pages_are_served(studio):
    assert studio.link.startswith(f"http://127.0.0.1:{studio.port}/sign-in/")
    assert studio.answers()


def test_it_says_who_says_what(studio):
    assert until(lambda: studio.said("node     | ") and studio.said("ready."), READY_IN)
    assert studio.said("web      | ")
    assert studio.said("postgres | ")


def test_a_second_one_in_the_same_folder_is_refused_with_the_address_of_the_first(studio):
    with studio_in(studio.home) as second:
        assert second.process.wait(30) == 1
        second.reader.join(10)
    assert second.lines == [
        f"Error: oz0 is already up in {studio.home} (process {studio.process.pid}, http://127.0.0.1:{studio.port}/): "
        "stop that one with Ctrl-C, or set OZ0_HOME to another folder"
    ]


@pytest.mark.parametrize("words", ["studio.cli web", "studio.cli node"])
def test_a_killed_program_is_started_again(studio, words):
    before = studio.part(words)
    before.kill()
    assert until(lambda: not lives(before))
    assert until(lambda: studio.said(f"{words.split()[-1]} ended (SIGKILL); it starts again in"))
    assert studio.part(words).pid != before.pid
    assert until(studio.answers, READY_IN)


def test_a_killed_database_is_started_again_with_what_was_committed(studio):
    known = kept.load(studio.home)
    with psycopg.connect(known["DATABASE_OWNER_URL"], autocommit=True) as owner:
        owner.execute("CREATE TABLE IF NOT EXISTS survives (id int)")
    studio.part("bin/postgres").kill()

    def back():
        try:
            with psycopg.connect(known["DATABASE_URL"], connect_timeout=2) as app:
                return app.execute("SELECT to_regclass('survives')").fetchone() == ("survives",)
        except psycopg.OperationalError:
            return False

    assert until(lambda: studio.said("postgres ended (SIGKILL)"), 10)
    assert until(back, READY_IN)


def test_a_killed_broker_is_started_again(studio):
    before = studio.part("valkey-server")
    before.kill()
    assert until(lambda: studio.said("valkey ended (SIGKILL)"), 10)
    assert studio.part("valkey-server").pid != before.pid


@pytest.mark.rule("L10")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_whatever_ends_it_nothing_is_left_after_five_seconds_and_the_next_start_goes_on(home, number):
    with studio_in(home) as running:
        running.ready()
        assert len(family(running.process.pid)) > 12
        took, left = running.end(number)
        assert left == [], running.lines
        assert took < GONE_IN
        assert running.process.returncode == (-signal.SIGKILL if number is signal.SIGKILL else 0)


@pytest.mark.rule("L10")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_ending_it_while_it_is_still_starting_leaves_nothing(home, number):
    with studio_in(home) as running:
        assert until(lambda: running.said("postgres | "), READY_IN)
        _, left = running.end(number)
        assert left == []
        assert running.process.returncode == 0


def test_a_start_right_after_a_kill_waits_for_what_is_still_going(home):
    port = free_port()
    with studio_in(home, port) as first:
        first.ready()
        everything = family(first.process.pid)
        first.process.kill()
        first.process.wait(10)
        with studio_in(home, port) as second:
            second.ready()
            assert alive(everything) == []
