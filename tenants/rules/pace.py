"""How often a token may ask: so many times at once, and that number again over each minute that follows.

What is kept is one moment, `until`: how far the questions asked so far reach when each of them takes an equal share of
a minute. It cannot lie more than a minute ahead.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

WINDOW: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Pace:
    """Whether one more question is answered. `left` may follow at once; all may again after `full_in` seconds.

    `wait` is how many seconds a refused one has to wait, and `until` what is kept from now on.
    """

    allowed: bool
    limit: int
    left: int
    full_in: float
    wait: float
    until: datetime


def pace(until: datetime | None, now: datetime, *, limit: int) -> Pace:
    """The pace of a token that asks now; `limit` is how many questions a minute has room for, at least 1."""
    share = WINDOW // limit
    begun = now if until is None or until < now else until
    reached = begun + share
    ahead = reached - now
    if ahead > WINDOW:
        return Pace(False, limit, 0, (begun - now).total_seconds(), (ahead - WINDOW).total_seconds(), begun)
    left = int((WINDOW - ahead) / share)
    return Pace(True, limit, left, ahead.total_seconds(), 0.0, reached)
