"""Driving a node against remote servers."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from catalog.rules.servers import Remote, ServerSpec
from jobs.node import Node
from jobs.rules.orders import Result
from tests.node.driving import Driven


def remote_spec(url: str, **more: Any) -> ServerSpec:
    """A server on this machine, allowed by its exact port."""
    allowed = more.pop("allowed", (url.split("/")[2],))
    headers = more.pop("headers", {})
    fields: dict[str, Any] = {
        "tenant": uuid4(),
        "tool_id": uuid4(),
        "tool": "remote",
        "version": "v1",
        "credential_version": "c1",
        "argv": (),
        "cwd": "",
        "startup": 10.0,
        "slots": 200,
        "remote": Remote(uuid4(), "remote", url, allowed, headers=headers),
    }
    return ServerSpec(**{**fields, **more})


@contextmanager
def reached(url: str, *, opened: bool = True, **more: Any) -> Iterator[Driven]:
    """A started node with one remote server open; everything is ended on leaving."""
    late: list[tuple[Any, Result]] = []
    node = Node(on_late=lambda attempt, result: late.append((attempt, result)))
    node.start()
    drive = Driven(node, remote_spec(url, **more), Path("/nonexistent"), late)
    try:
        if opened:
            drive.open()
        yield drive
    finally:
        drive.close()
