"""Which progress notifications count (RULES P1)."""

import math
from collections.abc import Mapping
from typing import Any

from jobs.rules.orders import Progress


def next_progress(last: Progress | None, params: Mapping[str, Any]) -> Progress | None:
    """The progress after one notification's `params`, or `last` when its value falls, is not finite or is no number.

    A total that is no positive finite number counts as not given. The message is never kept.
    """
    value = _number(params.get("progress"))
    if value is None or (last is not None and value < last.value):
        return last
    total = _number(params.get("total"))
    return Progress(value, total if total is not None and total > 0 else None)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
