"""The studio as a package: up in an empty folder, from a wheel's files alone (CASES I06)."""

import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.processes import family, until
from tests.faults.studios import READY_IN, Studio, said_by, state_folder, studio_in
from tests.repo.tree import ROOT

pytestmark = [pytest.mark.faults, pytest.mark.timeout(240)]
PATIENCE = 60.0  # seconds for a page, beside a demo that is only just starting


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel's files, unpacked as an installation lays them out."""
    built, site = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(built)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=100)
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        wheel.extractall(site)
    return site


@pytest.fixture(scope="module")
def studio(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A studio of those files, with the demo, in an empty folder."""
    with state_folder(tmp_path_factory.mktemp("empty") / ".oz0") as home:
        # what the files do not hold would still be found in this checkout, but for PYTHONSAFEPATH
        env = {"PYTHONPATH": str(site), "PYTHONSAFEPATH": "1"}
        with studio_in(home, demo=True, cwd=home.parent, **env) as running:
            yield running.ready()


def test_it_comes_up_with_the_demo_from_the_packages_own_files(studio: Studio, site: Path) -> None:
    assert studio.link is not None
    assert until(lambda: studio.said("registered plugin bookshop"), READY_IN), studio.lines
    assert until(lambda: studio.said("started a job of shopkeeper"), READY_IN), studio.lines
    said = [said_by(process).replace(sys.prefix, "") for process in family(studio.process.pid)]
    assert said and not any(f"{ROOT}/" in words for words in said)  # but for the environment, which may lie there


def test_its_pages_have_their_looks(studio: Studio) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{studio.port}/static/css/base.css", timeout=PATIENCE) as sheet:
        assert sheet.status == 200
    with urllib.request.urlopen(f"http://127.0.0.1:{studio.port}/sign-in/", timeout=PATIENCE) as page:
        assert b"oz0" in page.read()
