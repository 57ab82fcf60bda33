"""`make screenshots` can be run again at any time: it writes the README's pictures, and no others."""

from pathlib import Path

import pytest

from tests.browser.pictures import MOST_BYTES, PLACE, WIDTH, take

pytestmark = [pytest.mark.browser, pytest.mark.faults, pytest.mark.timeout(400)]


def test_the_pictures_of_the_readme_can_be_taken_anew(tmp_path: Path) -> None:
    taken = take(tmp_path / "pictures")
    assert {file.name for file in taken} == {file.name for file in PLACE.iterdir()}
    for file in taken:
        picture, shown = file.read_bytes(), (PLACE / file.name).read_bytes()
        assert int.from_bytes(picture[16:20]) == WIDTH
        assert picture[16:24] == shown[16:24]  # as wide and as high as the one that is shown
        assert len(picture) < MOST_BYTES
