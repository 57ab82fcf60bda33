"""In which hour, day and month something is counted: those of its id's own time, whenever it comes (CASES J05)."""

from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from budgets.rules.words import Period


def starts(moment: datetime, zone: str) -> Mapping[Period, datetime]:
    """When each period that holds this moment began, in the order in which their counts are locked.

    Hours are UTC's, so that a clock set back makes no hour twice as long. A day has a date of the zone, however many
    hours that has; where its midnight is left out, it begins with the first moment after.
    """
    here = moment.astimezone(ZoneInfo(zone))
    return {
        Period.HOUR: moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0),
        Period.DAY: datetime.combine(here.date(), time(), ZoneInfo(zone)).astimezone(UTC),
        Period.MONTH: datetime.combine(here.date().replace(day=1), time(), ZoneInfo(zone)).astimezone(UTC),
    }


def next_start(period: Period, start: datetime, zone: str) -> datetime:
    """When the period after the one that began at `start` begins."""
    span = {Period.HOUR: timedelta(hours=1), Period.DAY: timedelta(hours=36), Period.MONTH: timedelta(days=32)}
    return starts(start + span[period], zone)[period]
