"""The chain of an audit log: what an entry's hash must be, and where a row of entries first does not hold (RULES A12).

The same rule checks the log in the database and a file that was exported from it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from base import canonical

FIELDS: Final = ("tenant", "seq", "at", "actor", "how", "verb", "object", "before", "after", "note", "prev")


@dataclass(frozen=True, slots=True)
class Link:
    """One entry as it is hashed: `said` has `FIELDS`, `hash` is what it carries."""

    said: Mapping[str, Any]
    hash: str

    @property
    def seq(self) -> int:
        """Its number in the log, from 1."""
        return int(self.said["seq"])


@dataclass(frozen=True, slots=True)
class Head:
    """Where a log ended at some time. Kept elsewhere, it shows later that nothing up to it was changed."""

    seq: int
    hash: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What checking a log found: `entries` that hold, where they end, and the first trouble if there is any."""

    entries: int
    head: Head
    broken_at: int | None = None
    why: str = ""


class BadHead(ValueError):
    """A text that is no head; the message says how one is written."""


def hash_of(said: Mapping[str, Any]) -> str:
    """The digest of all that an entry says and of the hash before it."""
    return canonical.digest_of_any({name: said[name] for name in FIELDS})


def read_head(text: str) -> Head:
    """A head as `oz0 audit verify` prints it, `1234:9f2c…`. Raises `BadHead`."""
    number, _, hash_ = text.strip().partition(":")
    if not number.isdecimal() or len(hash_) != 64 or set(hash_) - set("0123456789abcdef"):
        raise BadHead(f"{text[:80]!r} is no head: it is the number of an entry, a colon and its 64 hex digits")
    return Head(int(number), hash_)


def check(links: Iterable[Link], *, ends: Head | None = None, earlier: Head | None = None, first: int = 1) -> Verdict:
    """Follow a log from entry `first` on. `ends` is where it must end, `earlier` a head that was kept before.

    A log in the database is followed from its first entry; a file may begin later, and then says nothing of before.
    """
    at, last, count = first - 1, "" if first == 1 else None, 0
    for link in links:
        if why := _trouble(link, at, last):
            return Verdict(count, Head(at, last or ""), at + 1, why)
        at, last, count = link.seq, link.hash, count + 1
        if earlier is not None and at == earlier.seq and last != earlier.hash:
            return Verdict(count - 1, Head(at, last), at, "it is not the entry that this head was kept of")
    head = Head(at, last or "")
    if ends is not None and ends != head:
        why = f"the log says that it ends at entry {ends.seq}, and its last entry is {at}"
        return Verdict(count, head, min(at, ends.seq) + 1, why)
    if earlier is not None and earlier.seq > at:
        why = f"it was there when this head was kept, and is gone: entries {at + 1} to {earlier.seq} were cut off"
        return Verdict(count, head, at + 1, why)
    return Verdict(count, head)


def _trouble(link: Link, at: int, last: str | None) -> str:
    if link.seq != at + 1:
        return f"it is missing or out of its place: entry {link.seq} stands where {at + 1} should"
    if last is not None and link.said["prev"] != last:
        return "it does not follow from the entry before it: that one was changed or exchanged"
    if link.hash != hash_of(link.said):
        return "it was changed: its hash is of something else"
    return ""
