"""Which progress notifications count (RULES P1)."""

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from catalog.rules.kinds import RESUME
from jobs.rules.orders import Progress, ResumePoint

TOKEN: Final = re.compile(r"[A-Za-z0-9._:~+/=-]{1,256}\Z")


def next_progress(last: Progress | None, params: Mapping[str, Any]) -> Progress | None:
    """The progress after one notification's `params`, or `last` when its value falls, is not finite or is no number.

    A total that is no positive finite number counts as not given. The message is never kept. A resume token counts
    with the progress it came with; one that is malformed leaves the one before it (RULES P3).
    """
    value = _number(params.get("progress"))
    if value is None or (last is not None and value < last.value):
        return last
    total = _number(params.get("total"))
    total = total if total is not None and total > 0 else None
    resume, odd = (last.resume, last.odd_token) if last is not None else (None, False)
    meta = params.get("_meta")
    if isinstance(meta, Mapping) and RESUME in meta:
        token = meta[RESUME]
        if isinstance(token, str) and TOKEN.match(token):
            resume = ResumePoint(token, value, total)
        else:
            odd = True
    return Progress(value, total, resume, odd)


def share_done(progress: float | None, total: float | None) -> float:
    """How much of its total a progress is, from 0 to 100; 0 where one of them is not known."""
    if progress is None or not total:
        return 0.0
    return min(100.0, max(0.0, 100 * progress / total))


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
