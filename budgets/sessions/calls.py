"""What every call of the journal's client has in common: what it knows at any moment, and how it failed.

A call keeps what it knows in itself, not in a return value: a bound or a cancel may end it anywhere, and what was known
then is what is told (RULES S3, S7, S11, W5).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from base.visible import visible
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


class Call(ABC):
    """One call, from its arguments to whatever ends it."""

    def __init__(self) -> None:
        self.recovery: Final = Recovery()

    @abstractmethod
    async def work(self, owner: Owner) -> None:
        """Do it. Raises `Failed`, and what `Owner.ask` raises."""

    @abstractmethod
    def data(self) -> Mapping[str, Any] | None:
        """What is known of what was asked for; None while nothing is."""

    def stopped(self) -> None:  # noqa: B027  most calls have nothing left to begin
        """A bound or a failure has ended it: what was not begun will not be."""

    def shorter(self) -> bool:
        """Its data is too large: whether some of it was left out from its end, so that the rest can be told."""
        return False

    def left_out(self) -> None:  # noqa: B027  most calls have nothing to take back
        """Its data cannot be told, since it is too large. What was told before still holds."""


def failed(answer: Answer, what: str, *, reads: bool = False) -> Failed:
    """The failure that an answer is. One to what only `reads` says nothing of what was done before it."""
    code = acceptance.code_of(answer.body)
    match answer.status:
        case 401:
            return Failed("credentials_refused", "The journal does not know this key, or it counts no more.")
        case 403:
            return Failed("not_allowed", f"This key may not {what}.")
        case status if status < 300:
            return Failed("invalid_response", "The journal's answer is not what it must be; it is not believed.")
        case status if status < 400:
            return Failed("redirect_refused", f"The journal sent us elsewhere ({status}), where nobody goes.")
        case status if reads:
            why = f"The journal did not {what} ({_said(answer)}). What was done before is as it was."
            return Failed(code or ("rate_limited" if status == 429 else f"status_{status}"), why)
        case 429:
            return Failed(code or "rate_limited", "The journal is asked too often with this key; nothing was done.")
        case status if answer.nothing_made and status in UNRESOLVED:
            why = (
                f"The journal refused it ({_said(answer)}). This request did nothing; what was done under the same id "
                "before is not known from that."
            )
            return Failed(code or f"status_{status}", why)
        case status if answer.nothing_made:
            return Failed(code or f"status_{status}", f"The journal refused it ({_said(answer)}); nothing was made.")
        case status:
            return Failed(
                code or "outcome_unavailable", f"The journal failed ({status}), and may have done some of it."
            )


def _said(answer: Answer) -> str:
    """What an answer says is wrong: its word, and of what is malformed its first mistake."""
    told = acceptance.code_of(answer.body) or str(answer.status)
    mistake = acceptance.mistake_of(answer.body) if answer.status == 422 else ""
    return f"{told}: {visible(mistake, acceptance.LONGEST)}" if mistake else told


def lost(error: Lost) -> Failed:
    """The failure that a missing answer is."""
    if error.doubt:
        return Failed("outcome_unavailable", f"{error} What the journal did is not known.")
    return Failed("connection_failed", f"{error} Nothing was sent: try again.")


def state_after(answer: Answer) -> str:
    """What is known of an operation or a settlement once the journal has answered with no result."""
    return NOT_SUBMITTED if answer.nothing_made and answer.status not in UNRESOLVED else UNKNOWN
