"""How one try to send a notice ended."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sent:
    """`trouble` says what went wrong; a notice that `arrived` may have some too, when only some addresses took it.

    `wait` is what the receiver asked for, in seconds.
    """

    arrived: bool
    trouble: str = ""
    status: int | None = None
    wait: float | None = None
    took: float = 0.0
