"""The time zones that people choose from."""

from collections.abc import Sequence
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones


def is_zone(name: str) -> bool:
    """Whether there is a time zone of this name."""
    if name not in zones():
        return False
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return False
    return True


@cache
def zones() -> Sequence[str]:
    """The names of all time zones, in order; not those that mean whatever this machine is set to."""
    return sorted(available_timezones() - {"localtime", "posixrules"})
