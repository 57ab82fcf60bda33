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
TURN_OWN_LIMIT: Final = 590.0  # for which a node waits for a model's answer, all of it
MAX_BUSY_ASKS: Final = 10  # of one turn, before a provider that does not answer fails it
MAX_PROVIDER_WAIT: Final = 3_600.0  # that a provider may ask for
APPROVAL_LIFE: Final = timedelta(hours=24)
LONGEST_APPROVAL: Final = timedelta(days=7)  # however often a person extends it
KEY_LIFE: Final = timedelta(hours=24)  # for so long a service can be taken to know a key again (RULES U7)
CLIENT_IDLE: Final = timedelta(minutes=30)  # without a call, after which an outside client's job ends (RULES G7)
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


def asked_again(now: datetime, *, tries: int, wait: float | None, jitter: float) -> datetime | None:
    """When a turn whose provider was busy is asked again, after `tries` (≥ 1) of it. None: not any more."""
    if tries >= MAX_BUSY_ASKS or (wait is not None and wait > MAX_PROVIDER_WAIT):
        return None
    return backoff(now, failures=tries, jitter=jitter) if wait is None else after_wait(now, wait=wait, jitter=jitter)


def after_wait(now: datetime, *, wait: float, jitter: float) -> datetime:
    """When to try again after the service asked for `wait`: never earlier, spread over up to a second."""
    return now + timedelta(seconds=wait + jitter)
