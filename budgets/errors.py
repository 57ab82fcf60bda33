"""What cannot be answered as it was asked, in the order in which it is looked for (RULES S2)."""

from typing import ClassVar
from uuid import UUID


class Refused(Exception):
    """The journal does not answer this; `code` is the word its API says. Nothing was changed."""

    code: ClassVar[str]
    status: ClassVar[int]

    def __init__(self, operation: UUID | str | None = None) -> None:
        super().__init__(f"{self.code}: {operation}" if operation else self.code)
        self.operation: UUID | str | None = operation


class InFuture(Refused):
    """Its time has not come, by any clock that is right enough."""

    code, status = "operation_in_future", 422


class Expired(Refused):
    """Its day is over, or a receipt's hour."""

    code, status = "operation_expired", 410


class NotFound(Refused):
    """There is none, or it is another project's."""

    code, status = "operation_not_found", 404


class Conflict(Refused):
    """It is there, with another payload."""

    code, status = "operation_conflict", 409


class Busy(Refused):
    """The journal takes no more just now, and has provably taken nothing of this. `text` is one of `rules.busy`."""

    code, status = "admission_failed", 503

    def __init__(self, text: str = "", operation: UUID | str | None = None) -> None:
        super().__init__(operation)
        self.text: str = text


class OutcomeUnavailable(Refused):
    """The database went away while it was being done: nobody knows here what of it was kept."""

    code, status = "outcome_unavailable", 503


class BadProject(ValueError):
    """A project, limit or key that cannot be made so. The message says what is wrong."""


class FarAbove(ValueError):
    """A person says that an amount cost far more than was reserved for it, and has not said so twice."""


class NotOpen(ValueError):
    """An amount that is not in doubt any more, or not yet. The message says how it stands."""
