"""One `tools/call` request from its making to its end, as its owner and its connection both see it."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from base import crash_points
from catalog.rules.answers import Answer
from catalog.rules.http import Heard, NoAnswer, NotMade


@dataclass(frozen=True, slots=True)
class Broke:
    """The connection ended before an answer came; `why` is one sentence."""

    why: str


type CallEnd = Answer | Broke | NotMade | NoAnswer


class Carrier(Protocol):
    """What a call needs of its connection."""

    def cancel(self, wire_id: int, why: str) -> None:
        """Tell the server that the request is no longer wanted."""

    def forget(self, wire_id: int) -> None:
        """Treat what still comes for the request as late."""


class Call:
    """`ended` resolves once, with the answer or the break. `went_out` may be read from any thread.

    `may_begin` is asked right before the first byte; when it says no, nothing is ever written. `owner` is whatever
    the caller wants to know a late answer by.
    """

    def __init__(
        self,
        *,
        owner: object,
        may_begin: Callable[[], bool],
        on_progress: Callable[[Mapping[str, Any]], None],
        progress_token: str,
        output_schema: Mapping[str, Any] | None,
    ) -> None:
        self.owner: Final = owner
        self.on_progress: Final = on_progress
        self.progress_token: Final = progress_token  # empty: progress is not asked for
        self.output_schema: Final = output_schema
        self.ended: Final[asyncio.Future[CallEnd]] = asyncio.get_running_loop().create_future()
        self.went_out = False
        self.heard: Heard | None = None  # what came back on its own HTTP exchange; None on stdio
        self.asked_for_input = False
        self._may_begin: Final = may_begin
        self._withdrawn = False
        self._cancelled = False
        self._carrier: Carrier | None = None
        self._wire_id = 0

    def sent_by(self, carrier: Carrier, wire_id: int) -> None:
        """For the connection: it has queued the request under this id."""
        self._carrier, self._wire_id = carrier, wire_id

    def begin(self) -> bool:
        """For the connection: whether to write the request now. True marks it as gone out."""
        if self._withdrawn or not self._may_begin():
            return False
        self.went_out = True
        crash_points.reached("request.first_byte")
        return True

    def never_left(self) -> None:
        """For the connection: the pipe had no reader and took not one byte."""
        self.went_out = False

    def end(self, how: CallEnd) -> None:
        """For the connection: the first end counts."""
        if isinstance(how, Answer):
            crash_points.reached("reply.received")
        if not self.ended.done():
            self.ended.set_result(how)

    def withdraw(self) -> bool:
        """Take the request back if no byte of it has left; whether that was in time."""
        if not self.went_out:
            self._withdrawn = True
        return self._withdrawn

    @property
    def cancelled(self) -> bool:
        """Whether the server was told that it is no longer wanted."""
        return self._cancelled

    def cancel(self, why: str) -> None:
        """Send the cancel notification, once, unless the request never went out or has ended."""
        if self._carrier is not None and self.went_out and not self.ended.done() and not self._cancelled:
            self._cancelled = True
            self._carrier.cancel(self._wire_id, why)

    def close(self) -> None:
        """The owner has its outcome. A later answer is late, later progress is ignored, unsent bytes stay unsent."""
        self.withdraw()
        if self._carrier is not None:
            self._carrier.forget(self._wire_id)
