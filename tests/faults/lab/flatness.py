"""Whether a measured thing stays as large as it is: a line through its samples, and how steep that may be."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

WARM_UP: Final = 600.0  # seconds; pools, caches and code are filled by then
LEAST: Final = 1200.0  # seconds after it; over a shorter time a line says nothing of an hour
MOST_OF_MEAN: Final = 0.10  # what may be gained in an hour, unless the floor of its unit is more
FLOORS: Final = {"MB": 16.0, "": 16.0}
HOUR: Final = 3600.0

type Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Growth:
    """What came of one series. All but `unit` and `long_enough` are in its unit; `per_hour` is the line's slope."""

    name: str
    unit: str
    first: float
    last: float
    mean: float
    most: float
    per_hour: float
    bound: float
    long_enough: bool

    @property
    def grows(self) -> bool:
        """Whether it has to be called a leak."""
        return self.long_enough and self.per_hour > self.bound


def growth(name: str, points: Points, *, unit: str = "MB", warm_up: float = WARM_UP, least: float = LEAST) -> Growth:
    """Judge one series of (second, value). Of a run that is shorter than its warm-up the later half is shown."""
    began, ended = points[0][0], points[-1][0]
    counted_from = began + min(warm_up, (ended - began) / 2)
    counted = [point for point in points if point[0] >= counted_from]
    values = [value for _, value in counted]
    mean = statistics.fmean(values)
    return Growth(
        name,
        unit,
        first=values[0],
        last=values[-1],
        mean=mean,
        most=max(values),
        per_hour=slope(counted) * HOUR,
        bound=max(MOST_OF_MEAN * mean, FLOORS[unit]),
        long_enough=ended - began >= warm_up + least,
    )


def slope(points: Points) -> float:
    """The least-squares line's rise a second; a single point has none."""
    if len({second for second, _ in points}) < 2:
        return 0.0
    return statistics.linear_regression(*zip(*points, strict=True)).slope
