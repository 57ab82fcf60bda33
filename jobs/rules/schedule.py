"""When a routine is due: a cron expression in a time zone, where days may have 23 or 25 hours.

The library follows Debian's cron. A time of day that a day leaves out comes when its clock goes on (02:30 in a night
that skips from 02:00 to 03:00 comes at 03:00), one that a day has twice comes the first time, and what comes every so
many minutes or hours, `*` or `*/n`, goes on by real time.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, assert_never
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from base.zones import is_zone
from jobs.rules.starters import Missed

LATE: Final = timedelta(minutes=5)  # past which a due time counts as missed
MOST_AT_ONCE: Final = 24  # missed due times that are run, the latest of them
_LOOKED_AT: Final = 3_000  # due times; of what comes so often only the last days are looked at
_LAST_DAYS: Final = timedelta(days=2)
FIELDS: Final = 5
LONGEST: Final = 100


class BadSchedule(ValueError):
    """An expression or a zone that cannot be read, or never comes; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """When something is due. Made by `read`, which refuses what cannot be read."""

    cron: str
    zone: str

    def next(self, after: datetime) -> datetime | None:
        """The first due time later than `after`, in UTC; None when none comes within fifty years."""
        local = after.astimezone(ZoneInfo(self.zone))
        for found in CronSim(self.cron, local):
            due = found.astimezone(UTC)
            if due > after:  # an hour that comes twice: the library goes by what the clock on the wall shows
                return due
        return None

    def coming(self, after: datetime, count: int) -> tuple[datetime, ...]:
        """The next due times."""
        found: list[datetime] = []
        while len(found) < count and (due := self.next(found[-1] if found else after)) is not None:
            found.append(due)
        return tuple(found)

    def local(self, at: datetime) -> datetime:
        """A moment as the clocks of its zone show it."""
        return at.astimezone(ZoneInfo(self.zone))

    @property
    def in_words(self) -> str:
        """The expression as a sentence without a full stop, such as `At 03:00 on Monday`."""
        try:
            said: str = CronSim(self.cron, datetime(2026, 1, 1)).explain()  # noqa: DTZ001 - no time is taken from it
        except Exception:  # the library's words for what it can run are a convenience
            return self.cron
        return said


def read(cron: str, zone: str, *, now: datetime) -> Schedule:
    """The schedule of an expression of five fields in a zone. Raises `BadSchedule`."""
    text = " ".join(cron.split())
    if len(text) > LONGEST or len(text.split(" ")) != FIELDS or not text.isascii():
        raise BadSchedule(
            "a schedule has five parts: minute, hour, day of the month, month, day of the week; such as 30 7 * * 1-5"
        )
    if not is_zone(zone):
        raise BadSchedule(f"{zone[:64]!r} is not the name of a time zone, such as Europe/Berlin or UTC")
    found = Schedule(text, zone)
    try:
        due = found.next(now)
    except CronSimError as error:
        what = str(error).removeprefix("Bad ")
        raise BadSchedule(f"its {what} cannot be read: {_TAKES.get(what, 'numbers, ranges and lists')}") from error
    except (AssertionError, ValueError, TypeError, IndexError, OverflowError) as error:
        raise BadSchedule("it cannot be read: write numbers, ranges such as 1-5, lists such as 1,3, or */15") from error
    if due is None:
        raise BadSchedule("it never comes: no month has that day")
    return found


_TAKES: Final = {
    "minute": "0 to 59, a range, a list, or */15",
    "hour": "0 to 23, a range, a list, or */2",
    "day-of-month": "1 to 31, L for the last one, a range or a list",
    "month": "1 to 12 or JAN to DEC, a range or a list",
    "day-of-week": "0 to 7 or SUN to SAT, a range or a list, 1#2 for the second Monday",
}


@dataclass(frozen=True, slots=True)
class Due:
    """What a routine does now: run these due times, the oldest first, note one as missed, and wait for the next.

    `missed` is the last due time that is not run, and `skipped` how many are not; None and 0 where there are none.
    `more` says that there were others before those, too many to be counted.
    """

    runs: tuple[datetime, ...]
    missed: datetime | None
    skipped: int
    more: bool
    next: datetime | None


def due(schedule: Schedule, first: datetime, missed: Missed, *, now: datetime) -> Due:
    """What is to be done of a schedule whose due time `first` has come, by what it says of those that were missed."""
    passed, more = _passed(schedule, first, now)
    match missed:
        case Missed.SKIP:
            runs = [at for at in passed[-1:] if now - at <= LATE]
        case Missed.ONCE:
            runs = passed[-1:]
        case Missed.ALL:
            runs = passed[-MOST_AT_ONCE:]
        case never:
            assert_never(never)
    left = passed[: len(passed) - len(runs)]
    return Due(tuple(runs), left[-1] if left else None, len(left), more, schedule.next(now))


def _passed(schedule: Schedule, first: datetime, now: datetime) -> tuple[list[datetime], bool]:
    """Every due time from `first` until now, and whether there were more before those that are given."""
    found: list[datetime] = []
    at: datetime | None = first
    while at is not None and at <= now:
        if len(found) == _LOOKED_AT and found[0] < now - _LAST_DAYS:
            later, _ = _passed(schedule, schedule.next(now - _LAST_DAYS) or now, now)
            return later, True
        found.append(at)
        at = schedule.next(at)
    return found, False
