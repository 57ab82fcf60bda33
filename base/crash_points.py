"""Named points at which a fault drill ends this process, as a power cut would: no last word, no clean-up.

Without the variable in its environment nothing here does anything. `OZ0_CRASH_AT=settle.after_commit:3` ends the
process the third time that it gets to that point (docs/fault-lab.md).
"""

import os
import signal
from collections import Counter
from typing import Final

VARIABLE: Final = "OZ0_CRASH_AT"
# The transactions that `db.write` is given a name for.
COMMITS: Final = ("submit", "start", "settle", "answer", "admit_batch", "admit_check", "confirm")
POINTS: Final = (
    *(f"{commit}.{side}" for commit in COMMITS for side in ("before_commit", "after_commit")),
    "request.first_byte",
    "request.written",
    "reply.received",
)
_passed: Final[Counter[str]] = Counter()


def reached(point: str) -> None:
    """This process is at one of `POINTS`: the end of it when the environment says so, else nothing."""
    if VARIABLE in os.environ:
        name, _, time = os.environ[VARIABLE].partition(":")
        if name == point:
            _passed[point] += 1
            if _passed[point] >= int(time or 1):
                os.kill(os.getpid(), signal.SIGKILL)
