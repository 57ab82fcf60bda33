"""`oz0 dev`, really running: a new plugin in a studio of its own, saved, broken, mended, and gone with one Ctrl-C."""

import http.cookiejar
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner

from studio import program
from studio.cli.plugin import plugin
from tests.cli.test_own_programs import STRAYS
from tests.clusters import seed
from tests.faults.processes import alive, family, lives, until
from tests.faults.studios import free_port, state_folder

pytestmark = [pytest.mark.faults, pytest.mark.timeout(400)]
PATIENCE = 90.0  # seconds, on a machine that does other things too
LIST = 'f"{number}: {text}"'
NOWHERE = "postgres://nobody@127.0.0.1:9/nothing"  # another studio's, which must not even be asked


class Followed:
    """`oz0 dev --json` as an author would start it in the plugin's folder, and every line it printed so far."""

    def __init__(self, folder: Path, port: int) -> None:
        ours = ("OZ0_", "DATABASE_", "REDIS_", "BROKER_")
        env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        self.events: list[dict[str, Any]] = []
        self.seen = 0
        self.process = subprocess.Popen(
            program.command("studio.cli", "dev", "--port", str(port), "--json"),
            cwd=folder,
            env=env | {"DATABASE_URL": NOWHERE, "REDIS_URL": "redis://127.0.0.1:9/0"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.errors: list[str] = []
        self.readers = [threading.Thread(target=self._read), threading.Thread(target=self._read_errors)]
        for reader in self.readers:
            reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.events.append(json.loads(line))  # nothing else may come to standard output

    def _read_errors(self) -> None:
        self.errors += self.process.stderr.readlines()

    def next(self, event: str, where: Callable[[dict[str, Any]], bool] = lambda _: True) -> dict[str, Any]:
        """The next event of this kind that was not looked at yet."""
        found: list[dict[str, Any]] = []

        def came() -> bool:
            while self.seen < len(self.events) and not found:
                one = self.events[self.seen]
                self.seen += 1
                if one["event"] == event and where(one):
                    found.append(one)
            return bool(found) or self.process.poll() is not None

        until(came, PATIENCE)
        assert found, f"no {event}: {self.events[-5:]} {self.errors}"
        return found[0]

    def end(self) -> list[list[str]]:
        """One Ctrl-C; what is left of it after its time."""
        everything = [psutil.Process(self.process.pid), *family(self.process.pid)]
        self.process.send_signal(signal.SIGINT)
        until(lambda: not any(map(lives, everything)), 10)
        left = alive(everything)
        for process in everything:
            if lives(process):
                process.kill()
        self.process.wait(10)
        for reader in self.readers:
            reader.join(10)
        self.process.stdout.close()
        self.process.stderr.close()
        return left


@contextmanager
def followed(folder: Path) -> Iterator[Followed]:
    running = Followed(folder, free_port())
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.end()


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Path]:
    """A new plugin, whose studio has a database already, and whose modules are called as the studio's own and as some
    that the studio stands on."""
    done = CliRunner().invoke(plugin, ["new", "shelf", "--dir", str(tmp_path / "shelf")])
    assert done.exit_code == 0, done.output
    for name in STRAYS:
        (tmp_path / "shelf" / f"{name}.py").write_text('raise SystemExit("a stray module was read")\n')
    with state_folder(tmp_path / "shelf" / ".oz0-dev") as state:
        state.mkdir(mode=0o700)
        seed(state)
        yield tmp_path / "shelf"


def rewritten(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def described(loaded: dict[str, Any]) -> dict[str, str]:
    return {one["label"]: one["fate"] for one in loaded["functions"]}


def job_says(folder: Path) -> str:
    """What the plugin's agent ends with, in a job of its studio."""
    command = [sys.executable, "-m", "studio.cli", "jobs", "start", "shelf-rehearsal", "--watch"]
    env = os.environ | {"OZ0_HOME": str(folder / ".oz0-dev")}
    for name in ("DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL", "BROKER_URL", "OZ0_SECRET_KEY"):
        env.pop(name, None)
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


def signed_in_to(link: str, url: str) -> str:
    """The tools, as a visitor with this link sees it."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
    seen: list[str] = []

    def opened(address: str) -> bool:
        try:
            with browser.open(address, timeout=PATIENCE) as page:
                seen.append(page.read().decode())
                return True
        except urllib.error.HTTPError as error:
            assert error.code == 503, error  # a machine that does too much: the page says so and asks again
            return False

    opened(link)
    assert until(lambda: opened(f"{url}/catalog/tools/"), PATIENCE)
    return seen[-1]


@pytest.mark.rule("D4")
@pytest.mark.rule("T5")
def test_an_authors_hour(shelf: Path) -> None:
    """Also CASES I01 and I02."""
    server = shelf / "shelf_server.py"
    good = server.read_text()
    with followed(shelf) as dev:
        # it starts, says where, and every function of a new plugin runs freely
        assert dev.next("starting")["state"] == str(shelf / ".oz0-dev")
        first = dev.next("loaded")
        assert described(first) == dict.fromkeys(
            ["shelf.add_entry", "shelf.find_entries", "shelf.import_entries"], "runs"
        )
        assert first["findings"] == []
        kept = json.loads((shelf / "oz0-listing.json").read_text())
        assert len(kept["tools"]["shelf"]["functions"]) == 3
        serving = next((one for one in dev.events if one["event"] == "serving"), None) or dev.next("serving")
        assert "shelf" in signed_in_to(serving["sign_in"], serving["url"])
        assert job_says(shelf).startswith("1: the first entry")

        # a save is served: what the agent reads next is what the new code says, and the listing is kept up to date
        began = time.monotonic()
        rewritten(server, LIST, 'f"entry {number}: {text}"')
        rewritten(server, "Find the entries that have a word in them.", "Find entries by a word.")
        while "Find entries by a word." not in (shelf / "oz0-listing.json").read_text():
            again = dev.next("loaded")
        print(
            f"a saved server was served after {time.monotonic() - began:.2f} s, by its own count {again['seconds']} s"
        )
        assert "shelf_server.py" in again["changed"]
        assert job_says(shelf).startswith("entry 1: the first entry")

        # an agent alone: no server is touched
        began = time.monotonic()
        rewritten(shelf / "agents/shelf.yaml", "name: shelf-rehearsal", "name: shelf-rehearsal\non_unknown: ask")
        only = dev.next("loaded")
        print(f"a saved agent was served after {time.monotonic() - began:.2f} s")
        assert only["changed"] == ["agents/shelf.yaml"]

        # a function that says nothing of itself waits, and the fix is there to paste
        rewritten(
            server, "read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False", ""
        )
        held = dev.next("loaded", lambda one: "waits" in described(one).values())
        (waits,) = [one for one in held["functions"] if one["fate"] == "waits"]
        assert waits["label"] == "shelf.import_entries"
        assert "Nobody knows what it does" in waits["why"]
        assert waits["fixes"][0]["paste"].startswith("@server.tool(annotations=ToolAnnotations(")
        assert json.loads(waits["fixes"][-1]["paste"])["function"] == "import_entries"

        # a broken server, a broken manifest, a program that is not there: each is told by place, and the old one works
        server.write_text(good.replace("async def find_entries(", "async def find_entries((", 1))
        broken = dev.next("broken")
        (problem,) = broken["problems"]
        line = next(n for n, text in enumerate(server.read_text().splitlines(), 1) if "def find_entries((" in text)
        assert (problem["file"], problem["line"]) == ("shelf_server.py", line)
        assert "SyntaxError" in problem["message"]
        assert problem["fix"]
        assert broken["goes_on"] == "shelf 0.1.0"
        manifest = shelf / "oz0-plugin.yaml"
        whole = manifest.read_text()
        manifest.write_text(whole.replace("timeout: 30", "timeot: 30"))
        (problem,) = dev.next("broken")["problems"]
        assert (problem["file"], problem["line"]) == ("oz0-plugin.yaml", 6)
        assert "timeot" in problem["key"] + problem["message"]
        server.write_text(good)
        dev.next("broken")  # the manifest still is
        manifest.write_text(whole.replace('"python", "-m"', '"pithon", "-m"'))
        (problem,) = dev.next("broken")["problems"]
        assert "pithon" in problem["message"]
        assert "path" in problem["message"].lower()

        # mended: it is loaded, and a banner on standard output is shown with the line that prints it
        server.write_text(good.replace("\nKEY = ", '\nprint("shelf is starting", flush=True)\nKEY = ', 1))
        manifest.write_text(whole)
        mended = dev.next("loaded")
        assert set(described(mended).values()) == {"runs"}
        stray = dev.next("said", lambda one: one["source"] == "stdout")
        assert stray["text"] == "shelf is starting"
        line = next(n for n, text in enumerate(server.read_text().splitlines(), 1) if text.startswith("print("))
        assert stray["place"] == f"shelf_server.py:{line}"
        assert "stderr" in stray["fix"]
        assert job_says(shelf).startswith("1: the first entry")

        # one Ctrl-C, and nothing is left
        assert dev.end() == []
        assert dev.process.returncode == 0
        assert [one["event"] for one in dev.events[-2:]] == ["stopping", "stopped"]
        assert dev.errors == []
