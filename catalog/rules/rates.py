"""How many attempts may begin in a span of time: the part of a policy rule that counts (RULES A2).

    {"id": "billing-rate", "effect": "wait", "tool": "billing", "rate": {"calls": 10, "seconds": 60, "of": "tool"}}

A rate is of one tool, or of the whole tenant. It is full when `calls` attempts of it began within the last `seconds`;
a rule with a rate holds only while that is full.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeGuard

CALLS_MOST: Final = 100_000
SECONDS_MOST: Final = 86_400  # a day
KEYS: Final = ("calls", "seconds", "of")


class Of(StrEnum):
    """Whose attempts are counted: those of the call's tool, or all of the tenant."""

    TENANT = "tenant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True, order=True)
class Rate:
    """At most `calls` attempts begin within any `seconds`."""

    of: Of
    calls: int
    seconds: int


def read_rate(raw: Any) -> Rate:
    """The rate in `{"calls": 10, "seconds": 60}`; of the tool unless it says. Raises `ValueError` with what is odd."""
    if not isinstance(raw, Mapping):
        raise ValueError("rate is a map of calls, seconds and of")
    odd = set(raw) - set(KEYS)
    if odd:
        raise ValueError(f"a rate has no {sorted(odd, key=str)[0]}")
    calls, seconds, of = raw.get("calls"), raw.get("seconds"), raw.get("of", Of.TOOL)
    if not _whole(calls, CALLS_MOST):
        raise ValueError(f"a rate's calls are a whole number from 1 to {CALLS_MOST:,}")
    if not _whole(seconds, SECONDS_MOST):
        raise ValueError(f"a rate's seconds are a whole number from 1 to {SECONDS_MOST:,}, a day")
    if of not in list(Of):
        raise ValueError(f"a rate is of {' or '.join(Of)}")
    return Rate(Of(of), calls, seconds)


def _whole(value: Any, most: int) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most
