"""What `make` does before there is a Python: the environment, a browser, cleaning up. Nothing is fetched here."""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from studio.embedded.place import place_of
from tests.browser import chromium
from tests.repo.tree import ROOT

PROGRAMS = (
    *(
        "sh",
        "cat",
        "cksum",
        "cut",
        "date",
        "env",
        "find",
        "flock",
        "grep",
        "id",
        "make",
        "mkdir",
        "mktemp",
        "readlink",
        "rm",
    ),
    *("sed", "sha256sum", "sleep", "stat", "tail", "touch"),
)
# A Python of the wanted version that can do what the script asks of one; what its pip says is in $PIP_SAYS.
PYTHON = """#!/bin/sh
case "$*" in
*sys.version_info\\[:3\\]*) echo "{version}" ;;
*"import ensurepip, venv"*) exit {without_venv} ;;
"-m venv"*) mkdir -p .venv/bin && cat "$0" >.venv/bin/python && chmod 755 .venv/bin/python ;;
"-m pip install"*) echo "pip $*" >>calls; echo "$PIP_SAYS"; [ -z "$PIP_SAYS" ] ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What `make` needs of a checkout, in a folder of an odd name, on a machine with no Python."""
    folder = tmp_path / "größer als"
    folder.mkdir()
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "make", folder / "make")
    (tmp_path / "bin").mkdir()
    for name in (*PROGRAMS, "chmod"):
        found = shutil.which(name)
        assert found, name
        (tmp_path / "bin" / name).symlink_to(found)
    return folder


def python(place: Path, version: str = "3.13.5", *, without_venv: int = 0) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(PYTHON.format(version=version, without_venv=without_venv))
    place.chmod(0o755)
    return place


