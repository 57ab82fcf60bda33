"""What crosses between the durable core and the node: an `Order` goes in, an `Outcome` comes out. Plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from uuid import UUID

from catalog.rules.servers import MeasuredListing, ServerSpec
from catalog.rules.wire import Wire


class End(StrEnum):
    """How an attempt ended (MACHINES 1)."""

    ANSWERED = "answered"
    BUSY = "busy"
    NOT_MADE = "not_made"
    TIMED_OUT = "timed_out"
    BROKEN = "broken"
    UNREADABLE = "unreadable"
    LOST = "lost"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Order:
    """One attempt to make, complete: the node asks nobody anything. All durations are seconds.

    `own_limit` is when the attempt stops itself, `timeout` the full limit (RULES L4). `entry_digest` is the listing
    entry the call was judged by: a session that lists another one makes the attempt `not_made` (MACHINES 4).
    """

    tenant: UUID
    job_id: UUID
    call_id: UUID
    attempt_id: UUID
    number: int
    server: ServerSpec
    function: str
    arguments: Mapping[str, Any] = field(repr=False)
    key: str
    entry_digest: str
    retry_safe: bool  # progress is asked for exactly on these (RULES P1)
    timeout: float
    own_limit: float
    cleanup: float
    resume: "ResumePoint | None" = None  # where an attempt before it had got to (RULES P3)


@dataclass(frozen=True, slots=True)
class Result:
    """What the tool answered. `text` is what the model reads (RULES C8); `content` is kept for the trace."""

    text: str
    is_error: bool
    content: tuple[Mapping[str, Any], ...] = ()
    structured: Any = None
    warning: str = ""  # for example: the answer breaks its own output schema


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """A token with which the server can go on, and the progress that came with it (RULES P3)."""

    token: str = field(repr=False)
    progress: float
    total: float | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """The last valid progress of an attempt: its value and total, never the server's message (RULES P1).

    `resume` is the last valid token that came with progress; `odd_token` says that one came which is none.
    """

    value: float
    total: float | None
    resume: ResumePoint | None = None
    odd_token: bool = False


@dataclass(frozen=True, slots=True)
class Sighting:
    """A listing as a session read it, `at` seconds of the node's own clock (`base.clock.boot_time`)."""

    listing: MeasuredListing
    at: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one attempt ended, with its evidence. `reason` is a stable code, `wire.detail` a sentence for a person.

    `retry_after` is seconds and only set on `BUSY`. `end_known` tells of a stopped attempt whether its end was
    observed (acknowledged, answered, its process gone) rather than waited out (RULES L2). `seen` is what the server
    listed instead of what the call was judged by (RULES C3).
    """

    end: End
    reason: str
    wire: Wire
    result: Result | None = None
    retry_after: float | None = None
    progress: Progress | None = None
    end_known: bool = True
    seen: Sighting | None = None
