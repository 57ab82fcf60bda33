"""A journal of sockets for each test, and an owner that does some work with it."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from budgets.sessions.bounds import BOUNDS, Bounds, Deadline
from budgets.sessions.credentials import Pair, Shown
from budgets.sessions.owner import Owner
from budgets.sessions.workers import Workers
from tests.servers.journals import Journal


class Key:
    """A key at hand, or one that takes its time."""

    def __init__(self, hold: threading.Event | None = None) -> None:
        self.hold = hold

    def read(self) -> Shown:
        if self.hold is not None:
            self.hold.wait(30)
        return Shown("key-1")

    def save(self, pair: Pair) -> None:
        raise AssertionError


@pytest.fixture
def journal() -> Iterator[Journal]:
    with Journal() as one:
        yield one


@pytest.fixture
def workers() -> Iterator[Workers]:
    one = Workers()
    yield one
    one.close()


@pytest.fixture
def call(journal: Journal, workers: Workers) -> Callable[..., Any]:
    """Do some work with an owner; what it returned."""

    def made(work: Callable[[Owner], Awaitable[Any]], *, bounds: Bounds = BOUNDS, credentials: Any = None) -> Any:
        async def whole() -> Any:
            deadline = Deadline(bounds.seconds)
            owner = Owner(
                journal.url, credentials or Key(), deadline=deadline, bounds=bounds, workers=workers
            )  # fmt: skip
            found: list[Any] = []

            async def keep() -> None:
                found.append(await work(owner))

            await owner.run(keep)
            return found[0]

        return asyncio.run(whole())

    return made
