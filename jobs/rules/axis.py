"""The axis of time under a trace: where a moment stands from left (0) to right (100), with idle time folded.

Times are seconds since the job was made. Stretches in which nothing worked and that would squeeze the rest are drawn
as a fold of fixed width; every other second is as wide as any.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

FOLD_WIDTH: Final = 2.5  # of 100
LEAST_FOLD: Final = 20.0  # seconds; shorter idle time is drawn as it is
FOLD_SHARE: Final = 0.25  # of the working time: idle time longer than this is folded
MOST_TICKS: Final = 6
STEPS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400)


@dataclass(frozen=True, slots=True)
class Fold:
    """Idle time that is not drawn to scale."""

    start: float
    end: float
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark of the ruler: seconds since the start, and its place."""

    at: float
    x: float


@dataclass(frozen=True, slots=True)
class Axis:
    """From seconds to places. `stops` are (second, place) pairs, both rising; between two of them it is straight."""

    stops: tuple[tuple[float, float], ...]
    folds: tuple[Fold, ...]

    def x(self, at: float) -> float:
        """The place of a moment, 0 to 100."""
        if at <= self.stops[0][0]:
            return self.stops[0][1]
        for (left, left_x), (right, right_x) in pairwise(self.stops):
            if at <= right:
                return min(right_x, left_x + (right_x - left_x) * (at - left) / (right - left))
        return self.stops[-1][1]

    @property
    def folded(self) -> float:
        """Seconds that are folded away."""
        return sum(fold.end - fold.start for fold in self.folds)

    def ticks(self) -> tuple[Tick, ...]:
        """Round moments to mark, at most six, none inside a fold."""
        drawn = self.stops[-1][0] - self.stops[0][0] - self.folded
        step = next((step for step in STEPS if drawn / step <= MOST_TICKS), STEPS[-1])
        found: list[Tick] = []
        at = float(step)
        while at < self.stops[-1][0] and len(found) < MOST_TICKS:
            fold = next((fold for fold in self.folds if fold.start <= at <= fold.end), None)
            if fold is not None:
                at = (fold.end // step + 1) * step
                continue
            place = self.x(at)
            if place < 94 and (not found or place - found[-1].x > 6):
                found.append(Tick(at, place))
            at += step
        return tuple(found)


def lay_out(busy: Iterable[tuple[float, float]], *, start: float, end: float) -> Axis:
    """The axis from `start` to `end` for the spans in which something worked. An `end` too near is moved."""
    end = max(end, start + 0.1)
    gaps = _gaps(busy, start, end)
    idle = sum(right - left for left, right in gaps)
    limit = max(LEAST_FOLD, (end - start - idle) * FOLD_SHARE)
    folded = [(left, right) for left, right in gaps if right - left > limit]
    drawn = end - start - sum(right - left for left, right in folded)
    scale = (100 - FOLD_WIDTH * len(folded)) / drawn if drawn > 0 else 0.0
    stops, folds = [(start, 0.0)], []
    for left, right in folded:
        at, place = stops[-1]
        fold_x = min(100.0, place + (left - at) * scale)  # rounding may go past the end
        if left > at:
            stops.append((left, fold_x))
        stops.append((right, min(100.0, fold_x + FOLD_WIDTH)))
        folds.append(Fold(left, right, fold_x, FOLD_WIDTH))
    if stops[-1][0] < end:
        stops.append((end, 100.0))
    return Axis(tuple(stops), tuple(folds))


def _gaps(busy: Iterable[tuple[float, float]], start: float, end: float) -> list[tuple[float, float]]:
    gaps, reached = [], start
    for left, right in sorted(busy):
        if left > reached:
            gaps.append((reached, min(left, end)))
        reached = max(reached, right)
    if reached < end:
        gaps.append((reached, end))
    return gaps
