"""JSON that anybody may have written, read strictly: what is odd is refused with its line, and nothing can blow up.

Keys written twice, numbers that are none, lone surrogates, deep nesting and more values than a caller allows are
refused. The file is looked through once, without building anything, before it is read.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

MAX_BYTES: Final = 8 * 1024 * 1024
MAX_NODES: Final = 200_000
MAX_DEPTH: Final = 64
MAX_DIGITS: Final = 400  # of one number

_TOKEN: Final = re.compile(
    r'"(?P<text>[^"\\\n]*(?:\\[^\n][^"\\\n]*)*)"|(?P<mark>[\[\]{},:])|(?P<word>[^\s\[\]{},:"]+)'
    r"|(?P<lines>[\n\r\t ]+)|(?P<odd>.)",
    re.DOTALL,
)
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,4})?\Z")
_WORDS: Final = frozenset({"true", "false", "null"})


class BadJson(ValueError):
    """A file that cannot be read. `line` counts from 1; `fix` says what to write instead."""

    def __init__(self, line: int, message: str, fix: str, key: str = "") -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line
        self.message = message
        self.fix = fix
        self.key = key


@dataclass(slots=True)
class _Open:
    is_map: bool
    keys: dict[str, int] = field(default_factory=dict)  # with the line of each
    wants_key: bool = True


def load(content: bytes, *, most_bytes: int = MAX_BYTES, most_nodes: int = MAX_NODES) -> Any:
    """The value in these bytes. Raises `BadJson`."""
    if len(content) > most_bytes:
        raise BadJson(
            1, f"the file is larger than {most_bytes // 1024:,} KiB", "split it, or leave out what is not needed"
        )
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadJson(line, "the file is not UTF-8 text", "save it as UTF-8") from error
    if text.startswith("\ufeff"):
        raise BadJson(1, "the file begins with a byte order mark", "save it as UTF-8 without one")
    return load_text(text, most_nodes=most_nodes)


def load_text(text: str, *, most_nodes: int = MAX_NODES) -> Any:
    """The value of this text. Raises `BadJson`."""
    for _ in _looked_through(text, most_nodes):
        pass
    try:
        value = json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        fix = "look at the quotes, commas and brackets on this line and the one before"
        raise BadJson(error.lineno, f"is not JSON: {error.msg}", fix) from error
    except (ValueError, RecursionError) as error:
        raise BadJson(1, f"is not JSON: {error}", "mend it, or make the file anew") from error
    return value


def _looked_through(text: str, most_nodes: int) -> Iterator[None]:
    """Refuse what would cost too much or mean two things; what is simply no JSON the reader tells better."""
    line, nodes, waiting = 1, 1, list[_Open]()
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "lines":
            line += token.group().count("\n")
        elif kind == "mark":
            mark = token.group()
            if mark in "[{":
                waiting.append(_Open(mark == "{"))
                nodes += 1
                if len(waiting) > MAX_DEPTH:
                    raise BadJson(line, f"is nested deeper than {MAX_DEPTH} levels", "flatten it")
            elif mark in "]}":
                if waiting:
                    waiting.pop()
            elif mark == ",":
                nodes += 1
                if waiting:
                    waiting[-1].wants_key = True
            if nodes > most_nodes:
                raise BadJson(
                    line, f"holds more than {most_nodes:,} values", "split it, or leave out what is not needed"
                )
        elif kind == "text":
            _look_at_text(token.group("text"), line, waiting[-1] if waiting else None)
        elif kind == "word":
            _look_at_word(token.group(), line)
        else:
            raise BadJson(line, "a text has no end, or holds a character that it cannot hold", "close its quotes")
        yield


def _look_at_text(raw: str, line: int, inside: _Open | None) -> None:
    if any(char < " " for char in raw):
        raise BadJson(line, "a text holds a control character", "write it as \\u and its four digits, or leave it out")
    is_key = inside is not None and inside.is_map and inside.wants_key
    if not is_key and "\\u" not in raw:
        return
    try:
        text = json.loads(f'"{raw}"') if "\\" in raw else raw
    except ValueError as error:
        raise BadJson(line, f"a text cannot be read: {error}", "mend what stands behind its backslashes") from error
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise BadJson(line, "a text holds half a character (a lone surrogate)", "write the whole character")
    if "\0" in text:
        raise BadJson(line, "a text holds a zero character, which cannot be kept", "leave it out")
    if is_key and inside is not None:
        if text in inside.keys:
            said = f"the key {text[:80]!r} is here twice, first on line {inside.keys[text]}"
            raise BadJson(line, said, "keep one of them", text)
        inside.keys[text] = line
        inside.wants_key = False


def _look_at_word(word: str, line: int) -> None:
    if word in _WORDS:
        return
    if len(word) > MAX_DIGITS:
        raise BadJson(line, f"a number has more than {MAX_DIGITS} characters", "write a shorter one, or quote it")
    if _NUMBER.match(word) is None:
        raise BadJson(line, f"{word[:40]!r} is no JSON", "quote it if it is text")
    if ("." in word or "e" in word.lower()) and float(word) in (float("inf"), float("-inf")):
        raise BadJson(line, f"{word[:40]} is too large a number", "write a smaller one, or quote it")


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no JSON number")


def without_comments(text: str) -> str:
    """The text with // and /* */ comments, and commas before a closing bracket, as spaces: lines stay where they are.

    One walk from front to back, whatever the text.
    """
    out: list[str] = []
    comma = -1  # where in `out` the last comma stands, while only blanks came since
    for piece in _PIECES.finditer(text):
        kind, said = piece.lastgroup, piece.group()
        if kind == "comment":
            said = "\n".join(" " * len(line) for line in said.split("\n"))
        elif kind == "comma":
            comma = len(out)
        elif kind == "end":
            if comma >= 0:
                out[comma] = " "
            comma = -1
        elif kind != "blank":
            comma = -1
        out.append(said)
    return "".join(out)


_PIECES: Final = re.compile(
    r'(?P<text>"[^"\\]*(?:\\.[^"\\]*)*(?:"|\Z))|(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))|(?P<comma>,)|(?P<end>[\]}])'
    r'|(?P<blank>\s+)|(?P<rest>[^",/\]}\s]+|/)',
    re.DOTALL,
)
