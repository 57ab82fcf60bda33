"""Writing to a server's stdin, one message at a time and knowing what left (MACHINES 5)."""

import asyncio
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from base import crash_points

WAITING: Final = 1000  # messages of our own (refusals, cancels) that may wait for a server that does not read


@dataclass(slots=True)
class Letter:
    """One message. `begin` is asked right before its first byte is written and may say no.

    `never_left` is told when the pipe then took not one byte of it because nobody holds its other end any more.
    """

    data: bytes
    begin: Callable[[], bool] = field(default=lambda: True)
    never_left: Callable[[], None] = field(default=lambda: None)


class Outbox:
    """A queue in front of one pipe. A pipe that is full stops the queue and nothing else."""

    def __init__(self, fd: int) -> None:
        self._fd: Final = fd
        self._loop: Final = asyncio.get_running_loop()
        self._letters: deque[Letter] = deque()
        self._more: Final = asyncio.Event()
        self._closed = False
        self._task: Final = self._loop.create_task(self._write_all())

    def put(self, letter: Letter) -> None:
        """Queue a letter; after `close` it is dropped unwritten."""
        if not self._closed:
            self._letters.append(letter)
            self._more.set()

    @property
    def waiting(self) -> int:
        """How many letters wait."""
        return len(self._letters)

    async def close(self) -> None:
        """Write nothing more. Call it before the pipe is closed. Twice is no error."""
        self._closed = True
        self._letters.clear()
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _write_all(self) -> None:
        while not self._closed:
            self._more.clear()
            while self._letters:
                await (
                    self._writable()
                )  # before `begin`, so that a full pipe holds back a letter that can still be withdrawn
                letter = self._letters.popleft() if self._letters else None
                if letter is not None and letter.begin() and not await self._write(letter):
                    self._closed = True
                    return
            await self._more.wait()

    async def _write(self, letter: Letter) -> bool:
        rest = memoryview(letter.data)
        while rest:
            try:
                rest = rest[os.write(self._fd, rest) :]
            except BlockingIOError:
                await self._writable()
            except OSError:
                if len(rest) == len(letter.data):
                    letter.never_left()
                return False
        crash_points.reached("request.written")
        return True

    async def _writable(self) -> None:
        ready: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_writer(self._fd, _settle, ready)
        try:
            await ready
        finally:
            self._loop.remove_writer(self._fd)


def _settle(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)
