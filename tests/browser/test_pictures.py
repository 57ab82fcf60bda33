"""`make screenshots` can be run again at any time: it writes the README's pictures, and no others."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser.pictures import MOST_BYTES, PLACE, WIDTH
from tests.repo.tree import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.faults, pytest.mark.timeout(400)]


def test_the_pictures_of_the_readme_can_be_taken_anew(tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    words = [sys.executable, "-m", "tests.browser.pictures", str(folder)]  # in a process of its own, as make does it
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    taken = list(folder.iterdir())
    assert {file.name for file in taken} == {file.name for file in PLACE.iterdir()}
    for file in taken:
        picture, shown = file.read_bytes(), (PLACE / file.name).read_bytes()
        assert int.from_bytes(picture[16:20]) == WIDTH
        assert picture[16:24] == shown[16:24]  # as wide and as high as the one that is shown
        assert len(picture) < MOST_BYTES
