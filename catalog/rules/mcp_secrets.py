"""What looks like a secret in the command, the address or the variables of an MCP server."""

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import parse_qsl, urlsplit

_WORD: Final = (
    r"(?:[a-z0-9]+[-_])*(?:api[-_]?key|access[-_]?key|secret[-_]?key|private[-_]?key|apikey|token|secret|password"
    r"|passwd|pat|bearer|credentials?)"
)
_FLAG: Final = re.compile(rf"--?{_WORD}(?:=(?P<value>.+))?\Z", re.I | re.S)
_HEADER_FLAGS: Final = frozenset({"--header", "-H"})
_PAIR: Final = re.compile(rf"{_WORD}=(?P<value>.+)\Z", re.I | re.S)
_SHAPES: Final = re.compile(
    r"\b(?:sk-[\w-]{16,}|gh[opsur]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeprs]-[\w-]{10,}|AKIA[0-9A-Z]{16}|oz0_[0-9A-Za-z]{42}"
    r"|ey[\w-]{10,}\.ey[\w-]{10,}\.)|\bBearer\s+[^\s$]|://[^/\s:@]*:[^/\s@$]+@"
)
_QUERY: Final = re.compile(rf"(?:{_WORD}|key|auth|sig|signature)\Z", re.I)
_SOUNDS_SECRET: Final = re.compile(r"key|token|secret|pass|pwd|credential|auth|cookie|session|pin(?![a-z])", re.I)
_ORDINARY: Final = re.compile(
    r"true|false|yes|no|on|off|none|auto|default|[0-9]{1,6}|debug|info|warn|warning|error|production|development|test"
    r"|[a-z]{2}(?:[-_][A-Za-z]{2})?(?:\.UTF-8)?|localhost|127\.0\.0\.1|/[^:@?=+]{0,1000}",
    re.I,
)


def is_ordinary(name: str, value: str) -> bool:
    """Whether a variable is surely no secret: a number, a switch, a level or a path, by a plain name."""
    return _SOUNDS_SECRET.search(name) is None and _ORDINARY.fullmatch(value) is not None


def secret_in_words(words: Sequence[str]) -> list[int]:
    """Where in a program's arguments a secret seems to stand, counted from 0. A `${…}` is none."""
    found = []
    for at, word in enumerate(words):
        before = words[at - 1] if at else ""
        flag, pair = _FLAG.match(before), _FLAG.match(word) or _PAIR.match(word)
        if (
            (pair is not None and pair["value"] and not _left_open(pair["value"]))
            or (flag is not None and not flag["value"] and not word.startswith("-") and not _left_open(word))
            or (before in _HEADER_FLAGS and ":" in word and not _left_open(word.partition(":")[2]))
            or _SHAPES.search(word)
        ):
            found.append(at)
    return found


def secret_in_address(url: str) -> bool:
    """Whether an address seems to hold a secret: a password, or a query such as `?api_key=…`."""
    try:
        parts = urlsplit(url)
        named = [name for name, value in parse_qsl(parts.query) if value and _QUERY.match(name)]
    except ValueError:
        return False
    return bool(named) or bool(_SHAPES.search(url))


def _left_open(text: str) -> bool:
    """Whether a value is a placeholder that the program fills in from its own variables."""
    return re.fullmatch(r"\s*(?:Bearer\s+|Basic\s+)?\$\{\w+\}\s*", text) is not None
