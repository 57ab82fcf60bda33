"""What changed between two listings of one server: entries added, removed and changed, field by field (RULES C3).

The order of entries is no change; the order inside a schema's lists is one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from base.canonical import digest_of_any

DEEPEST: Final = 24  # levels into a schema before the rest is compared as one value
AROUND: Final = 60  # characters of unchanged text shown on either side of a change


class Missing(StrEnum):
    """A field that one of the two entries does not have."""

    HERE = "(not there)"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry as it was or is listed: everything its digest covers."""

    name: str
    digest: str
    title: str = ""
    description: str = ""
    input_schema: Any = None
    output_schema: Any = None
    annotations: Any = None
    meta: Any = None

    def fields(self) -> dict[str, Any]:
        """The fields in the order and spelling of the wire; what is empty on the wire is left out."""
        every = {
            "title": self.title,
            "description": self.description,
            "annotations": self.annotations,
            "inputSchema": self.input_schema,
            "outputSchema": self.output_schema,
            "_meta": self.meta,
        }
        return {name: value for name, value in every.items() if value not in ("", None, {})}


@dataclass(frozen=True, slots=True)
class Change:
    """One field before and after; `Missing.HERE` where there was none. `field` is a path, `inputSchema.required`."""

    field: str
    before: Any
    after: Any

    @property
    def came(self) -> bool:
        """Whether the field was not there before."""
        return self.before is Missing.HERE

    @property
    def went(self) -> bool:
        """Whether the field is there no more."""
        return self.after is Missing.HERE

    @property
    def pieces(self) -> tuple["Piece", ...]:
        """Both texts as one, with what went and what came; empty when either is not text."""
        if isinstance(self.before, Missing) or isinstance(self.after, Missing):
            return ()
        both = isinstance(self.before, str) and isinstance(self.after, str)
        return pieces(self.before, self.after) if both else ()


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text: `same`, `gone`, `new`, or `cut` for unchanged text left out."""

    how: str
    text: str


@dataclass(frozen=True, slots=True)
class Added:
    """An entry that was not there. `was` names a removed entry that is the same but for its name."""

    entry: Entry
    was: str = ""


@dataclass(frozen=True, slots=True)
class Changed:
    """An entry that is described otherwise now."""

    before: Entry
    after: Entry
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class ListingDiff:
    """Everything that differs, each part by name."""

    added: tuple[Added, ...]
    removed: tuple[Entry, ...]
    changed: tuple[Changed, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


def compare(before: Iterable[Entry], after: Iterable[Entry]) -> ListingDiff:
    """What changed from `before` to `after`."""
    old = {entry.name: entry for entry in before}
    new = {entry.name: entry for entry in after}
    removed = tuple(old[name] for name in sorted(old.keys() - new.keys()))
    likes = {_but_for_its_name(entry): entry.name for entry in reversed(removed)}
    return ListingDiff(
        added=tuple(
            Added(new[name], likes.get(_but_for_its_name(new[name]), "")) for name in sorted(new.keys() - old.keys())
        ),
        removed=removed,
        changed=tuple(
            Changed(old[name], new[name], changes(old[name], new[name]))
            for name in sorted(old.keys() & new.keys())
            if old[name].digest != new[name].digest
        ),
    )


def changes(before: Entry, after: Entry) -> tuple[Change, ...]:
    """The fields in which two entries differ, as deep as both are objects."""
    return changed_fields(before.fields(), after.fields())


def changed_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Change, ...]:
    """The members in which two objects differ, as deep as both are objects."""
    return tuple(_changes("", before, after, 0))


def pieces(before: str, after: str) -> tuple[Piece, ...]:
    """One text turned into the other: what is the same at both ends, and the middle that went and came."""
    start = _same_start(before, after)
    end = _same_start(before[start:][::-1], after[start:][::-1])
    head, tail = before[:start], before[len(before) - end :] if end else ""
    found = [
        Piece("cut", f"{len(head) - AROUND:,} characters") if len(head) > AROUND + 20 else Piece("same", ""),
        Piece("same", head[-AROUND:] if len(head) > AROUND + 20 else head),
        Piece("gone", before[start : len(before) - end]),
        Piece("new", after[start : len(after) - end]),
        Piece("same", tail[:AROUND] if len(tail) > AROUND + 20 else tail),
        Piece("cut", f"{len(tail) - AROUND:,} characters") if len(tail) > AROUND + 20 else Piece("same", ""),
    ]
    return tuple(piece for piece in found if piece.text)


def _changes(path: str, before: Mapping[str, Any], after: Mapping[str, Any], depth: int) -> Iterable[Change]:
    for name in sorted(before.keys() | after.keys()):
        here = f"{path}.{name}" if path else name
        old, new = before.get(name, Missing.HERE), after.get(name, Missing.HERE)
        if isinstance(old, Mapping) and isinstance(new, Mapping) and depth < DEEPEST:
            yield from _changes(here, old, new, depth + 1)
        elif old is Missing.HERE or new is Missing.HERE or digest_of_any(old) != digest_of_any(new):
            yield Change(here, old, new)


def _but_for_its_name(entry: Entry) -> str:
    return digest_of_any(entry.fields())


def _same_start(one: str, other: str) -> int:
    """How many characters two texts begin alike."""
    shorter = min(len(one), len(other))
    return next((at for at in range(shorter) if one[at] != other[at]), shorter)
