"""What one request and its answer left on the wire: the only evidence an outcome is judged from (MACHINES 5)."""

from dataclasses import dataclass
from enum import StrEnum


class AnswerEnd(StrEnum):
    """How the answer to a request ended."""

    NONE = "none"  # nothing of an answer was read
    COMPLETE = "complete"  # a well-formed response carrying the request's id
    BROKEN = "broken"  # the connection or process ended before a response
    UNREADABLE = "unreadable"  # an answer came that cannot be read as a response
    TOO_LARGE = "too_large"  # a response for the request's id, larger than we keep


@dataclass(frozen=True, slots=True)
class Wire:
    """The record of one request, written by our own transport and never inferred from an SDK error.

    `went_out` is true as soon as one byte of the request may have left; `status` is the HTTP status, None on stdio.
    `detail` is one sentence for a person, without untrusted text.
    """

    connected: bool = False
    went_out: bool = False
    status: int | None = None
    ended: AnswerEnd = AnswerEnd.NONE
    detail: str = ""
