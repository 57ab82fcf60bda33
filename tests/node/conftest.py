"""Both servers, opened for one test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node.driving import Driven, driven


@pytest.fixture
def behaved(tmp_path: Path) -> Iterator[Driven]:
    with driven("behaved", tmp_path) as drive:
        yield drive


@pytest.fixture
def misbehaved(tmp_path: Path) -> Iterator[Driven]:
    with driven("misbehaved", tmp_path) as drive:
        yield drive
