"""Whether an amount fits into the limits of a project (RULES S9)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Self

from budgets.rules.words import LimitMode, Period

SHORTEST_FIRST: Final = tuple(Period)


@dataclass(frozen=True, slots=True)
class Cap:
    """A limit: how much, in US dollars, over which period, and what becomes of what does not fit."""

    period: Period
    amount: Decimal
    mode: LimitMode


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided, with the very figures of the limit that decided: its own, and what was counted before this.

    `remaining_budget` is what is left after it. A project without a limit has none of these but what is counted this
    month. `reservation_id` is none for a denial, and for what is allowed although nothing could be reserved.
    """

    allowed: bool
    mode: LimitMode
    project_id: str
    current_usage: Decimal
    budget_limit: Decimal | None = None
    remaining_budget: Decimal | None = None
    denied_by_period: Period | None = None
    reservation_id: str | None = None

    def as_json(self) -> dict[str, Any]:
        """As the journal keeps and tells it: amounts are texts of decimal numbers, so that none loses a digit."""
        return {
            "allowed": self.allowed,
            "remaining_budget": _text(self.remaining_budget),
            "reservation_id": self.reservation_id,
            "mode": self.mode.value,
            "budget_limit": _text(self.budget_limit),
            "current_usage": _text(self.current_usage),
            "denied_by_period": self.denied_by_period and self.denied_by_period.value,
            "project_id": self.project_id,
        }

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Self:
        """The decision that was kept."""
        return cls(
            allowed=kept["allowed"],
            mode=LimitMode(kept["mode"]),
            project_id=kept["project_id"],
            current_usage=Decimal(kept["current_usage"]),
            budget_limit=_amount(kept["budget_limit"]),
            remaining_budget=_amount(kept["remaining_budget"]),
            denied_by_period=Period(kept["denied_by_period"]) if kept["denied_by_period"] else None,
            reservation_id=kept["reservation_id"],
        )


def decide(
    amount: Decimal | None, caps: Sequence[Cap], used: Mapping[Period, Decimal], *, project: str, reservation: str
) -> Decision | None:
    """Whether an amount is let in. `used` is what is counted in each period before it.

    The decision tells of the limit that denied it, of the shortest such period; else of the one with the least left.
    An `amount` of None is one that nobody can tell: where a limit denies, no decision can be made (None); elsewhere it
    is allowed without a reservation.
    """
    if amount is None:
        if any(cap.mode is LimitMode.HARD_DENY for cap in caps):
            return None
        told = _tightest(caps, used)
        return _decision(told, used, project, Decimal(0), allowed=True)
    ordered = sorted(caps, key=lambda cap: SHORTEST_FIRST.index(cap.period))
    for cap in ordered:
        if cap.mode is LimitMode.HARD_DENY and used[cap.period] + amount > cap.amount:
            return _decision(cap, used, project, Decimal(0), allowed=False)
    return _decision(_tightest(caps, used), used, project, amount, allowed=True, reservation=reservation)


def _tightest(caps: Sequence[Cap], used: Mapping[Period, Decimal]) -> Cap | None:
    return min(caps, key=lambda cap: (cap.amount - used[cap.period], SHORTEST_FIRST.index(cap.period)), default=None)


def _decision(
    cap: Cap | None,
    used: Mapping[Period, Decimal],
    project: str,
    taken: Decimal,
    *,
    allowed: bool,
    reservation: str | None = None,
) -> Decision:
    if cap is None:
        return Decision(allowed, LimitMode.ALERT_ONLY, project, used[Period.MONTH], reservation_id=reservation)
    return Decision(
        allowed,
        cap.mode,
        project,
        current_usage=used[cap.period],
        budget_limit=cap.amount,
        remaining_budget=cap.amount - used[cap.period] - taken,
        denied_by_period=None if allowed else cap.period,
        reservation_id=reservation,
    )


def _text(amount: Decimal | None) -> str | None:
    return None if amount is None else f"{amount.normalize():f}"


def _amount(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)
