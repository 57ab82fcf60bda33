"""What the node answers its host with, besides outcomes."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from uuid import UUID

from catalog.rules.servers import MeasuredListing


@dataclass(frozen=True, slots=True)
class Opened:
    """A session is live, with the listing it has."""

    listing: MeasuredListing


@dataclass(frozen=True, slots=True)
class NotOpened:
    """No session. `reason` is a code of `jobs.rules.reasons`, `detail` one sentence for a person.

    `failures` counts the starts in a row that failed; `retry_in` is the back-off in seconds before the next start.
    While more than 5 s of it are left, `open` answers with this at once and starts nothing. `status` is the HTTP
    status that a remote server refused to be opened with.
    """

    reason: str
    detail: str
    failures: int
    retry_in: float
    status: int | None = None


class ServerState(StrEnum):
    """Where a tool's server is."""

    STARTING = "starting"
    UP = "up"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """One server of this node, for pages. `reason` says why it is down.

    `log` is the last of what it said beside the protocol, for authors and admins.
    """

    tenant: UUID
    tool_id: UUID
    tool: str
    job: UUID | None  # whose own it is, of a sandboxed tool
    version: str
    state: ServerState
    reason: str
    protocol: str  # empty unless it is up
    pid: int | None
    starts: int  # how often it has been started on this node
    failures: int  # starts in a row that failed
    open_calls: int
    log: tuple[str, ...]


class CannotMeasure(Exception):
    """A listing could not be read. The message is one sentence for a person, `status` a remote server's HTTP status."""

    def __init__(self, why: str, status: int | None = None) -> None:
        super().__init__(why)
        self.status: Final = status
