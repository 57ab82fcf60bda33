"""What a response to `tools/call` says, read from the message itself (MACHINES 5, RULES B1, C8)."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from catalog.rules.schemas import CannotJudge, misfit

RETRYABLE: Final = "oz0/retryable"
RETRY_AFTER: Final = "oz0/retry_after"
REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"


class AnswerKind(StrEnum):
    """Which sort of answer came."""

    RESULT = "result"  # a tool's result, also one that says it is an error
    ERROR = "error"  # a JSON-RPC error
    INPUT = "input"  # the server wants input before it goes on
    TOO_LARGE = "too_large"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Answer:
    """One response. `text` is what the model reads; `content` and `structured` are for the trace.

    `busy` and `retry_after` (seconds) are the server's own word and count only from a plugin's own server (RULES B1).
    `warning` is one of our sentences, or empty.
    """

    kind: AnswerKind
    text: str
    is_error: bool
    content: tuple[Mapping[str, Any], ...] = ()
    structured: Any = None
    busy: bool = False
    retry_after: float | None = None
    warning: str = ""


LARGEST: Final = 10 * 2**20  # bytes of one message of a server that are kept


def too_large(limit: int) -> Answer:
    """The answer to a call whose response was longer than `limit` bytes."""
    text = f"The call was made, but its answer was too large to keep (more than {limit // 2**20} MiB)."
    return Answer(AnswerKind.TOO_LARGE, text, is_error=True)


def unreadable(why: str) -> Answer:
    """The answer that nobody can read; `why` is one of our sentences."""
    return Answer(AnswerKind.UNREADABLE, why, is_error=True, warning=why)


def acknowledged() -> Answer:
    """The end of a cancelled call as its server told it, without a result."""
    return Answer(AnswerKind.ERROR, "The server said that the cancelled request has ended.", is_error=True)


def asked_for_input(text: str = "") -> Answer:
    """The answer of a server that wants input; `text` is what it said with it."""
    said = f" It said: {text}" if text else ""
    return Answer(AnswerKind.INPUT, f"The server asked for input, which is not given to it.{said}", is_error=True)


def read(message: Mapping[str, Any], output_schema: Mapping[str, Any] | None) -> Answer:
    """The answer in a JSON-RPC response. Never raises: what cannot be read is `UNREADABLE`."""
    try:
        clean = storable(message)
    except RecursionError:
        return unreadable("The answer is nested too deep to read.")
    if "error" in clean and "result" not in clean:
        return _error(clean["error"])
    result = clean.get("result")
    if "error" in clean or not isinstance(result, Mapping):
        return unreadable("The answer has neither a result nor an error.")
    if result.get("resultType") == "input_required":
        return asked_for_input()
    return _result(result, output_schema)


def _error(error: object) -> Answer:
    if not isinstance(error, Mapping) or not isinstance(error.get("message"), str):
        return unreadable("The server's error has no message.")
    code = error.get("code")
    if not isinstance(code, int) or isinstance(code, bool):
        return unreadable("The server's error has no code.")
    return Answer(AnswerKind.ERROR, f"Error {code} from the server: {error['message']}", is_error=True)


def _result(result: Mapping[str, Any], output_schema: Mapping[str, Any] | None) -> Answer:
    structured = result.get("structuredContent")
    content = result.get("content", [] if structured is not None else None)
    is_error = result.get("isError", False)
    if not isinstance(content, list) or not all(isinstance(part, Mapping) for part in content):
        return unreadable("The result has no list of content parts.")
    if not isinstance(is_error, bool):
        return unreadable("The result does not say readably whether it is an error.")
    meta = result.get("_meta")
    busy, retry_after = busy_of(meta if isinstance(meta, Mapping) else {}, is_error)
    return Answer(
        AnswerKind.RESULT,
        text_of(content, structured),
        is_error,
        content=tuple(content),
        structured=structured,
        busy=busy,
        retry_after=retry_after,
        warning="" if is_error else _schema_warning(structured, output_schema),
    )


def busy_of(meta: Mapping[str, Any], is_error: bool) -> tuple[bool, float | None]:
    """Whether a result says the service is busy, and the wait in seconds it asks for. Odd values say nothing."""
    if not is_error or meta.get(RETRYABLE) is not True:
        return False, None
    wait = meta.get(RETRY_AFTER)
    if isinstance(wait, bool) or not isinstance(wait, int | float):
        return True, None
    try:
        seconds = float(wait)
    except OverflowError:
        return True, None
    return True, seconds if math.isfinite(seconds) and seconds >= 0 else None


def text_of(content: Sequence[Mapping[str, Any]], structured: Any) -> str:
    """What the model reads: the text parts joined, a line for each other part, structured content as its JSON."""
    if not content and structured is not None:
        return json.dumps(structured, ensure_ascii=False)
    return "\n".join(_part_text(part) for part in content)


def _part_text(part: Mapping[str, Any]) -> str:
    kind, text = part.get("type"), part.get("text")
    if kind == "text" and isinstance(text, str):
        return text
    data = part.get("data")
    size = len(data) * 3 // 4 if isinstance(data, str) else len(json.dumps(part, ensure_ascii=False).encode())
    name = kind.replace("_", " ") if isinstance(kind, str) and kind.isascii() and len(kind) <= 40 else "unknown part"
    return f"[{name}, {_size(size)}, kept in the trace]"


def _size(count: int) -> str:
    if count < 1024:
        return f"{count} bytes"
    return f"{round(count / 1024)} KB" if count < 1024**2 else f"{count / 1024**2:.1f} MB"


def _schema_warning(structured: Any, schema: Mapping[str, Any] | None) -> str:
    if schema is None:
        return ""
    if structured is None:
        return "The function declares an output schema, but its answer has no structured content."
    try:
        found = misfit(structured, schema)
    except CannotJudge as why:
        return f"The answer was not checked against the function's output schema. {why}"
    return f"The answer breaks the function's own output schema at {found.path}." if found is not None else ""


def storable(value: Any) -> Any:
    """The same value with what no database keeps replaced: lone surrogates and NUL by U+FFFD, infinities by null.

    Raises `RecursionError` when it is nested too deep.
    """
    if isinstance(value, str):
        return _storable_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {_storable_text(key): storable(member) for key, member in value.items()}
    if isinstance(value, list):
        return [storable(member) for member in value]
    return value


def _storable_text(text: str) -> str:
    if "\0" in text:
        text = text.replace("\0", REPLACEMENT)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
