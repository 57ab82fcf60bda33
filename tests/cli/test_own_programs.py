"""What the product starts of itself reads its own modules, also in a folder of files that are called like them."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from studio import program, serving
from tests.repo.tree import PRODUCT, ROOT

STRAYS = ("approvals", "base", "catalog", "celery", "django", "jobs", "redis", "studio", "tenants")
BY_FOLDER = 'sys.executable, "-m"'


@pytest.fixture
def strays(tmp_path: Path) -> Path:
    """A folder of modules that are called as the studio's own and as those it stands on."""
    for name in STRAYS:
        (tmp_path / f"{name}.py").write_text('raise SystemExit("a stray module was read")\n')
    return tmp_path


def said(words: list[str], cwd: Path, **env: str) -> str:
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr


def test_a_program_of_ours_reads_no_module_of_the_folder_it_runs_in(strays: Path) -> None:
    assert "oz0 up --demo" in said(program.command("studio.cli", "--help"), strays)
    by_folder = [sys.executable, "-m", "studio.cli", "--help"]
    assert said(by_folder, strays, PYTHONPATH=str(ROOT)).strip() == "a stray module was read"  # so they would bite


def test_celery_leaves_the_path_as_it_was(strays: Path) -> None:
    look = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); import studio.celery as it;"
        "seen = []; it.app.loader.import_from_cwd('json', imp=lambda *_, **__: seen.extend(sys.path));"
        "print(seen == sys.path, [place for place in sys.path if place in sys.argv[1:]])"
    )
    env = {"OZ0_SECRET_KEY": "unused", "DATABASE_URL": "postgres://unused@127.0.0.1/unused"}
    env |= {"REDIS_URL": "redis://127.0.0.1:9/0", "OZ0_HOME": str(strays)}
    words = [sys.executable, "-P", "-c", look, "", ".", str(strays)]
    assert said(words, strays, **env).strip() == "True []"


def test_daphne_leaves_the_path_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    class Server:
        abort_start = False

        def __init__(self, **_: Any) -> None:
            seen.append(list(sys.path))

        def run(self) -> None:
            pass

    monkeypatch.setattr(serving.Interface, "server_class", Server)
    monkeypatch.setattr(sys, "path", before := list(sys.path))
    serving.Interface().run(["--verbosity", "0", "studio.asgi:application"])
    assert seen == [before]


def test_no_program_of_ours_is_started_by_the_folder_it_runs_in() -> None:
    """`-m` after our own interpreter is what a plugin's author writes for a server, and nobody else."""
    found = [path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py") if BY_FOLDER in path.read_text()]
    assert found == []
