"""The arithmetic of time limits, all in seconds (RULES L4, L5, B2)."""

from datetime import datetime, timedelta
from typing import Final

MAX_ATTEMPTS: Final = 4  # RULES U2: the first and up to three more
MAX_BUSY_WAIT: Final = 60.0  # RULES B2
MAX_OPENINGS: Final = 3  # MACHINES 3: a server that will not start
SWEEP_GRACE: Final = 5.0  # past its limit, an attempt of a living node is closed by the sweep
LEASE: Final = 10.0  # a node silent for longer is lost
CANCEL_PATIENCE: Final = 600.0  # RULES L2: at most ten minutes past an attempt's timeout
TURN_LIMIT: Final = 600.0
APPROVAL_LIFE: Final = timedelta(hours=24)
LONGEST_APPROVAL: Final = timedelta(days=7)  # however often a person extends it
KEY_LIFE: Final = timedelta(hours=24)  # for so long a service can be taken to know a key again (RULES U7)
_FIRST_BACKOFF: Final = 1.0


def own_limit(timeout: float) -> float:
    """When an attempt stops itself: two seconds before its timeout, or a tenth of it when that is smaller."""
    return timeout - min(2.0, timeout / 10)


def backoff(now: datetime, *, failures: int, jitter: float) -> datetime:
    """When to try again after `failures` (≥ 1): exponential from one second.

    `jitter` in [0, 1) makes it half to one and a half of that.
    """
    seconds = min(_FIRST_BACKOFF * 2.0 ** (failures - 1), MAX_BUSY_WAIT)
    return now + timedelta(seconds=seconds * (0.5 + jitter))


def after_wait(now: datetime, *, wait: float, jitter: float) -> datetime:
    """When to try again after the service asked for `wait`: never earlier, spread over up to a second."""
    return now + timedelta(seconds=wait + jitter)
