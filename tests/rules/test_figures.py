"""How numbers read."""

from datetime import timedelta

import pytest

from base import figures


@pytest.mark.parametrize(
    ("seconds", "reads"),
    [
        (0, "0.0 s"),
        (0.64, "0.6 s"),
        (9.96, "10 s"),
        (59.6, "1 m 00 s"),
        (221, "3 m 41 s"),
        (10_920, "3 h 02 m"),
        (187_200, "2 d 4 h"),
    ],
)
def test_durations(seconds: float, reads: str) -> None:
    assert figures.duration(seconds) == reads
    assert figures.duration(timedelta(seconds=seconds)) == reads


@pytest.mark.parametrize(
    ("seconds", "reads"), [(1.0, "1 s"), (30.0, "30 s"), (60.0, "1 m"), (7200.0, "2 h"), (90.0, "90 s")]
)
def test_marks_of_a_ruler(seconds: float, reads: str) -> None:
    assert figures.duration(seconds, round_one=True) == reads


def test_sizes_counts_and_plurals() -> None:
    assert [figures.size(count) for count in (812, 34_000, 5_200_000)] == ["812 B", "34 KB", "5.2 MB"]
    assert [figures.capped(count) for count in (7, 1_000, 1_001)] == ["7", "1,000", "1,000+"]
    assert [figures.plural(count, "call") for count in (0, 1, 2)] == ["0 calls", "1 call", "2 calls"]
