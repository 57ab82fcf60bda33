"""The gateway's database work: a few threads, each with a connection that it keeps, however many clients wait."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from django.db import connections

from base import db

MOST: Final = 8


class Threads:
    """Where blocking work of the gateway runs."""

    def __init__(self, most: int = MOST) -> None:
        self._most: Final = most
        self._pool: Final = ThreadPoolExecutor(most, thread_name_prefix="oz0-gateway")

    def stop(self) -> None:
        """End the threads, and their connections with them."""

        def close() -> None:
            meet.wait()  # so that each thread takes one of these
            connections.close_all()

        meet = threading.Barrier(self._most, timeout=10)
        for done in [self._pool.submit(close) for _ in range(self._most)]:
            done.result()
        self._pool.shutdown()

    async def run[Found](self, act: Callable[[], Found]) -> Found:
        """What `act` gives, run on one of the threads. A cancelled wait leaves it running to its end."""

        def fresh() -> Found:
            db.fresh()
            return act()

        return await asyncio.get_running_loop().run_in_executor(self._pool, fresh)
