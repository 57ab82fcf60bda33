"""What a function says it does to the world, from its listing alone: kind, reach, and whether it may be made again.

Annotations and `_meta` are read in the spelling of the wire (`readOnlyHint`, `oz0/idempotency_key`). A hint that is
not a boolean counts as missing (RULES A1).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

KEY: Final = "oz0/idempotency_key"
RESUME: Final = "oz0/resume"

_TITLES: Final = {
    "readOnlyHint": "read_only_hint",
    "destructiveHint": "destructive_hint",
    "idempotentHint": "idempotent_hint",
    "openWorldHint": "open_world_hint",
}


class Kind(StrEnum):
    """What a call of the function may do (RULES A1)."""

    READ = "read"
    WRITE = "write"
    DESTRUCTIVE = "destructive"
    UNDECLARED = "undeclared"


@dataclass(frozen=True, slots=True)
class Traits:
    """Everything the runtime decides from, of one listing entry.

    `read_only` and `retry_safe` are false for an entry whose word does not count (a remote server's, not approved).
    """

    kind: Kind
    read_only: bool
    idempotent: bool
    honours_key: bool
    open_world: bool
    retry_safe: bool
    resumes: bool


@dataclass(frozen=True, slots=True)
class Undeclared:
    """Why a function's kind is not known, and the annotation to paste into its server (RULES C4)."""

    reason: str
    fix: str


def traits_of(annotations: Mapping[str, Any], meta: Mapping[str, Any], *, trusted: bool = True) -> Traits:
    """What one entry says. `trusted` is false for an entry of a remote listing that nobody approved (RULES U1, A1)."""
    kind = kind_of(annotations) if trusted else Kind.UNDECLARED
    read_only = kind is Kind.READ
    idempotent = _hint(annotations, "idempotentHint") is True
    honours_key = meta.get(KEY) is True
    return Traits(
        kind=kind,
        read_only=read_only,
        idempotent=idempotent,
        honours_key=honours_key,
        open_world=_hint(annotations, "openWorldHint") is not False or not trusted,
        retry_safe=trusted and (read_only or (idempotent and honours_key)),
        resumes=meta.get(RESUME) is True,
    )


def kind_of(annotations: Mapping[str, Any]) -> Kind:
    """The kind an entry's annotations declare (RULES A1)."""
    if _hint(annotations, "readOnlyHint") is True:
        return Kind.READ
    match _hint(annotations, "destructiveHint"):
        case True:
            return Kind.DESTRUCTIVE
        case False:
            return Kind.WRITE
        case None:
            return Kind.UNDECLARED


def undeclared(annotations: Mapping[str, Any], *, trusted: bool = True) -> Undeclared | None:
    """Why a function counts as undeclared and what to paste to declare it; None when its kind is known (RULES C4)."""
    if not trusted:
        return Undeclared(
            reason="its entry in the remote server's listing is not approved, so what it says does not count",
            fix="Approve the entry on the tool's page.",
        )
    if kind_of(annotations) is not Kind.UNDECLARED:
        return None
    odd = [
        wire for wire in ("readOnlyHint", "destructiveHint") if wire in annotations and _hint(annotations, wire) is None
    ]
    if odd:
        reason = f"{' and '.join(odd)} is not true or false, so it counts as left out"
    elif not annotations:
        reason = "it has no annotations, so nobody knows whether it changes anything"
    else:
        reason = "it does not say it only reads, and leaves out destructiveHint"
    return Undeclared(reason, _paste(annotations))


def _paste(annotations: Mapping[str, Any]) -> str:
    """Python to paste above the function, in lines that fit beside its kind: of three hints the author keeps one."""
    kept = "".join(
        f"    {_TITLES[wire]}={value},\n"
        for wire in ("idempotentHint", "openWorldHint")
        if (value := _hint(annotations, wire)) is not None
    )
    return (
        "@server.tool(annotations=ToolAnnotations(\n"
        "    # of these three keep the one that is true:\n"
        "    read_only_hint=True,  # it changes nothing\n"
        "    destructive_hint=False,  # it only adds\n"
        "    destructive_hint=True,  # it may delete\n"
        f"{kept}))"
    )


def _hint(annotations: Mapping[str, Any], name: str) -> bool | None:
    value = annotations.get(name)
    return value if isinstance(value, bool) else None
