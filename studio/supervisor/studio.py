"""The parts of a studio on one machine: what is started, in which order, and how long each may take to end."""

import errno
import os
import secrets
import socket
import sys
import time
from pathlib import Path
from signal import SIGINT
from typing import Final

from studio.embedded import kept
from studio.embedded.failure import CannotStart, Interrupted
from studio.embedded.postgres import Postgres
from studio.embedded.valkey import Valkey
from studio.stopping import QUICK_LIMIT, TO_CANCEL, BadDrain, drain_time
from studio.supervisor.one_at_a_time import Lock
from studio.supervisor.parts import Haste, Program, ServicePart
from studio.supervisor.supervisor import Supervisor
from studio.supervisor.terminal import Terminal

# After our sudden death the guardians end web and node within QUICK_LIMIT, and the services outlive them a little;
# all of it in under five seconds (RULES L10).
OUTLIVE: Final = QUICK_LIMIT + 0.3
LEFTOVERS: Final = 6.0  # seconds in which the children of a supervisor that was killed are certainly gone


def run(home: Path, *, port: int, demo: bool) -> None:
    """Run the studio until a signal ends it. Raises `CannotStart`."""
    url = f"http://127.0.0.1:{port}"
    try:
        drain_time()
    except BadDrain as error:
        raise CannotStart(str(error)) from error
    lock = Lock(home, f"process {os.getpid()}, {url}/")
    terminal = Terminal()
    try:
        _wait_for_port(port, LEFTOVERS if lock.left_behind else 0.0)
        with Supervisor(terminal) as supervisor:
            try:
                _start(supervisor, terminal, home, port, url, demo)
                supervisor.wait_until(lambda: False)
            except Interrupted:
                terminal.say("stopping")
        terminal.say("stopped")
    finally:
        lock.release()
        if terminal.closed:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or the interpreter complains about it at its end


def _start(supervisor: Supervisor, terminal: Terminal, home: Path, port: int, url: str, demo: bool) -> None:
    env = dict(os.environ) | {"OZ0_HOME": str(home), "PYTHONUNBUFFERED": "1", "OZ0_URL": url}
    env |= _addresses(supervisor, terminal, home, url)
    (home / "static").mkdir(exist_ok=True)  # where `collectstatic` may put files; the server warns without it
    supervisor.run_once(Program("oz0 migrate", _oz0("migrate"), env, terminal.sink("oz0")))
    web = Program(
        "web",
        _oz0("web", "--port", str(port)),
        env,
        terminal.sink("web"),
        patience={Haste.DRAIN: 2.0, Haste.QUICK: 0.8},
    )
    supervisor.add(web)
    node = Program(
        "node",
        _oz0("node"),
        env,
        terminal.sink("node"),
        farewell=SIGINT,
        grace=QUICK_LIMIT,
        patience={Haste.DRAIN: drain_time() + TO_CANCEL + 1, Haste.QUICK: QUICK_LIMIT},
    )
    supervisor.add(node)
    said: list[str] = []
    link = Program("oz0 sign-in-link", _oz0("sign-in-link", "--address", url), env, said.append)
    supervisor.run_once(link)
    supervisor.wait_until(lambda: _listens(port), poll=0.1)
    terminal.print(said[-1] if said else link.last_words())
    if demo:
        supervisor.run_once(Program("oz0 load-examples", _oz0("load-examples"), env, terminal.sink("oz0")))


def _addresses(supervisor: Supervisor, terminal: Terminal, home: Path, url: str) -> dict[str, str]:
    """Start the services that the environment does not name; the addresses of all of them.

    What was started here is kept for other commands, and nothing that an earlier start left.
    """
    known = kept.load(home)
    secret = os.environ.get("OZ0_SECRET_KEY") or known.get("OZ0_SECRET_KEY") or secrets.token_urlsafe(48)
    started = {"OZ0_SECRET_KEY": secret, "OZ0_URL": url}
    if "DATABASE_URL" not in os.environ:
        database = Postgres(home, outlive=OUTLIVE, sink=terminal.sink("postgres"))
        supervisor.add(ServicePart("postgres", database, 0.6))
        started |= database.variables()
    elif "DATABASE_OWNER_URL" not in os.environ:
        raise CannotStart("DATABASE_URL is set: set DATABASE_OWNER_URL too, the address of the role that migrates")
    if "REDIS_URL" not in os.environ:
        broker = Valkey(home, outlive=OUTLIVE, sink=terminal.sink("valkey"))
        supervisor.add(ServicePart("valkey", broker, 0.3))
        started |= broker.variables()
    kept.save(home, started)
    given = {name: os.environ[name] for name in ("REDIS_URL", "BROKER_URL") if name in os.environ}
    if "REDIS_URL" in given:
        given.setdefault("BROKER_URL", given["REDIS_URL"])
    return started | given


def _oz0(*words: str) -> list[str]:
    return [sys.executable, "-m", "studio.cli", *words]


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _wait_for_port(port: int, seconds: float) -> None:
    """Raise `CannotStart` when the port cannot be had; a port that our own leftovers hold is waited for."""
    limit = time.monotonic() + seconds
    while True:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                if error.errno == errno.EACCES:
                    raise CannotStart(
                        f"this account may not open port {port}: choose one above 1023 with --port"
                    ) from error
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                return
        if time.monotonic() > limit:
            raise CannotStart(
                f"port {port} is taken by another program: choose another one with --port, such as --port {port + 1}"
            )
        time.sleep(0.1)