def make(checkout: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": str(checkout.parent / "bin"), "HOME": str(checkout.parent / "home"), "PIP_SAYS": ""}
    command = ["make", "--no-print-directory", "-C", str(checkout), *words]
    return subprocess.run(command, env=env | more, cwd="/", capture_output=True, text=True, timeout=60)


def calls(checkout: Path) -> int:
    file = checkout / "calls"
    return len(file.read_text().splitlines()) if file.exists() else 0


def test_without_any_python_it_says_what_it_needs_and_how_to_get_it(checkout: Path) -> None:
    done = make(checkout, "run")
    assert done.returncode != 0
    assert "oz0 studio needs Python 3.12, 3.13 or 3.14 with its venv module, on the path or under pyenv." in done.stderr
    assert "apt-get install python3 python3-venv" in done.stderr


def test_what_was_found_and_does_not_fit_is_named_with_its_reason(checkout: Path) -> None:
    python(checkout.parent / "bin/python3", "3.11.2")
    python(checkout.parent / "bin/python3.13", without_venv=1)
    said = make(checkout, "run").stderr
    assert f"{checkout.parent}/bin/python3 is 3.11.2" in said
    assert "without the modules venv and ensurepip: on Debian and Ubuntu, apt-get install python3.13-venv" in said


def test_a_python_that_was_named_and_cannot_be_used_is_refused_by_name(checkout: Path) -> None:
    python(checkout.parent / "bin/python3.13")
    said = make(checkout, "run", "PYTHON=/nowhere/python").stderr
    assert "PYTHON=/nowhere/python is not one." in said


@pytest.mark.parametrize(
    "place", ["bin/python3.13", "bin/python3.14", "bin/python3.12", "home/.pyenv/versions/3.14.1/bin/python3"]
)
def test_each_python_that_fits_is_found_and_installed_once(checkout: Path, place: str) -> None:
    found = python(checkout.parent / place, "3.14.1" if "14" in place else "3.13.5")
    first = make(checkout, "environment")
    assert first.returncode == 0, first.stderr
    assert f"making .venv with {found} (3.1" in first.stdout
    assert "packages, 0 s" in first.stdout
    installed = calls(checkout)
    assert installed == 2  # the lock, then the checkout itself
    again = make(checkout, "environment")
    assert (again.returncode, again.stdout, calls(checkout)) == (0, "", installed)


def test_another_lock_or_another_folder_is_installed_anew(checkout: Path) -> None:
    python(checkout.parent / "bin/python3.13")
    make(checkout, "environment")
    (checkout / "requirements.lock").write_text("other==1\n")
    assert "bringing .venv to requirements.lock" in make(checkout, "environment").stdout
    moved = checkout.rename(checkout.parent / "moved")
    assert "making .venv with" in make(moved, "environment").stdout


@pytest.mark.parametrize(
    ("said", "fix"),
    [
        ("ERROR: Could not install: [Errno 28] No space left on device", "the disk is full: free about 1 GB"),
        ("ERROR: No matching distribution found for click==8.3.1", "packages cannot be fetched: see that the network"),
        (
            "SSLError(SSLCertVerificationError: certificate verify failed)",
            "the certificate of the package index is not",
        ),
        ("ERROR: [Errno 13] Permission denied: 'x'", "this account may not write there"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES", "what the package index gave is not what the lock names"),
    ],
)
def test_an_installation_that_fails_says_why_and_what_helps_and_is_taken_up_again(
    checkout: Path, said: str, fix: str
) -> None:
    """CASES F02."""
    python(checkout.parent / "bin/python3.13")
    done = make(checkout, "environment", PIP_SAYS=said)
    assert done.returncode != 0
    assert f"/.venv: {said}" in done.stderr
    assert f"fix: {fix}" in done.stderr
    assert make(checkout, "environment").returncode == 0


def test_clean_removes_what_make_made_and_nothing_else(checkout: Path) -> None:
    python(checkout.parent / "bin/python3.13")
    make(checkout, "environment")
    place = place_of(checkout / ".oz0")  # root's services live elsewhere
    (checkout / ".oz0").mkdir(exist_ok=True)
    (checkout / "jobs/__pycache__").mkdir(parents=True)
    (checkout / ".ruff_cache").mkdir()
    (checkout / "notes.txt").touch()
    done = make(checkout, "clean", TMPDIR=os.environ.get("TMPDIR", "/tmp"))
    assert done.returncode == 0, done.stderr
    assert not place.data.exists()
    assert not place.sockets.exists()
    left = sorted(path.relative_to(checkout).as_posix() for path in checkout.iterdir())
    assert left == ["Makefile", "calls", "jobs", "make", "notes.txt", "pyproject.toml", "requirements.lock"]
    assert not list((checkout / "jobs").iterdir())
    assert make(checkout, "clean").returncode == 0


def test_clean_refuses_while_a_studio_runs_there(checkout: Path) -> None:
    (checkout / ".oz0").mkdir()
    with (checkout / ".oz0/up.lock").open("w+") as lock:
        lock.write("process 7, http://127.0.0.1:8000/")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = make(checkout, "clean")
        assert done.returncode != 0
        assert "a studio runs here (process 7, http://127.0.0.1:8000/): stop it with Ctrl-C" in done.stderr
        assert (checkout / ".oz0").is_dir()
        lock.truncate(0)
    assert make(checkout, "clean").returncode == 0


def test_help_lists_every_command_with_what_it_is_for(checkout: Path) -> None:
    awk = shutil.which("awk")
    assert awk
    (checkout.parent / "bin/awk").symlink_to(awk)
    said = make(checkout).stdout
    assert all(f"  make {name} " in said for name in ("help", "run", "test", "check", "clean"))


@pytest.mark.usefixtures("checkout")
def test_the_browser_is_one_on_the_path_that_runs_else_playwrights_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "kept"))
    assert chromium.chromium() is None

    def program(place: str, ends: int = 0) -> Path:
        file = tmp_path / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\nexit {ends}\n")
        file.chmod(0o755)
        return file

    shell = program("kept/chromium_headless_shell-1200/chrome-linux/headless_shell")
    assert chromium.chromium() == shell
    program("kept/chromium-999/chrome-linux/chrome")
    whole = program("kept/chromium-1181/chrome-linux/chrome")
    assert chromium.chromium() == whole
    program("bin/chromium-browser", ends=1)  # a script that only says where to get one
    assert chromium.chromium() == whole
    own = program("bin/chromium")
    assert chromium.chromium() == own
