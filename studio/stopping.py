"""How long a studio may take to stop: the node counts by these, and who waits for it too (MACHINES 4)."""

from typing import Final

DRAIN: Final = "60"  # seconds running attempts may take after SIGTERM before they are cancelled
TO_CANCEL: Final = 11.0  # seconds in which cancelled attempts are then settled and every server is ended
QUICK: Final = 0.5  # seconds running attempts may take after Ctrl-C before they are cancelled
QUICK_END: Final = 2.9  # seconds after Ctrl-C at which a node ends, whatever still runs
QUICK_LIMIT: Final = 3.0  # seconds after Ctrl-C at which a node is killed
LONGEST_DRAIN: Final = 3600.0


def drain_time(text: str) -> float:
    """Seconds that running attempts may take after SIGTERM, from what `OZ0_DRAIN` says. Raises `ValueError`."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= LONGEST_DRAIN:
        raise ValueError(f"OZ0_DRAIN is {text!r}: give a number of seconds from 0 to {LONGEST_DRAIN:.0f}, such as 60")
    return seconds
