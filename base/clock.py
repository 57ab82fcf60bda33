"""The clock of durations on one machine. What is decided between processes uses the database's `oz0_now()` instead."""

import time
from typing import Final

_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot_time() -> float:
    """Seconds since this machine started. Never moves back, and where the system allows also counts while it sleeps."""
    return time.clock_gettime(_CLOCK)
