"""Following a job: its events as they come, to any number of readers, each of which is one waiting task.

A reader holds no thread and no connection to the database while it waits. It is woken by the nudges that open pages
get, and looks by itself every few seconds, since a nudge may be lost. Now and again it is asked whether it still may.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from uuid import UUID

from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from redis.exceptions import RedisError

from base import db, nudge

MOST: Final = 2_000  # readers in one process
OF_ONE: Final = 100  # of them, of one token or person, so that nobody takes all
LOOK: Final = 5.0  # seconds after which a reader looks by itself
LOOK_ALONE: Final = 1.0  # the same where no nudge can come
STILL_HERE: Final = 15.0  # seconds of silence after which a line says that the stream lives; and whether it still may
AGAIN: Final = 2_000  # milliseconds after which a browser connects again

_readers: Final = Counter[object]()


class Full(Exception):
    """This process has as many readers as it takes, or with `of_one` as many as it takes of one."""

    def __init__(self, *, of_one: bool) -> None:
        super().__init__()
        self.of_one: Final = of_one


@dataclass(frozen=True, slots=True)
class Frames:
    """Events as they are sent, up to number `seq`; see `JournalPage`."""

    sent: tuple[bytes, ...]
    seq: int
    more: bool
    over: bool


def readers() -> int:
    """How many follow something in this process."""
    return _readers.total()


type Followed = AsyncGenerator[bytes]


def begin(
    job_id: UUID, seq: int, frames: Callable[[int], Frames | None], counts: Callable[[], bool], *, whose: object
) -> Followed:
    """Follow a job from event `seq` on, for `whose` token or person. The two acts read the database. Raises `Full`."""
    if _readers[whose] >= OF_ONE or readers() >= MOST:
        raise Full(of_one=_readers[whose] >= OF_ONE)
    return _follow(job_id, seq, frames, counts, whose)


async def _follow(
    job_id: UUID, seq: int, frames: Callable[[int], Frames | None], counts: Callable[[], bool], whose: object
) -> Followed:
    _readers[whose] += 1
    clock = asyncio.get_running_loop().time
    spoke = asked = clock()
    waiting = _Waiting(nudge.job_group(job_id))
    try:
        await waiting.begin()
        yield f"retry: {AGAIN}\n\n".encode()
        while True:
            found = await _read(partial(frames, seq))
            if found is None:
                return
            for frame in found.sent:
                yield frame
            if found.sent:
                spoke, seq = clock(), found.seq
            if found.over:
                return
            if found.more:
                continue
            await waiting.once()
            if clock() - spoke >= STILL_HERE:
                spoke = clock()
                yield b": still here\n\n"
            if clock() - asked >= STILL_HERE:
                asked = clock()
                if not await _read(counts):
                    return
    except db.GONE:
        return  # the reader connects again, and goes on after the last event it read
    finally:
        _readers[whose] -= 1
        if not _readers[whose]:
            del _readers[whose]
        await waiting.end()


async def _read[Found](read: Callable[[], Found]) -> Found:
    found: Found = await database_sync_to_async(read)()
    return found


class _Waiting:
    """One reader's place among those who are nudged when a job changes."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._layer: Any = get_channel_layer()
        self._channel = ""
        self._next: asyncio.Task[Any] | None = None

    async def begin(self) -> None:
        """Take the place; where the channel layer cannot be reached there is none."""
        with contextlib.suppress(RedisError, OSError):
            self._channel = await self._layer.new_channel("following.")
            await self._layer.group_add(self._group, self._channel)

    async def once(self) -> None:
        """Wait for a nudge, or until it is time to look."""
        if not self._channel:
            await asyncio.sleep(LOOK_ALONE)
            return
        if self._next is None:  # cancelling it would give the place up
            self._next = asyncio.create_task(self._layer.receive(self._channel))
        done, _ = await asyncio.wait({self._next}, timeout=LOOK)
        if done:
            failed, self._next = self._next.exception(), None
            if failed is not None:
                await asyncio.sleep(LOOK_ALONE)

    async def end(self) -> None:
        """Leave."""
        if not self._channel:
            return
        waiting = self._next or asyncio.create_task(self._layer.receive(self._channel))
        with contextlib.suppress(RedisError, OSError):
            await self._layer.group_discard(self._group, self._channel)
        waiting.cancel()  # which forgets the channel
        with contextlib.suppress(asyncio.CancelledError, RedisError, OSError):
            await waiting
