"""Waiting for calls to end: one task a process, however many wait. No thread or connection is held (DESIGN 2)."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from typing import Any, Final
from uuid import UUID

from channels.layers import get_channel_layer
from redis.exceptions import RedisError

from base import db, nudge
from jobs.queries.outside import Standing

log = logging.getLogger(__name__)

POLL: Final = 1.0  # seconds between two looks without a nudge
SOON: Final = 0.02  # seconds at least between two looks, however many nudges come; fewer while few wait
A_WAITER: Final = 0.002  # of them, for each that waits
PAUSE: Final = 1.0  # seconds after the channel layer failed

type Look = Callable[[Collection[UUID]], Awaitable[Mapping[UUID, Standing]]]


class Waiter:
    """One request that waits for a call."""

    def __init__(self, call_id: UUID, tenant: UUID) -> None:
        self.call_id: Final = call_id
        self.tenant: Final = tenant
        self.standing: Standing | None = None
        self._changed: Final = asyncio.Event()

    def wake(self) -> None:
        """Have `changed` return."""
        self._changed.set()

    async def changed(self, seconds: float) -> None:
        """Return once something has changed, and at the latest after this time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        self._changed.clear()


class Watch:
    """Looks at all calls that are waited for: at once when a job of their tenant moved, else every second.

    The nudge comes over the channel layer. Without it the look every second goes on (MACHINES 4).
    """

    def __init__(self, look: Look) -> None:
        self._look: Final = look
        self._waiters: Final[set[Waiter]] = set()
        self._nudged: Final = asyncio.Event()
        self._more: Final = asyncio.Event()  # somebody else waits, perhaps in another tenant
        self._tasks: list[asyncio.Task[None]] = []

    @contextlib.contextmanager
    def on(self, call_id: UUID, tenant: UUID) -> Iterator[Waiter]:
        """Look at this call too, until the block ends."""
        waiter = Waiter(call_id, tenant)
        self._waiters.add(waiter)
        self._nudged.set()
        self._more.set()
        if not self._tasks:
            loop = asyncio.get_running_loop()
            self._tasks = [loop.create_task(self._look_for_ever()), loop.create_task(self._listen_for_ever())]
        try:
            yield waiter
        finally:
            self._waiters.discard(waiter)

    async def stop(self) -> None:
        """Look no more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _look_for_ever(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL if self._waiters else None):
                    await self._nudged.wait()
            self._nudged.clear()
            if not self._waiters:
                continue
            try:
                found = await self._look({waiter.call_id for waiter in self._waiters})
            except db.GONE as error:
                log.warning("calls that are waited for could not be looked at (%s)", type(error).__name__)
                await asyncio.sleep(PAUSE)
                continue
            except Exception:
                log.exception("calls that are waited for could not be looked at")
                await asyncio.sleep(PAUSE)
                continue
            for waiter in list(self._waiters):
                standing = found.get(waiter.call_id)
                if standing is not None and standing != waiter.standing:
                    waiter.standing = standing
                    waiter.wake()
            await asyncio.sleep(min(SOON, A_WAITER * len(self._waiters)))

    async def _listen_for_ever(self) -> None:
        """Look at once when a job of a tenant moved that somebody waits in; without a layer nothing is heard."""
        while True:
            try:
                await self._listen()
            except (RedisError, OSError) as error:
                log.info("the gateway hears no nudges (%s); it looks every second", type(error).__name__)
            except Exception:
                log.exception("the gateway hears no nudges for a moment; it looks every second")
            await asyncio.sleep(PAUSE)

    async def _listen(self) -> None:
        layer: Any = get_channel_layer()
        channel, joined = await layer.new_channel(), set[str]()
        heard = asyncio.ensure_future(layer.receive(channel))  # kept: one that is given up takes the channel with it
        try:
            while True:  # a lost connection is found by the layer itself, and looking every second goes on meanwhile
                for group in {nudge.jobs_group(waiter.tenant) for waiter in self._waiters} - joined:
                    await layer.group_add(group, channel)
                    joined.add(group)
                    self._nudged.set()  # what moved before it joined
                more = asyncio.ensure_future(self._more.wait())
                await asyncio.wait({heard, more}, return_when=asyncio.FIRST_COMPLETED)
                more.cancel()
                self._more.clear()
                if heard.done():
                    heard.result()
                    self._nudged.set()
                    heard = asyncio.ensure_future(layer.receive(channel))
        finally:
            heard.cancel()
            for group in joined:
                with contextlib.suppress(Exception):  # the layer, or the channel with it, may have gone
                    await layer.group_discard(group, channel)
