"""start and memory: from an empty folder to the first page and the first durable call, and what it all weighs."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx2
import psutil

from base import db
from benchmarks.figures import Figure
from benchmarks.peers import FOLDER
from jobs.models import Attempt
from studio.embedded import kept
from studio.embedded.place import place_of
from tests.clusters import connected
from tests.faults.processes import until
from tests.faults.studios import free_port, studio_in

ROOT: Final = Path(__file__).parents[1]
PATIENCE: Final = 90.0


def measure() -> list[Figure]:
    """The figures `start` and `memory`."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "state"
        home.mkdir()
        try:
            page, node, call, weight = _first(home)
            again = _again(home)
        finally:
            place = place_of(home)
            place.remove(place.data / "pg", *place.sockets.iterdir())
    theirs, their_weight = _contextforge()
    helped = _took([sys.executable, "-m", "studio.cli", "--help"])
    linted = _linted()
    start = Figure(
        "start",
        page,
        "s",
        f"ContextForge's first start {theirs:.1f} s",
        page / theirs,
        "≤ 0.7 ×; again ≤ 4 s; lint ≤ 1 s; --help ≤ 0.3 s",
        page <= 0.7 * theirs and again <= 4 and linted <= 1 and helped <= 0.3,
        f"Python's own imports in three processes; node ready {node:.1f} s, first durable call {call:.1f} s; "
        f"again {again:.1f} s; lint {linted:.2f} s; --help {helped:.2f} s",
    )
    memory = Figure(
        "memory",
        weight,
        "MB",
        f"ContextForge {their_weight:,.0f} MB",
        weight / their_weight,
        "≤ 1.5 × with everything embedded",
        weight <= 1.5 * their_weight,
        "proportional set size of supervisor, web, node, PostgreSQL, Valkey and one tool's server, idle",
    )
    return [start, memory]


def _first(home: Path) -> tuple[float, float, float, float]:
    began = time.monotonic()
    with studio_in(home) as studio:
        page = _until(lambda: _serves(f"http://127.0.0.1:{studio.port}/sign-in/"), began)
        node = _until(lambda: any("node" in line and "ready." in line for line in studio.lines), began)
        weight = _megabytes(studio.process.pid)
        loading = [sys.executable, "-m", "studio.cli", "load-examples"]
        env = _environment() | {"OZ0_HOME": str(home)}
        subprocess.run(loading, cwd=ROOT, env=env, check=True, capture_output=True)
        with connected(kept.load(home)["DATABASE_URL"]):
            call = _until(_made_one, began)
    return page, node, call, weight


def _made_one() -> bool:
    with db.sweep():
        return Attempt.objects.filter(state="answered").exists()


def _again(home: Path) -> float:
    began = time.monotonic()
    with studio_in(home) as studio:
        return _until(lambda: _serves(f"http://127.0.0.1:{studio.port}/sign-in/"), began)


@contextmanager
def _gateway(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A ContextForge in an empty folder."""
    port = free_port()
    settings = {
        "DATABASE_URL": f"sqlite:///{folder}/mcp.db",
        "HOST": "127.0.0.1",
        "PORT": str(port),
        "JWT_SECRET_KEY": "for-a-benchmark-and-nothing-else-at-all",
        "AUTH_ENCRYPTION_SECRET": "for-a-benchmark-and-nothing-else-too",
        "BASIC_AUTH_PASSWORD": "For-a-benchmark-1",
        "PLATFORM_ADMIN_PASSWORD": "For-a-benchmark-1",
        "DEFAULT_USER_PASSWORD": "For-a-benchmark-1",
        "CACHE_TYPE": "memory",
        "LOG_LEVEL": "ERROR",
    }
    env = _environment() | settings
    words = [str((FOLDER / "bin" / "mcpgateway").absolute()), "--host", "127.0.0.1", "--port", str(port)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(words, env=env, cwd=folder, stdout=log, stderr=log, start_new_session=True)
        try:
            yield process, f"http://127.0.0.1:{port}/health"
        finally:
            os.killpg(process.pid, 15)
            process.wait(20)


def _contextforge() -> tuple[float, float]:
    """Its seconds to the first answer, and its megabytes."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        with _gateway(Path(folder)) as (process, url):
            took = _until(lambda: _serves(url), began)
            return took, _megabytes(process.pid)


def _until(seen: Callable[[], bool], began: float) -> float:
    if not until(seen, PATIENCE):
        raise TimeoutError(f"not seen within {PATIENCE:.0f} s")
    return time.monotonic() - began


def _serves(url: str) -> bool:
    try:
        return httpx2.get(url, timeout=2).status_code == 200
    except httpx2.TransportError:
        return False


def _linted() -> float:
    """A plugin with a listing, so that its tokens are counted."""
    plugin = [sys.executable, "-m", "studio.cli", "plugin"]
    with tempfile.TemporaryDirectory() as folder:
        copy = str(shutil.copytree(ROOT / "examples" / "bookshop", Path(folder) / "bookshop"))
        subprocess.run([*plugin, "inspect", copy], cwd=ROOT, capture_output=True, timeout=60, check=True)
        return _took([*plugin, "lint", copy])


def _took(words: list[str]) -> float:
    """The better of two runs, the first of which reads the files."""
    times = []
    for _ in range(2):
        began = time.monotonic()
        subprocess.run(words, cwd=ROOT, capture_output=True, timeout=60, check=False)
        times.append(time.monotonic() - began)
    return min(times)


def _environment() -> dict[str, str]:
    """This process's own, without what names its services."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("OZ0_", "DATABASE_"))}


def _megabytes(pid: int) -> float:
    """The proportional set size of a process and all below it."""
    root = psutil.Process(pid)
    return sum(process.memory_full_info().pss for process in (root, *root.children(recursive=True))) / 1e6
