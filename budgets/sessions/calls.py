"""What every call of the journal's client has in common: what it knows at any moment, and how it failed.

A call keeps what it knows in itself, not in a return value: a bound or a cancel may end it anywhere, and what was known
then is what is told (RULES S3, S7, S11, W5).
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from budgets.rules import acceptance
from budgets.rules.attribution import Recorded
from budgets.sessions.owner import Answer, Lost, Owner

NOT_SUBMITTED: Final = "not_submitted"
UNKNOWN: Final = "unknown"
CONFIRMED: Final = "confirmed"
UNRESOLVED: Final = frozenset({409, 410})  # of an id that something was done under: this request did nothing of it


class Failed(Exception):
    """A call that did not come to what it is for. `code` is a word for programs, the message one or two sentences."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code: Final = code


@dataclass(slots=True)
class Recovery:
    """What a caller needs to go on from here, in every outcome. Nothing in it claims more than is known."""

    operation_id: str | None = None
    standing: str = NOT_SUBMITTED  # of the operation
    items: list[dict[str, Any]] = field(default_factory=list)
    reservation_id: str | None = None
    call_id: str | None = None
    settlement: str = NOT_SUBMITTED
    recording: Recorded = Recorded.NOT_SUBMITTED
    cursor: str | None = None

    def as_json(self) -> dict[str, Any]:
        """As it is told."""
        told = asdict(self)
        operation_id, standing = told.pop("operation_id"), told.pop("standing")
        return {"operation_id": operation_id, "state": standing, **told, "recording": self.recording.value}


class Call:
    """One call, from its arguments to whatever ends it."""

    def __init__(self) -> None:
        self.recovery: Final = Recovery()

    async def work(self, owner: Owner) -> None:
        """Do it. Raises `Failed`, and what `Owner.ask` raises."""
        raise NotImplementedError

    def data(self) -> Mapping[str, Any] | None:
        """What is known of what was asked for; None while nothing is."""
        raise NotImplementedError

    def stopped(self) -> None:
        """A bound or a failure has ended it: what was not begun will not be."""

    def left_out(self) -> None:
        """Its data cannot be told, since it is too large. What was told before still holds."""


def failed(answer: Answer, what: str) -> Failed:
    """The failure that an answer is."""
    code = acceptance.code_of(answer.body)
    match answer.status:
        case 401:
            return Failed("credentials_refused", "The journal does not know this key, or it counts no more.")
        case 403:
            return Failed("not_allowed", f"This key may not {what}: it can only look things up.")
        case 429:
            return Failed(code or "rate_limited", "The journal is asked too often with this key; nothing was done.")
        case status if 300 <= status < 400:
            return Failed("redirect_refused", f"The journal sent us elsewhere ({status}), where nobody goes.")
        case status if answer.nothing_made:
            return Failed(code or f"status_{status}", f"The journal refused it ({code or status}); nothing was made.")
        case status if status < 300:
            return Failed("invalid_response", "The journal's answer is not what it must be; it is not believed.")
        case status:
            return Failed(
                code or "outcome_unavailable", f"The journal failed ({status}), and may have done some of it."
            )


def lost(error: Lost) -> Failed:
    """The failure that a missing answer is."""
    if error.doubt:
        return Failed("outcome_unavailable", f"{error} What the journal did is not known.")
    return Failed("connection_failed", f"{error} Nothing was sent: try again.")


def state_after(answer: Answer) -> str:
    """What is known of an operation or a settlement once the journal has answered with no result."""
    return NOT_SUBMITTED if answer.nothing_made and answer.status not in UNRESOLVED else UNKNOWN
