"""How much one call may take: time, pages, bytes (RULES W1, W2). No argument of a tool changes any of it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MIB: Final = 2**20


class Bound(StrEnum):
    """Which bound ended a call."""

    DEADLINE = "operation_deadline"
    CURSOR = "cursor_size_limit"
    PAGES = "page_limit"
    RESPONSE = "response_size_limit"
    REQUEST = "request_size_limit"
    ENCODING = "response_encoding_unsupported"
    STREAM = "request_stream_unsupported"


class Stopped(Exception):
    """A bound was reached. The message says which, and what it is."""

    def __init__(self, bound: Bound, why: str) -> None:
        super().__init__(why)
        self.bound: Final = bound


@dataclass(frozen=True, slots=True)
class Bounds:
    """The figures of RULES W2. None is no bound, which only the command has (RULES W6)."""

    seconds: float | None = 30.0
    pages: int | None = 10
    responses: int | None = MIB  # bytes of all bodies together
    request: int = 4 * MIB  # bytes of one body
    result: int = 2 * MIB  # bytes of the whole MCP result
    reserve: int = 4_096  # of them, for what the SDK adds
    cursor: int = 4_096  # characters
    streams: float = 0.125  # seconds for streams to end, once the call is over
    pool: float = 0.125  # and then for the connections
    wait: float = 10.0  # seconds before a second try


BOUNDS: Final = Bounds()


class Deadline:
    """The moment by which a call is over, on the loop's own clock. It begins when it is made."""

    def __init__(self, seconds: float | None, *, now: Callable[[], float] | None = None) -> None:
        self._now: Final = now or asyncio.get_running_loop().time
        self._at: Final = None if seconds is None else self._now() + seconds
        self.seconds: Final = seconds

    @property
    def left(self) -> float | None:
        """Seconds until then, at least 0; None without an end."""
        return None if self._at is None else max(0.0, self._at - self._now())

    @property
    def over(self) -> bool:
        """Whether it has come."""
        return self._at is not None and self._now() >= self._at

    def passed(self) -> Stopped:
        """What ends a call whose time is over."""
        return Stopped(Bound.DEADLINE, f"The call's {self.seconds or 0:g} s are over; no argument gives it more.")
