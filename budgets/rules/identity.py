"""Whose operation, and of when: what an id of the journal says by itself (RULES S2, S4, S6)."""

import re
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final
from uuid import UUID, uuid5

from budgets.rules.words import LIFETIME

CANONICAL_V7: Final = "^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
EARLY: Final = timedelta(seconds=5)  # how far ahead of ours the clock of a caller may be
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SHAPE: Final = re.compile(CANONICAL_V7.removesuffix("$") + r"\Z")
_MILLISECOND: Final = timedelta(milliseconds=1)


def parse(text: str) -> UUID | None:
    """The UUIDv7 that a text spells in its one canonical way, in small letters; else None."""
    return UUID(text) if _SHAPE.match(text) else None


def is_in_future(operation: UUID, now: datetime) -> bool:
    """Whether an id claims a later time than any clock that is right enough."""
    return (operation.int >> 80) > (now + EARLY - EPOCH) // _MILLISECOND


def time_of(operation: UUID) -> datetime:
    """When an id says that it was made, to the millisecond. It must not be in the future."""
    return EPOCH + (operation.int >> 80) * _MILLISECOND


def is_expired(operation: UUID, now: datetime) -> bool:
    """Whether an id's life is over. It must not be in the future."""
    return now >= time_of(operation) + LIFETIME


def reservation_id(operation: UUID, index: int, checked_at: datetime) -> UUID:
    """The id of what an item reserves: a UUIDv7 of the moment of its check, the same however often it is made."""
    milliseconds = (checked_at - EPOCH) // _MILLISECOND
    drawn = int.from_bytes(sha256(f"{operation}:{index}".encode()).digest()[:10])
    low = (0x2 << 62) | (drawn & (2**62 - 1))
    return UUID(int=(milliseconds << 80) | (0x7 << 76) | ((drawn >> 68) << 64) | low)


def denial_call_id(operation: UUID, index: int) -> UUID:
    """The call id under which the denial of an item is recorded."""
    return uuid5(operation, f"denial:{index}")
