"""Beside a node: what is to be sent to collectors of traces is looked for and sent, on a thread of its own.

A collector that hangs keeps this thread for its limit and nothing else.
"""

import logging
import threading
from random import random
from typing import Final
from uuid import UUID

from django.db import close_old_connections, connection

from base import db
from jobs.operations import exporting
from jobs.queries.exported import exporters_due

log = logging.getLogger(__name__)

PERIOD: Final = 2.0  # seconds
AT_ONCE: Final = 8  # exporters of one look


class Exporting:
    """The thread."""

    def __init__(self, *, period: float = PERIOD) -> None:
        self._period: Final = period
        self._stop: Final = threading.Event()
        self._thread: Final = threading.Thread(target=self._run, name="oz0-exporting", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more. What is on its way is not waited for: whoever finds it sends it again."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.wait(self._period):
            close_old_connections()
            try:
                self._look()
            except db.GONE as error:
                connection.close()
                log.warning("traces cannot be read for sending (%s)", type(error).__name__)
            except Exception:
                log.exception("sending traces ended by an error of ours; it is tried again")
        connection.close()

    def _look(self) -> None:
        for tenant, exporter in exporters_due(most=AT_ONCE):
            if self._stop.is_set():
                return
            export(tenant=tenant, exporter=exporter)


def export(*, tenant: UUID, exporter: UUID) -> bool:
    """Send what is due of one exporter and keep how that ended; False when there was nothing."""
    work = exporting.claim(tenant=tenant, exporter=exporter)
    if work is None:
        return False
    exporting.settle(work, exporting.send(work), jitter=random())
    return True
