"""Threads for what may block in the operating system: files, a keychain. Python cannot end one that is stuck there.

They are no daemons: a process ends only when they have, which is what keeps a half-written token pair from being lost.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final

MOST: Final = 4  # that read, of all calls together; a further one waits for its turn within its own deadline


class Workers:
    """The threads of one process."""

    def __init__(self, most: int = MOST) -> None:
        self._readers: Final = ThreadPoolExecutor(most, thread_name_prefix="budget-reads")
        self._saver: Final = ThreadPoolExecutor(1, thread_name_prefix="budget-saves")  # a stuck read holds up no save

    def read[T](self, work: Callable[[], T]) -> "Future[T]":
        """Begin it as soon as a thread is free."""
        return self._readers.submit(work)

    def save[T](self, work: Callable[[], T]) -> "Future[T]":
        """Begin it after the saves before it; it goes on whatever becomes of who asked."""
        return self._saver.submit(work)

    def close(self) -> None:
        """Take no more. What runs goes on."""
        self._readers.shutdown(wait=False, cancel_futures=True)
        self._saver.shutdown(wait=False)


class Errands:
    """What one call has given to the workers."""

    def __init__(self, workers: Workers) -> None:
        self._workers: Final = workers
        self._given: Final[list[Future[Any]]] = []

    async def read[T](self, work: Callable[[], T]) -> T:
        """Do it in a thread. A cancel takes it back while it waits for one, and leaves it alone once it runs."""
        given = self._note(self._workers.read(work))
        try:
            await _over([given])
        finally:
            given.cancel()
        return given.result()

    def save[T](self, work: Callable[[], T]) -> Awaitable[T]:
        """Begin it in a thread at once, to its end, whatever becomes of the call; what is returned waits for that."""
        given = self._note(self._workers.save(work))

        async def saved() -> T:
            await _over([given])
            return given.result()

        return _Later(saved)

    @property
    def stuck(self) -> bool:
        """Whether something of this call is still being done, which may delay the end of the process."""
        return any(not one.done() for one in self._given)

    async def settled(self, seconds: float) -> None:
        """Wait so long, at most, for what was begun."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await _over(self._given)

    def _note[T](self, given: "Future[T]") -> "Future[T]":
        self._given.append(given)
        return given


class _Later[T]:
    """Awaitable once; nothing is left undone when nobody awaits it."""

    def __init__(self, wait: "Callable[[], Coroutine[Any, Any, T]]") -> None:
        self._wait: Final = wait

    def __await__(self) -> Generator[Any, Any, T]:
        return self._wait().__await__()


async def _over(given: "Sequence[Future[Any]]") -> None:
    """Wait until all of them are done. Who waits may be cancelled; they are not."""
    loop, moved = asyncio.get_running_loop(), asyncio.Event()

    def one_done(_: object) -> None:
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(moved.set)

    for one in given:
        one.add_done_callback(one_done)
    while True:
        moved.clear()
        if all(one.done() for one in given):
            return
        await moved.wait()
