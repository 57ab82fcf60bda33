"""The parts of a studio on one machine: what is started, in which order, and how long each may take to end."""

import errno
import os
import secrets
import socket
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from signal import SIGINT
from typing import Final

import psutil

from base.ports import listens
from studio import program
from studio.embedded import kept
from studio.embedded.failure import CannotStart, Interrupted
from studio.embedded.postgres import Postgres
from studio.embedded.valkey import Valkey
from studio.stopping import DRAIN, QUICK_LIMIT, TO_CANCEL, drain_time
from studio.supervisor.one_at_a_time import Lock
from studio.supervisor.parts import Haste, Program, ServicePart
from studio.supervisor.supervisor import Supervisor
from studio.supervisor.terminal import JsonTerminal, Terminal

# After our sudden death the guardians end web and node within QUICK_LIMIT, and the services outlive them a little;
# all of it in under five seconds (RULES L10).
OUTLIVE: Final = QUICK_LIMIT + 0.3
EXAMPLES: Final = Path(__file__).resolve().parents[2] / "examples"
HIGHEST_PORT: Final = 65_535
LEFTOVERS: Final = 6.0  # seconds in which the children of a supervisor that was killed are certainly gone


@dataclass(frozen=True)
class Wanted:
    """What is to run. `environ` is what its programs get beside the addresses; services that it names are not started.

    `command` is what a person typed, for what is said of a port that is taken.
    """

    home: Path
    port: int
    environ: Mapping[str, str]
    command: str = "oz0 up"
    make: bool = True  # whether `make run` can have been typed too

    @property
    def url(self) -> str:
        """Where the pages are."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def drain(self) -> float:
        """Seconds that running attempts may take after SIGTERM. Raises `CannotStart`."""
        try:
            return drain_time(self.environ.get("OZ0_DRAIN", DRAIN))
        except ValueError as error:
            raise CannotStart(str(error)) from error


type Env = dict[str, str]


def run(home: Path, *, port: int, demo: bool, as_json: bool = False) -> None:
    """Run the studio until a signal ends it, telling what it does in words or JSON. Raises `CannotStart`."""

    def then(supervisor: Supervisor, terminal: Terminal, env: Env) -> None:
        with ExitStack() as beside:  # while web and node are still reading their modules
            if demo:
                port = _free_port()
                supervisor.add(_archive(env, terminal, wanted, port))
                load = oz0("load-examples", "--archive", f"127.0.0.1:{port}")
                loading = Program("oz0 load-examples", load, env, terminal.sink("oz0"))
                beside.enter_context(supervisor.meanwhile(loading))
            said: list[str] = []
            link = Program("oz0 sign-in-link", oz0("sign-in-link", "--address", wanted.url), env, said.append)
            supervisor.run_once(link)
            supervisor.wait_until(lambda: listens(wanted.port), poll=0.1)
            terminal.ready(said[-1] if said else link.last_words())

    wanted = Wanted(home, port, os.environ)
    keep_up(wanted, JsonTerminal() if as_json else Terminal(), then)


def keep_up(wanted: Wanted, terminal: Terminal, then: Callable[[Supervisor, Terminal, Env], None]) -> None:
    """Keep a studio up until a signal ends it; `then` is done once its parts are started. Raises `CannotStart`."""
    _ = wanted.drain  # what cannot be read is told before anything is started
    lock = Lock(wanted.home, f"process {os.getpid()}, {wanted.url}/")
    try:
        _wait_for_port(wanted, LEFTOVERS if lock.left_behind else 0.0)
        with Supervisor(terminal) as supervisor:
            try:
                then(supervisor, terminal, _start(supervisor, terminal, wanted))
                supervisor.wait_until(lambda: False)
            except Interrupted:
                terminal.say("stopping")
        terminal.say("stopped")
    finally:
        lock.release()
        if terminal.closed:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or the interpreter complains about it at its end


def _start(supervisor: Supervisor, terminal: Terminal, wanted: Wanted) -> Env:
    env = dict(wanted.environ) | {"OZ0_HOME": str(wanted.home), "PYTHONUNBUFFERED": "1"}
    env |= _addresses(supervisor, terminal, wanted)
    (wanted.home / "static").mkdir(exist_ok=True)  # where `collectstatic` may put files; the server warns without it
    supervisor.run_once(Program("oz0 migrate", oz0("migrate"), env, terminal.sink("oz0")))
    for part in _programs(env, terminal, wanted):
        supervisor.add(part)
    return env


def _archive(env: dict[str, str], terminal: Terminal, wanted: Wanted, port: int) -> Program:
    """The demo's remote server: an example that stands for somebody else's."""
    words = ["--port", str(port), "--state", str(wanted.home / "demo" / "archive")]
    argv = [sys.executable, str(EXAMPLES / "archive" / "archive_server.py"), *words]
    return Program("archive", argv, env, terminal.sink("archive"), patience={Haste.DRAIN: 1.0, Haste.QUICK: 0.5})


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _programs(env: dict[str, str], terminal: Terminal, wanted: Wanted) -> list[Program]:
    web = Program(
        "web",
        oz0("web", "--port", str(wanted.port)),
        env,
        terminal.sink("web"),
        patience={Haste.DRAIN: 2.0, Haste.QUICK: 0.8},
    )
    node = Program(
        "node",
        oz0("node"),
        env,
        terminal.sink("node"),
        farewell=SIGINT,
        grace=QUICK_LIMIT,
        patience={Haste.DRAIN: wanted.drain + TO_CANCEL + 1, Haste.QUICK: QUICK_LIMIT},
    )
    return [web, node]


def _addresses(supervisor: Supervisor, terminal: Terminal, wanted: Wanted) -> dict[str, str]:
    """Start the services that the environment does not name; the addresses of all of them.

    What was started here is kept for other commands, and nothing that an earlier start left.
    """
    home = wanted.home
    known = kept.load(home)
    secret = wanted.environ.get("OZ0_SECRET_KEY") or known.get("OZ0_SECRET_KEY") or secrets.token_urlsafe(48)
    started = {"OZ0_SECRET_KEY": secret, "OZ0_URL": wanted.url}
    if "DATABASE_URL" not in wanted.environ:
        database = Postgres(home, outlive=OUTLIVE, sink=terminal.sink("postgres"))
        supervisor.add(ServicePart("postgres", database, 10.0))
        started |= database.variables()
    elif "DATABASE_OWNER_URL" not in wanted.environ:
        raise CannotStart("DATABASE_URL is set: set DATABASE_OWNER_URL too, the address of the role that migrates")
    if "REDIS_URL" not in wanted.environ:
        broker = Valkey(home, outlive=OUTLIVE, sink=terminal.sink("valkey"))
        supervisor.add(ServicePart("valkey", broker, 0.3))
        started |= broker.variables()
    kept.save(home, started)
    given = {name: wanted.environ[name] for name in ("REDIS_URL", "BROKER_URL") if name in wanted.environ}
    if "REDIS_URL" in given:
        given.setdefault("BROKER_URL", given["REDIS_URL"])
    return started | given


def oz0(*words: str) -> list[str]:
    """The command line of the product's own `oz0` with these words."""
    return program.command("studio.cli", *words)


