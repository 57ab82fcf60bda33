"""What the answer to one `tools/call` over HTTP proves, from our own record of it (MACHINES 5, RULES B4, U3, U4)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

from catalog.rules import answers
from catalog.rules.answers import Answer, AnswerKind
from catalog.rules.wire import AnswerEnd

BUSY: Final = 429
REFUSALS: Final = frozenset({401, 403, 404, 405, 406, 413, 415, 421, 426, 307, 308})
PRE_DISPATCH: Final = frozenset({-32700, -32600, -32601, -32602, -32020, -32021, -32022})
_DIGITS: Final = re.compile(r"[0-9]{1,9}\Z")


@dataclass(slots=True)
class Heard:
    """The record of one exchange, filled in as its answer comes.

    `message` is the response that carries the request's id. `overlong` says that it came and was too large to keep.
    `trouble` is one sentence on how the body ended badly, empty when it ended well; `unread` on what it held instead.
    """

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    arrived: int = 0
    message: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None  # a JSON-RPC error that carries no id
    overlong: bool = False
    unread: str = ""
    trouble: str = ""

    @property
    def evidence(self) -> str:
        """What had come of an answer, one sentence."""
        if self.status is None:
            return "Nothing of an answer had come."
        return f"HTTP status {self.status} and {self.arrived} bytes of an answer had come."


@dataclass(frozen=True, slots=True)
class NotMade:
    """The server refused the request before it acted: a known failure. `why` is one sentence."""

    why: str


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Nobody knows what the server did. `ended` is `BROKEN` or `UNREADABLE`; `why` is one sentence."""

    ended: AnswerEnd
    why: str


def judge(
    heard: Heard, *, output_schema: Mapping[str, Any] | None, now: datetime, limit: int
) -> Answer | NotMade | NoAnswer:
    """What `heard` proves of the call. `now` is used for a `Retry-After` date when the answer has no `Date`.

    A remote server's `_meta` is never read for *busy*; its 429 is (RULES B1, B4).
    """
    status = heard.status
    if status == BUSY:
        return busy(wait_of(heard.headers, now))
    if status in REFUSALS or (status == 400 and _refused_unread(heard)):
        return NotMade(f"The server refused the request before acting on it (HTTP status {status}).")
    if heard.overlong:
        return answers.too_large(limit)
    if heard.message is not None:
        answer = answers.read(heard.message, output_schema)
        if answer.kind is AnswerKind.UNREADABLE:
            return NoAnswer(AnswerEnd.UNREADABLE, answer.text)
        return replace(answer, busy=False, retry_after=None)
    if heard.trouble and (status is None or 200 <= status < 300):
        return NoAnswer(AnswerEnd.BROKEN, heard.trouble)
    return NoAnswer(AnswerEnd.UNREADABLE, _unread(heard))


def busy(wait: float | None) -> Answer:
    """The busy result that the node makes itself of a 429; the words are the platform's (RULES B3)."""
    when = f"It asks to be called again in {wait:g} s." if wait is not None else "It did not say when to call again."
    text = f"The server is busy (HTTP status 429), so nothing was made. {when}"
    return Answer(AnswerKind.RESULT, text, is_error=True, busy=True, retry_after=wait)


def wait_of(headers: Mapping[str, str], now: datetime) -> float | None:
    """The seconds a `Retry-After` asks to wait, given as seconds or as an HTTP date; None when it says nothing."""
    said = headers.get("retry-after", "").strip()
    if _DIGITS.match(said):
        return float(said)
    at = _date(said)
    if at is None:
        return None
    return max(0.0, (at - (_date(headers.get("date", "")) or now)).total_seconds())


def _date(text: str) -> datetime | None:
    if "," not in text and ":" not in text:
        return None
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _refused_unread(heard: Heard) -> bool:
    for message in (heard.message, {"error": heard.error}):
        error = message.get("error") if message else None
        if isinstance(error, Mapping) and error.get("code") in PRE_DISPATCH and not isinstance(error.get("code"), bool):
            return True
    return False


def _unread(heard: Heard) -> str:
    kind = heard.headers.get("content-type", "").partition(";")[0].strip()[:60]
    what = f"HTTP status {heard.status}" + (f" with {kind}" if kind and kind.isascii() and kind.isprintable() else "")
    said = [f"The answer holds no response to the call ({what}, {heard.arrived} bytes).", heard.unread, heard.trouble]
    return " ".join(part for part in said if part)
