"""How an API token is written, so that people, programs and scanners for leaked secrets know one when they see it.

`oz0_` with 36 letters and digits, and six more that are the CRC-32 of those: `oz0_[0-9A-Za-z]{42}`.
"""

import re
import zlib
from enum import StrEnum
from typing import Final

PREFIX: Final = "oz0_"
DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
DRAWN: Final = 36
ENDS: Final = 4
_SHAPE: Final = re.compile(r"oz0_([0-9A-Za-z]{36})([0-9A-Za-z]{6})\Z")


class Scope(StrEnum):
    """What a token may be used for. No scope decides: that takes a signed-in person (RULES A5)."""

    READ = "read"
    START = "start"
    CALL = "call"


PATIENCE: Final = 45  # seconds that a client waits for a call when nothing else is said (RULES G5)
SESSION_PATIENCE: Final = 240  # the same of a harness session's program
LEAST_PATIENCE: Final = 5
MOST_PATIENCE: Final = 3_600

SCOPES: Final[dict[str, str]] = {
    Scope.READ: "Read jobs, calls, questions and the catalog.",
    Scope.START: "Start jobs, and stop those it started. They count as started by you.",
    Scope.CALL: "Call one agent's tools through the gateway, /mcp/, as a client of your own does.",
}


def written(drawn: str) -> str:
    """The token of 36 drawn letters and digits."""
    return f"{PREFIX}{drawn}{_check(drawn)}"


def is_token(text: str) -> bool:
    """Whether this is written as a token is, to its last character. Says nothing of whether it counts."""
    found = _SHAPE.match(text)
    return found is not None and _check(found[1]) == found[2]


def _check(drawn: str) -> str:
    left, found = zlib.crc32(drawn.encode()), ""
    for _ in range(6):
        left, digit = divmod(left, len(DIGITS))
        found = DIGITS[digit] + found
    return found
