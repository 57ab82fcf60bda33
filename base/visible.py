"""Text we did not write, with what is hidden in it made visible: safe display without HTML (RULES A13).

`visible` is the one way such text reaches a terminal, a log line or an attribute; pages use `base.text`.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

LONG: Final = 2_000  # characters shown before "show all"
PADDING: Final = 32  # spaces in a row, beyond which they are counted instead of shown
BLANK_LINES: Final = 3
STACKED: Final = 3  # combining marks on one letter; more of them paint over their neighbours

# Letters, marks and symbols that Unicode calls visible and screens draw as nothing.
BLANK_LETTERS: Final = frozenset(
    {
        *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, 0x1D159, 0xFFFC),
        *range(0x180B, 0x1810),
        *range(0xFE00, 0xFE10),
        *range(0xE0100, 0xE01F0),
    }
)
HIDDEN_KINDS: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_INTERESTING: Final = re.compile(r"[^\n\x20-\x7e]| {33,}|(?:\n[ \t]*){5,}|xn--", re.IGNORECASE)
_WORD: Final = re.compile(r"[^\W_][\w.\-]*")
_BLANKS: Final = re.compile(rf"\n(?:[ \t\r]*\n){{{BLANK_LINES + 1},}}")
_SPACES: Final = re.compile(rf" {{{PADDING + 1},}}")
_NOTHING: Final = re.compile(r"(?!)")
_SCRIPTS: Final = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE")


class Kind(StrEnum):
    """What a piece of shown text is."""

    PLAIN = "plain"
    HIDDEN = "hidden"  # a character that draws nothing or reorders: shown as its code
    PADDING = "padding"  # many spaces or blank lines: shown as their number
    ODD = "odd"  # a letter of another alphabet inside a Latin word, or an encoded host


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text: `text` is what to show, `note` what a person may want to know about it."""

    kind: Kind
    text: str
    note: str = ""


def is_hidden(char: str) -> bool:
    """Whether a screen would draw nothing for `char`, or let it move others. A newline is no such character."""
    if char == "\n":
        return False
    kind = unicodedata.category(char)
    return kind in HIDDEN_KINDS or (kind == "Zs" and char != " ") or ord(char) in BLANK_LETTERS


def pieces(text: str) -> Iterator[Piece]:
    """`text` cut into runs, in order. Joined PLAIN and ODD pieces are the bytes that run; the rest stand for theirs."""
    if not _INTERESTING.search(text):
        if text:
            yield Piece(Kind.PLAIN, text)
        return
    yield from _merged(_single(text))


def visible(text: str, limit: int = LONG) -> str:
    """`text` on one line for a terminal, a log or an attribute: escapes as ⟨U+202E⟩, newlines as ⏎, cut at `limit`."""
    shown = "".join(_flat(piece) for piece in pieces(text[:limit])).replace("\n", "⏎")
    return f"{shown}… ({len(text):,} characters)" if len(text) > limit else shown


def _flat(piece: Piece) -> str:
    match piece.kind:
        case Kind.HIDDEN | Kind.PADDING:
            return f"⟨{piece.text}⟩"
        case Kind.ODD:
            return f"{piece.text}⟨{piece.note}⟩"
        case Kind.PLAIN:
            return piece.text


def _single(text: str) -> Iterator[Piece]:
    """Pieces before neighbours of one kind are merged."""
    odd = _odd_places(text)
    at, stacked = 0, 0
    while at < len(text):
        char = text[at]
        if found := (_BLANKS if char == "\n" else _SPACES if char == " " else _NOTHING).match(text, at):
            yield from _padding(found.group())
            at = found.end()
            continue
        stacked = stacked + 1 if unicodedata.category(char) in ("Mn", "Me") else 0
        if is_hidden(char) or stacked > STACKED:
            yield Piece(
                Kind.HIDDEN,
                f"U+{ord(char):04X}",
                unicodedata.name(char, "a character without a name").lower(),
            )
        elif note := odd.get(at):
            yield Piece(Kind.ODD, char, note)
        else:
            yield Piece(Kind.PLAIN, char)
        at += 1


def _padding(run: str) -> Iterator[Piece]:
    if run.startswith("\n"):
        yield Piece(Kind.PLAIN, "\n")
        yield Piece(Kind.PADDING, f"{run.count(chr(10)) - 1:,} blank lines")
        yield Piece(Kind.PLAIN, "\n")
    else:
        yield Piece(Kind.PADDING, f"{len(run):,} spaces")


def _merged(singles: Iterator[Piece]) -> Iterator[Piece]:
    run: list[str] = []
    for piece in singles:
        if piece.kind is Kind.PLAIN:
            run.append(piece.text)
            continue
        if run:
            yield Piece(Kind.PLAIN, "".join(run))
            run = []
        yield piece
    if run:
        yield Piece(Kind.PLAIN, "".join(run))


def _odd_places(text: str) -> dict[int, str]:
    """Places of letters that mix alphabets within one word or host, and of encoded (`xn--`) hosts, with their notes."""
    found: dict[int, str] = {}
    for word in _WORD.finditer(text):
        if "xn--" in word.group().lower():
            found[word.start() + word.group().lower().index("xn--")] = "an encoded international host name"
        if word.group().isascii():
            continue
        scripts = [(at, _script(text[at])) for at in range(*word.span())]
        if len({script for _, script in scripts if script}) < 2:
            continue
        for at, script in scripts:
            if script not in ("", "LATIN"):
                found[at] = f"U+{ord(text[at]):04X} {unicodedata.name(text[at], '').lower()}"
    return found


def _script(char: str) -> str:
    if not char.isalpha():
        return ""
    first = unicodedata.name(char, "").split(" ", 1)[0]
    return first if first in _SCRIPTS else ""
