"""The courier: beside a node, it looks once a second for what people are to be told, and sends it.

It shares nothing with calls and turns: threads of its own, one a notice, so a receiver that hangs slows no call. What
it had not sent when its process ends is due again for another.
"""

import logging
import threading
from collections.abc import Callable
from random import random
from typing import Final
from uuid import UUID

from django.db import close_old_connections, connection

from approvals.operations import notices
from approvals.queries.notices import to_send
from base import db

log = logging.getLogger(__name__)

PERIOD: Final = 1.0  # seconds
AT_ONCE: Final = 6  # notices of one process


class Courier:
    """A thread that finds what is due, and one for each notice that is on its way."""

    def __init__(self, *, period: float = PERIOD) -> None:
        self._period: Final = period
        self._stop: Final = threading.Event()
        self._lock: Final = threading.Lock()
        self._at: Final[set[UUID]] = set()  # channels that something is on its way to
        self._thread: Final = threading.Thread(target=self._run, name="oz0-courier", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more. What is on its way is not waited for: it is sent again by whoever finds it."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(2)

    def _run(self) -> None:
        while not self._stop.wait(self._period):
            self._guarded(self._look)
        connection.close()

    def _look(self) -> None:
        notices.note_due()
        with self._lock:
            free, taken = AT_ONCE - len(self._at), frozenset(self._at)
        for tenant, delivery, channel in to_send(most=free, taken=taken) if free > 0 else ():
            with self._lock:
                self._at.add(channel)
            words = (tenant, delivery, channel)
            threading.Thread(target=self._carry, args=words, name="oz0-notice", daemon=True).start()

    def _carry(self, tenant: UUID, delivery: UUID, channel: UUID) -> None:
        try:
            self._guarded(lambda: deliver(tenant=tenant, delivery=delivery))
        finally:
            connection.close()
            with self._lock:
                self._at.discard(channel)

    def _guarded(self, act: Callable[[], object]) -> None:
        close_old_connections()
        try:
            act()
        except db.GONE as error:
            connection.close()
            log.warning("the courier could not reach the database (%s)", type(error).__name__)
        except Exception:
            log.exception("a notice ended by an error of ours; it is tried again")


def deliver(*, tenant: UUID, delivery: UUID) -> bool:
    """Send one due notice and keep how that ended; False when there was nothing to send."""
    work = notices.claim(tenant=tenant, delivery=delivery)
    if work is None:
        return False
    notices.settle(work, notices.send(work), jitter=random())
    return True
