"""Which answers prove that nothing of a request was accepted. A 503 alone does not: whoever is between may say it."""

from collections.abc import Mapping
from typing import Any, Final

from budgets.rules import busy

BUSY: Final = 503
LONGEST: Final = 300  # characters of what is repeated of an answer
BEFORE_ACTING: Final = frozenset({401, 429})  # said before anything of a request was done


def not_accepted(status: int, headers: Mapping[str, str], body: object) -> bool:
    """Whether an answer is the journal's own word that its request did nothing. Header names are in small letters."""
    if status in BEFORE_ACTING:
        return True
    said = _detail(body).get("message")
    return status == BUSY and headers.get("retry-after", "").strip() == busy.RETRY_AFTER and said in busy.TEXTS


def code_of(body: object) -> str:
    """The word of an error's body, `{"detail": {"code": "…"}}`; empty without one that could be it."""
    code = _detail(body).get("code")
    fits = isinstance(code, str) and 0 < len(code) <= 64 and code.isascii() and code.replace("_", "").isalnum()
    return str(code) if fits else ""


def mistake_of(body: object) -> str:
    """The first mistake that an error's body names, with its place; empty without one."""
    errors: Any = body.get("errors") if isinstance(body, Mapping) else None
    first = errors[0] if isinstance(errors, list) and errors else None
    if not isinstance(first, Mapping):
        return str(_detail(body).get("message") or "")[:LONGEST]
    return f"{first.get('at')}: {first.get('detail')}"[:LONGEST]


def _detail(body: object) -> Mapping[str, Any]:
    detail: Any = body.get("detail") if isinstance(body, Mapping) else None
    return detail if isinstance(detail, Mapping) else {}
