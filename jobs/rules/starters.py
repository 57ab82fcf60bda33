"""Words of what starts jobs by itself: routines and hooks (RULES G1)."""

from enum import StrEnum
from typing import Final


class Standing(StrEnum):
    """Whether a routine or hook starts jobs. It is `stopped` when the studio itself has done it, and says why."""

    ON = "on"
    PAUSED = "paused"
    STOPPED = "stopped"
    REMOVED = "removed"


class Missed(StrEnum):
    """What a routine does about due times that passed while no node was up, or while it could not be looked at."""

    SKIP = "skip"
    ONCE = "once"
    ALL = "all"


class Overlap(StrEnum):
    """What a routine does when it is due while a job of it still runs."""

    SKIP = "skip"
    ALLOW = "allow"


class Ran(StrEnum):
    """What became of a due time of a routine."""

    STARTED = "started"
    BY_HAND = "by_hand"
    OVERLAPPED = "overlapped"
    MISSED = "missed"
    REFUSED = "refused"


class Arrived(StrEnum):
    """What became of an event that came, rightly signed, to a hook."""

    STARTED = "started"
    UNMAPPED = "unmapped"
    REFUSED = "refused"
    IGNORED = "ignored"


class Signing(StrEnum):
    """Whose way of signing the events of a hook have."""

    STANDARD = "standard"
    GITHUB = "github"
    STRIPE = "stripe"
    SLACK = "slack"


WITH_JOB: Final = frozenset({Ran.STARTED, Ran.BY_HAND})
LONGEST_NAME: Final = 64
MOST: Final = 500  # routines, and hooks, of one tenant
