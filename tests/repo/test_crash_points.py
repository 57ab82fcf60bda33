"""The points where drills end a process: each is in the product once, and none does anything in production."""

import ast
import os
import signal
import subprocess
import sys
from collections import Counter

import pytest

from base import crash_points
from tests.repo.tree import PRODUCT, ROOT, sources

THREE_TIMES = """
from base.crash_points import reached
for time in (1, 2, 3):
    reached("settle.before_commit")
    reached("settle.after_commit")
    print(time, flush=True)
"""


def hooks() -> tuple[set[str], set[str]]:
    """The points that the product names where it passes them, and the commits that it names."""
    points, commits = set(), set()
    for source in sources(ROOT, *PRODUCT):
        for node in ast.walk(source.syntax):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr == "reached" and isinstance(node.args[0], ast.Constant):
                points.add(node.args[0].value)
            if node.func.attr == "write":
                commits |= {ast.literal_eval(word.value) for word in node.keywords if word.arg == "named"}
    return points, commits


def test_every_point_is_in_the_product_and_no_other() -> None:
    points, commits = hooks()
    assert commits == set(crash_points.COMMITS)
    assert {f"{commit}.{side}_commit" for commit in commits for side in ("before", "after")} | points == set(
        crash_points.POINTS
    )


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often this process would have been ended, and by what."""
    signals: list[int] = []
    monkeypatch.setattr(os, "kill", lambda _pid, number: signals.append(number))
    return signals


def test_in_production_no_point_does_anything(ended: list[int]) -> None:
    assert crash_points.VARIABLE not in os.environ, "no test and no studio runs with it set"
    for point in crash_points.POINTS:
        crash_points.reached(point)
    assert (ended, crash_points._passed) == ([], {})


def test_a_named_point_ends_the_process_and_no_other_point_does(
    ended: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the test above."""
    for point in crash_points.POINTS:
        monkeypatch.setattr(crash_points, "_passed", Counter())
        monkeypatch.setenv(crash_points.VARIABLE, point)
        for other in crash_points.POINTS:
            crash_points.reached(other)
    assert ended == [signal.SIGKILL] * len(crash_points.POINTS)


def test_it_ends_at_once_the_time_that_is_named() -> None:
    env = os.environ | {crash_points.VARIABLE: "settle.after_commit:2", "PYTHONPATH": str(ROOT)}
    ran = subprocess.run([sys.executable, "-c", THREE_TIMES], env=env, capture_output=True, text=True, timeout=30)
    assert (ran.returncode, ran.stdout) == (-signal.SIGKILL, "1\n")