def _wait_for_port(wanted: Wanted, seconds: float) -> None:
    """Raise `CannotStart` when the port cannot be had; a port that our own leftovers hold is waited for."""
    port, limit = wanted.port, time.monotonic() + seconds
    while True:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                if error.errno == errno.EACCES:
                    raise CannotStart(
                        f"this account may not open port {port}: choose one above 1023, {_with_port(wanted, 8000)}"
                    ) from error
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                return
        if time.monotonic() > limit:
            other = port + 1 if port < HIGHEST_PORT else port - 1
            raise CannotStart(
                f"port {port} is taken by {_listener(port)}: choose another one, {_with_port(wanted, other)}"
            )
        time.sleep(0.1)


def _with_port(wanted: Wanted, port: int) -> str:
    return f"with `{wanted.command} --port {port}`" + (f" or `make run PORT={port}`" if wanted.make else "")


def _listener(port: int) -> str:
    """Who listens on a port, as far as this account may see."""
    try:
        found = psutil.net_connections("tcp")
        pid = next(
            one.pid for one in found if one.status == psutil.CONN_LISTEN and one.laddr and one.laddr.port == port
        )
        return f"{psutil.Process(pid).name()} (process {pid})" if pid else "another account's program"
    except (StopIteration, psutil.Error, OSError):
        return "another program"
