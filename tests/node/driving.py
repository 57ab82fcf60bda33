"""Driving a node: servers to open, orders to make, and waits that end."""

import json
import select
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from base.clock import boot_time
from catalog.rules.servers import ServerSpec
from jobs.node import Node, Opened
from jobs.rules.orders import Order, Outcome, Result

SERVERS = Path(__file__).parent.parent / "servers"
PATIENCE = 10.0  # seconds a test waits for what must come


def until[T](truth: Callable[[], T], what: str, seconds: float = PATIENCE) -> T:
    """The first true value of `truth()`; fails, saying `what` did not come, after `seconds`."""
    limit = time.monotonic() + seconds
    while not (found := truth()):
        assert time.monotonic() < limit, f"{what} did not come in {seconds:g} s"
        select.select([], [], [], 0.005)
    return found


class Driven:
    """A node with one server, whose calls run on threads of their own."""

    def __init__(self, node: Node, spec: ServerSpec, ledger: Path, late: list[tuple[UUID, Result]]) -> None:
        self.node, self.spec, self.late = node, spec, late
        self._ledger = ledger
        self._threads = ThreadPoolExecutor(64)
        self.digests: dict[str, str] = {}

    def open(self) -> Opened:
        opened = self.node.open(self.spec)
        assert isinstance(opened, Opened), opened
        self.digests = {function.name: function.digest for function in opened.listing.functions}
        return opened

    def order(self, function: str, arguments: dict[str, Any] | None = None, **more: Any) -> Order:
        fields: dict[str, Any] = {
            "tenant": self.spec.tenant,
            "job_id": uuid4(),
            "call_id": uuid4(),
            "attempt_id": uuid4(),
            "number": 1,
            "server": self.spec,
            "function": function,
            "arguments": arguments or {},
            "key": "job/1",
            "entry_digest": self.digests.get(function, ""),
            "retry_safe": False,
            "timeout": 30.0,
            "own_limit": 28.0,
            "cleanup": 6.0,
        }
        return Order(**{**fields, **more})

    def run(self, order: Order) -> Outcome:
        return self.start(order).result(PATIENCE + order.timeout)

    def call(self, function: str, arguments: dict[str, Any] | None = None, **more: Any) -> Outcome:
        return self.run(self.order(function, arguments, **more))

    def start(self, order: Order, *, ago: float = 0.0) -> "Future[Outcome]":
        """Run on a thread; `ago` seconds of its time have passed already."""
        return self._threads.submit(self.node.run, order, started=boot_time() - ago)

    def begin(self, order: Order) -> "Future[Outcome]":
        """Run on a thread and wait until the server has the request or said that it began."""
        before = len(self.ledger())
        running = self.start(order)
        until(lambda: len(self.ledger()) > before or running.done(), f"{order.function} at the server")
        return running

    def ledger(self) -> list[str]:
        """The lines that servers wrote, in their order."""
        return self._ledger.read_text().splitlines() if self._ledger.exists() else []

    def requests(self) -> list[dict[str, Any]]:
        """The `tools/call` requests as `misbehaved` received them."""
        messages = [json.loads(line) for line in self.ledger() if line.startswith("{")]
        return [message["params"] for message in messages if message.get("method") == "tools/call"]

    def close(self) -> None:
        self.node.shutdown(0)
        self._threads.shutdown(wait=True)


def spec_of(server: str, ledger: Path, **more: Any) -> ServerSpec:
    env = {"LEDGER": str(ledger), **more.pop("env", {})}
    fields: dict[str, Any] = {
        "tenant": uuid4(),
        "tool_id": uuid4(),
        "tool": server,
        "version": "v1",
        "credential_version": "c1",
        "argv": (sys.executable, str(SERVERS / f"{server}.py")),
        "cwd": str(SERVERS),
        "startup": 30.0,
        "slots": 16,
    }
    return ServerSpec(**{**fields, **more}, env=env)


@contextmanager
def driven(server: str, folder: Path, *, opened: bool = True, **more: Any) -> Iterator[Driven]:
    """A started node with one server open; everything is ended on leaving."""
    late: list[tuple[UUID, Result]] = []
    node = Node(on_late=lambda attempt, result: late.append((attempt, result)))
    node.start()
    ledger = folder / "ledger"
    drive = Driven(node, spec_of(server, ledger, **more), ledger, late)
    try:
        if opened:
            drive.open()
        yield drive
    finally:
        drive.close()
