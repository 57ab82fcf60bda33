"""How numbers read: durations, counts and sizes, short and always the same."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "m"))


def duration(span: timedelta | float | None, *, round_one: bool = False) -> str:
    """`0.6 s`, `41 s`, `3 m 41 s`, `3 h 02 m`, `2 d 4 h`; nothing for None. Seconds when given a number.

    `round_one` is for marks of a ruler: `1 s`, `1 m`, `2 h`.
    """
    if round_one and span is not None and not isinstance(span, timedelta):
        unit, name = next(((unit, name) for unit, name in UNITS if span >= unit and span % unit == 0), (1, "s"))
        return f"{span / unit:g} {name}"
    if span is None:
        return ""
    seconds = max(0.0, span.total_seconds() if isinstance(span, timedelta) else float(span))
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes_left = divmod(minutes, 60)
    days, hours_left = divmod(hours, 24)
    if whole < 60:
        return f"{whole} s"
    if minutes < 60:
        return f"{minutes} m {rest:02d} s"
    if hours < 24:
        return f"{hours} h {minutes_left:02d} m"
    return f"{days} d {hours_left} h"


def size(count: int) -> str:
    """A number of bytes: `812 B`, `34 KB`, `5.2 MB`."""
    if count < 1_000:
        return f"{count} B"
    if count < 1_000_000:
        return f"{count / 1_000:.0f} KB"
    return f"{count / 1_000_000:.1f} MB"


def dollars(amount: Decimal | None) -> str:
    """An amount of US dollars to its last digit, two places at least: `$0.25`, `$0.000125`, `-$1.00`."""
    if amount is None:
        return ""
    whole, _, places = f"{abs(amount).normalize():f}".partition(".")
    return f"{'-' if amount < 0 else ''}${int(whole):,}.{places:<02}"


def capped(count: int, cap: int = 1_000) -> str:
    """`7`, or `1,000+` for a count that was stopped past `cap`."""
    return f"{cap:,}+" if count > cap else f"{count:,}"


def plural(count: int, one: str, many: str = "") -> str:
    """`1 call`, `2 calls`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def clock_time(at: datetime | None) -> str:
    """The time of day in UTC, `14:05:33`."""
    return at.strftime("%H:%M:%S") if at else ""
