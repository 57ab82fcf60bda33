"""Nudges to open pages: "changed, seq 41", never content (STYLE 22). Losing one costs seconds, never truth.

A nudge is handed to one background thread and never blocks or fails its sender. Nudges of one group that wait
together become one, and after each round of sending they gather for a moment, so that a busy job costs no more than
its pages can read. After a quiet moment two rounds may follow each other at once, so that the end of a short call is
told as soon as its beginning. While the channel layer cannot be reached they are dropped, counted, and told once a
minute.
"""

import asyncio
import logging
import threading
import time
from typing import Any, Final
from uuid import UUID

from channels.layers import get_channel_layer

log = logging.getLogger(__name__)
TYPE: Final = "nudge"
SEND_LIMIT: Final = 2.0  # seconds for one send
TELL_EVERY: Final = 60.0  # seconds between two warnings
MOST_WAITING: Final = 10_000  # groups
GATHERING: Final = 0.02  # seconds from round to round of sending
AT_ONCE: Final = 2.0  # rounds without that, after as many times of it in which nothing was sent
PAUSE: Final = 0.5  # seconds after a round in which the layer could not be reached


def job_group(job_id: UUID) -> str:
    """Pages that show one job."""
    return f"job.{job_id.hex}"


def jobs_group(tenant: UUID) -> str:
    """Pages that list a tenant's jobs."""
    return f"jobs.{tenant.hex}"


def approvals_group(tenant: UUID) -> str:
    """Pages that show a tenant's open questions, or how many there are."""
    return f"approvals.{tenant.hex}"


def catalog_group(tenant: UUID) -> str:
    """Pages that show a tenant's tools and what they list."""
    return f"catalog.{tenant.hex}"


def person_group(person: int) -> str:
    """Every open page of one person."""
    return f"person.{person}"


def job(tenant: UUID, job_id: UUID, seq: int) -> None:
    """Tell pages that show this job, or lists of the tenant's jobs, that its journal grew to `seq`."""
    _sender.put(job_group(job_id), seq)
    _sender.put(jobs_group(tenant), None)


def job_progressed(job_id: UUID) -> None:
    """Tell pages that show this job that something of it moved which its journal does not count."""
    _sender.put(job_group(job_id), None)


def approvals(tenant: UUID) -> None:
    """Tell pages that show the tenant's open questions that one was opened or closed."""
    _sender.put(approvals_group(tenant), None)


def catalog(tenant: UUID) -> None:
    """Tell pages that show the tenant's tools that one was listed, or could not be."""
    _sender.put(catalog_group(tenant), None)


def person(person: int) -> None:
    """Have every open page of a person looked at again: whether it may go on."""
    _sender.put(person_group(person), None)


def everything(tenant: UUID) -> None:
    """Tell pages that show the tenant's jobs or its open questions that something changed over all of them."""
    _sender.put(jobs_group(tenant), None)
    _sender.put(approvals_group(tenant), None)


class _Sender:
    """The background thread and what waits for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, int | None] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._more = asyncio.Event()
        self._dropped = 0
        self._told_at = -TELL_EVERY

    def put(self, group: str, seq: int | None) -> None:
        with self._lock:
            if group not in self._waiting and len(self._waiting) >= MOST_WAITING:
                self._dropped += 1
                return
            told = bool(self._waiting)  # then the thread has been told already
            before = self._waiting.get(group)
            self._waiting[group] = seq if before is None or seq is None else max(before, seq)
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._run, args=(self._loop,), name="nudge", daemon=True).start()
            if not told:
                self._loop.call_soon_threadsafe(self._more.set)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(self._send_for_ever())

    async def _send_for_ever(self) -> None:
        spare, last = AT_ONCE, time.monotonic()
        while True:
            await self._more.wait()
            self._more.clear()
            now = time.monotonic()
            spare, last = min(AT_ONCE, spare + (now - last) / GATHERING) - 1, now
            with self._lock:
                batch, self._waiting = self._waiting, {}
            sent = [await self._send(group, seq) for group, seq in batch.items()]
            if not all(sent):
                await asyncio.sleep(PAUSE)
            elif spare < 1:
                await asyncio.sleep(GATHERING * (1 - spare))

    async def _send(self, group: str, seq: int | None) -> bool:
        message: dict[str, Any] = {"type": TYPE, "group": group, "seq": seq}
        try:
            async with asyncio.timeout(SEND_LIMIT):
                await get_channel_layer().group_send(group, message)
            return True
        except Exception as error:  # any failure of the layer is the same to us: the page re-reads by itself
            self._dropped += 1
            if time.monotonic() - self._told_at >= TELL_EVERY:
                self._told_at = time.monotonic()
                why = str(error) or type(error).__name__  # a limit that was reached says nothing of itself
                log.warning("nudges do not get through (%s); %d dropped, pages poll", why, self._dropped)
            return False


_sender: Final = _Sender()
