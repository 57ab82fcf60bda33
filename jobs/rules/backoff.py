"""How long a server that fails to start is left alone."""

from typing import Final

LONGEST: Final = 30.0


def before_start(failures: int) -> float:
    """Seconds before the next start after `failures` in a row: none, 1, 2, 4 … at most 30."""
    return 0.0 if failures <= 0 else min(LONGEST, 2.0 ** min(failures - 1, 10))
