"""What `pip install .` would bring: every file the product reads, found where the product looks for it."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.repo.tree import PRODUCT, ROOT, files

CARRIED = (*PRODUCT, "examples", "static", "templates")
LOOK = """
import django, studio.settings
from django.conf import settings
django.setup()
from django.contrib.staticfiles import finders
from django.db.migrations.loader import MigrationLoader
from django.template.loader import get_template
pages = sorted(path.relative_to(settings.ROOT / "templates") for path in (settings.ROOT / "templates").rglob("*.html"))
for page in pages:
    get_template(str(page))
print(settings.ROOT)
print(len(pages), finders.find("css/base.css"), len(MigrationLoader(None).disk_migrations) > 10)
"""


def tracked() -> set[str]:
    """The files of the product's folders, by their place in the tree."""
    places = (path.relative_to(ROOT) for path in files(ROOT))
    return {place.as_posix() for place in places if place.parts[0] in CARRIED}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a wheel and an sdist, built without a network by the build backend of the lock."""
    folder = tmp_path_factory.mktemp("built")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def unpacked(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's files as an installation lays them out."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        wheel.extractall(folder)
    return folder


def test_the_wheel_carries_every_file_of_the_product_and_nothing_else(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        members = {name for name in wheel.namelist() if ".dist-info/" not in name}
        about = [name for name in wheel.namelist() if name.endswith("/entry_points.txt")]
        assert "oz0 = studio.cli:main" in wheel.read(about[0]).decode()
    assert members == tracked()


def test_the_source_archive_carries_what_it_takes_to_build_and_test(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        members = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "requirements.lock", "Makefile", "README.md", "tests/conftest.py"} <= members
    assert tracked() <= members
    assert not {name for name in members if name.startswith((".venv/", ".oz0/"))}


def test_the_settings_find_templates_static_files_and_migrations_in_it(unpacked: Path, tmp_path: Path) -> None:
    env = os.environ | {
        "PYTHONPATH": str(unpacked),
        "DATABASE_URL": "postgres://unused@127.0.0.1/unused",
        "OZ0_HOME": str(tmp_path),
    }
    command = [sys.executable, "-P", "-W", "ignore", "-c", LOOK]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    pages = len(list((ROOT / "templates").rglob("*.html")))
    assert done.stdout.splitlines() == [
        str(unpacked),
        f"{pages} {unpacked / 'static/css/base.css'} True",
    ]
