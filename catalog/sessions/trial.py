"""Starting a plugin's servers to see whether they can be listed, beside what the caller does meanwhile."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from threading import Thread
from typing import Final

from catalog.rules.servers import MeasuredListing, ServerSpec
from catalog.sessions.log import Log
from catalog.sessions.once import listed
from catalog.sessions.session import NotUp


@dataclass(frozen=True, slots=True)
class NotListed:
    """A server that could not be listed: why, and every line that it had said, marked by where it came from."""

    why: str
    said: tuple[str, ...]


class Trial:
    """Servers by their tool. `then` is called once, from a thread of the trial's own, when each is listed or failed.

    They run until `end` is called.
    """

    def __init__(self, specs: Mapping[str, ServerSpec], then: Callable[["Trial"], None]) -> None:
        self.listed: Final[dict[str, MeasuredListing]] = {}
        self.failed: Final[dict[str, NotListed]] = {}
        self._specs: Final = specs
        self._then: Final = then
        self._ended = False
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[None]] | None = None
        self._thread: Final = Thread(target=self._run, name="oz0-trial", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """End the servers, or break their starts off; `then` may not be called any more. It is not waited for."""
        self._ended = True
        if self._running is not None:
            loop, task = self._running
            with suppress(RuntimeError):  # it has ended by itself
                loop.call_soon_threadsafe(task.cancel)

    def wait(self, seconds: float) -> None:
        """Wait until everything is gone, at most so long."""
        self._thread.join(seconds)

    def _run(self) -> None:
        with suppress(asyncio.CancelledError):
            asyncio.run(self._try())

    async def _try(self) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  this runs as one
        self._running = (asyncio.get_running_loop(), task)
        if self._ended:
            return
        async with AsyncExitStack() as servers:
            await asyncio.gather(*(self._list(servers, tool, spec) for tool, spec in self._specs.items()))
            self._then(self)
            await asyncio.Event().wait()  # until it is ended

    async def _list(self, servers: AsyncExitStack, tool: str, spec: ServerSpec) -> None:
        log = Log(secrets=spec.secrets)
        try:
            self.listed[tool] = await servers.enter_async_context(listed(spec, log))
        except NotUp as error:
            self.failed[tool] = NotListed(str(error), log.tail())
