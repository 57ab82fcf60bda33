"""What a function's own words mean for its calls, in sentences a person reads at night (RULES A1, U1, K5, P3, C5)."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from catalog.rules.kinds import KEY, RESUME, Kind, Traits

HINTS: Final = {
    "readOnlyHint": "it changes nothing",
    "destructiveHint": "it may delete or overwrite",
    "idempotentHint": "made again with the same arguments it has no further effect",
    "openWorldHint": "it reaches outside",
}
_LEFT_OUT: Final = {
    "readOnlyHint": "counts as false: it may change something",
    "destructiveHint": "nobody knows whether it may delete or overwrite",
    "idempotentHint": "counts as false",
    "openWorldHint": "counts as true: it reaches outside",
}


@dataclass(frozen=True, slots=True)
class Hint:
    """One annotation as it was declared: `said` is JSON text or empty, `means` a sentence."""

    name: str
    said: str
    means: str
    odd: bool = False


@dataclass(frozen=True, slots=True)
class Meaning:
    """One thing that follows for calls: what about, and a sentence or two."""

    about: str
    says: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where a function's calls go, as far as that decides what can be done with them. Times are seconds."""

    remote: bool
    can_cancel: bool
    can_report: bool
    timeout: float
    cleanup: float


def hints_of(annotations: Mapping[str, Any]) -> tuple[Hint, ...]:
    """The four hints that count, and after them whatever else was declared, which does not."""
    found = []
    for name, means in HINTS.items():
        value = annotations.get(name)
        if value is True:
            found.append(Hint(name, "true", means))
        elif value is False:
            found.append(Hint(name, "false", f"not: {means}"))
        elif name in annotations:
            found.append(Hint(name, _json(value), f"neither true nor false, so it {_as_left_out(name)}", odd=True))
        else:
            found.append(Hint(name, "", _LEFT_OUT[name]))
    rest = (name for name in annotations if name not in HINTS)
    return (*found, *(Hint(str(name), _json(annotations[name]), "decides nothing here") for name in sorted(rest)))


def why_kind(traits: Traits, *, trusted: bool) -> str:
    """Why the function is of its kind, in a sentence."""
    if not trusted:
        return "Its entry in the remote server's listing is not approved, so nothing that it says of itself counts."
    match traits.kind:
        case Kind.READ:
            return "It says that it only reads (readOnlyHint is true)."
        case Kind.WRITE:
            return "It says that it writes and only adds (destructiveHint is false)."
        case Kind.DESTRUCTIVE:
            return "It says that it may delete or overwrite (destructiveHint is true)."
        case Kind.UNDECLARED:
            return "It does not say that it only reads, and not whether it may delete or overwrite."


def meanings(traits: Traits, place: Place) -> tuple[Meaning, ...]:
    """What follows for its calls: after a failure, the key, resuming, stopping, progress, and what it reaches."""
    return tuple(_meanings(traits, place))


def _meanings(traits: Traits, place: Place) -> Iterator[Meaning]:
    if traits.retry_safe:
        yield Meaning("After a failure", "An attempt that failed is made again by itself, up to 4 attempts in all.")
    else:
        yield Meaning(
            "After a failure",
            "One attempt. When it may have acted and no answer came, a person is asked whether it happened.",
        )
    yield Meaning("Idempotency key", _key(traits))
    yield Meaning("Resuming", _resume(traits, place))
    yield Meaning("Stopping", _stop(place))
    if place.can_report:
        yield Meaning("Progress", "Shown while it runs, when its server reports any; it never extends the limit.")
    else:
        yield Meaning("Progress", "None comes over this connection.")
    yield Meaning("Reaches", "Outside: what it reads may not be yours." if traits.open_world else "Its own data only.")


def _key(traits: Traits) -> str:
    if traits.honours_key and traits.retry_safe and not traits.read_only:
        return "Honoured: every attempt of a call carries the same key, and its server acts once for each."
    if traits.honours_key:
        return f"Its server says that it honours the key ({KEY}); every attempt of a call carries the same one."
    if traits.idempotent and not traits.read_only:
        return (
            "Not honoured. It says idempotentHint alone, which makes nothing safe to repeat: an attempt that timed "
            "out may have acted already."
        )
    return "Not honoured: its server does not say that it acts once for each key."


def _resume(traits: Traits, place: Place) -> str:
    if not traits.resumes:
        return f"It does not take part ({RESUME}): a retry starts over."
    if not place.remote:
        return "It offers to resume, but a plugin's own server shares one session: a retry starts over."
    if not traits.retry_safe:
        return "It offers to resume, but its calls are made once, so there is no retry to go on."
    return "A retry goes on from the last progress that came with a token; without one it starts over."


def _stop(place: Place) -> str:
    if not place.can_cancel:
        return (
            f"Cannot be cancelled over this connection: a stop is waited out, {place.timeout:g} s at most, and what it "
            "does may still land."
        )
    return (
        f"A stop sends its server a cancel and gives it {place.cleanup:g} s to clean up. Each attempt stops by itself "
        f"a little before {place.timeout:g} s."
    )


def _as_left_out(name: str) -> str:
    said = _LEFT_OUT[name]
    return said if said.startswith("counts") else f"counts as left out: {said}"


def _json(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return type(value).__name__
    return text if len(text) <= 200 else f"{text[:200]}…"
