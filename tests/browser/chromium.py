"""Which browser the tests use: a Chromium on the path, else the one that Playwright keeps for itself.

`python -m tests.browser.chromium` prints its place, or says what to install and ends with 1.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OF_PLAYWRIGHT: Final = "chromium*-*/chrome-*/*"
PROGRAMS: Final = ("chrome", "headless_shell", "chrome-headless-shell")
QUIET: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-quic",
    "--disable-dev-shm-usage",
)
MISSING: Final = (
    "make test needs a browser: install chromium or google-chrome"
    " (on Debian `apt-get install chromium`), or run `.venv/bin/playwright install chromium`"
)


def chromium() -> Path | None:
    """The browser's program, or None when there is none that runs."""
    on_the_path = [Path(found) for name in NAMES if (found := shutil.which(name))]
    return next((program for program in [*on_the_path, *_of_playwright()] if _runs(program)), None)


def _of_playwright() -> list[Path]:
    """The whole browsers before the headless shells, the newest of each first."""
    kept = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache/ms-playwright")
    own = [path for path in kept.glob(OF_PLAYWRIGHT) if path.name in PROGRAMS and os.access(path, os.X_OK)]
    return sorted(own, key=lambda path: (path.name == "chrome", _build(path)), reverse=True)


def _runs(program: Path) -> bool:
    """Whether it is a browser: some systems have a script in its place that only says how to get one."""
    try:
        return subprocess.run([program, "--version"], capture_output=True, timeout=20, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _build(program: Path) -> int:
    """The number in the name of Playwright's folder, `chromium-1181`."""
    number = program.parents[1].name.rpartition("-")[2]
    return int(number) if number.isdigit() else 0


if __name__ == "__main__":
    place = chromium()
    sys.stdout.write(f"browser for the tests: {place}\n" if place else "")
    sys.exit(None if place else MISSING)
