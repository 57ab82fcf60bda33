"""The gateway's database work: a few threads, each with a connection that it keeps, however many clients wait."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from django.db import close_old_connections

MOST: Final = 8


class Threads:
    """Where blocking work of the gateway runs."""

    def __init__(self, most: int = MOST) -> None:
        self._pool: Final = ThreadPoolExecutor(most, thread_name_prefix="oz0-gateway")

    async def run[Found](self, act: Callable[[], Found]) -> Found:
        """What `act` gives, run on one of the threads. A cancelled wait leaves it running to its end."""

        def fresh() -> Found:
            close_old_connections()
            return act()

        return await asyncio.get_running_loop().run_in_executor(self._pool, fresh)
