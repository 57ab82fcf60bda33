"""What Prometheus reads: how much there is to do in the whole studio, and how this web process answers.

Nothing in it tells of a workspace: every label's values are words of our own code, and each figure is over all of them
(tests/pages/test_metrics.py).
"""

import time
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Final

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    GC_COLLECTOR,
    PLATFORM_COLLECTOR,
    PROCESS_COLLECTOR,
    CollectorRegistry,
    Histogram,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from jobs.api import following
from jobs.queries.gauges import Gauges, gauges

TYPE: Final = CONTENT_TYPE_LATEST
KEPT: Final = 2.0  # seconds for which the database's figures are told again, however many ask
METHODS: Final = frozenset({"GET", "HEAD", "POST"})
ROOMS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds


class OfTheDatabase(Collector):
    """The figures of the database, read when they are asked for."""

    def describe(self) -> list[GaugeMetricFamily]:
        """Nothing beforehand: registering reads no database."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """All of them."""
        found = _gauges(_moment())
        working = found.working
        yield _by("oz0_jobs", "Jobs that are not over.", "state", found.jobs)
        yield _by("oz0_calls", "Calls that are not over.", "state", found.calls)
        yield _by("oz0_questions", "Questions that wait for a person.", "kind", found.holds)
        yield _one("oz0_question_oldest_seconds", "How long the oldest open question waits.", found.oldest_hold)
        yield _one("oz0_calls_due", "Calls that are due and that no node has taken yet.", found.due)
        yield _one("oz0_call_due_oldest_seconds", "How long the oldest of them is due.", found.oldest_due)
        yield _one("oz0_attempts_open", "Attempts that are being made.", found.attempts)
        yield _by("oz0_nodes", "Nodes by state.", "state", found.nodes)
        yield _one("oz0_node_slots", "Calls that all living nodes can make at a time.", working.slots)
        yield _one("oz0_node_pulse_age_seconds", "Since when no node was heard of.", _or_never(working.pulse))
        yield _one("oz0_message_age_seconds", "Since when no message reached a node.", _or_never(working.message))
        yield _one("oz0_readers", "Programs that follow a job in this process.", following.readers())


registry: Final = CollectorRegistry()
for collector in (PROCESS_COLLECTOR, PLATFORM_COLLECTOR, GC_COLLECTOR):
    registry.register(collector)
registry.register(OfTheDatabase())
_answered: Final = Histogram(
    "oz0_http_seconds",
    "How long requests took until their answer began.",
    ["method", "status"],
    buckets=ROOMS,
    registry=registry,
)


def text() -> bytes:
    """Everything, as Prometheus reads it."""
    return generate_latest(registry)


def answered(method: str, status: int, seconds: float) -> None:
    """Count a request. Its address is not told, and a method of nobody's making is `other`."""
    _answered.labels(method if method in METHODS else "other", f"{status // 100}xx").observe(seconds)


def _moment() -> int:
    return int(time.monotonic() / KEPT)


@lru_cache(1)
def _gauges(_moment: int) -> Gauges:
    return gauges()


def _or_never(seconds: float | None) -> float:
    return float("inf") if seconds is None else seconds


def _one(name: str, says: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, says, value=value)


def _by[State: StrEnum](name: str, says: str, label: str, counts: Mapping[State, int]) -> GaugeMetricFamily:
    found = GaugeMetricFamily(name, says, labels=[label])
    for word, count in counts.items():
        found.add_metric([word.value], count)
    return found
