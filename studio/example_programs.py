"""The programs of others that some examples run: whether they are there, and fetching the one that npm has."""

import importlib.util
import shutil
import subprocess
from pathlib import Path
from typing import Final

FETCHING: Final = 90.0  # seconds
PINS: Final = ("package.json", "package-lock.json")


def missing(name: str) -> str:
    """Why an example cannot be shown here, as the end of a sentence; empty when it can."""
    if name == "clock" and importlib.util.find_spec("mcp_server_time") is None:
        return "install mcp-server-time beside the studio to see it"
    return ""


def fetch(name: str, *, examples: Path, home: Path) -> str:
    """Have npm fetch an example's server as it is pinned, once; why that was not possible, empty when it is there."""
    return _fetched(examples / name, home / "demo" / name)


def _fetched(pinned: Path, folder: Path) -> str:
    if not (shutil.which("node") and shutil.which("npm")):
        return "install Node.js with npm to see it"
    pins = {name: (pinned / name).read_bytes() for name in PINS}
    done = folder / "node_modules" / ".package-lock.json"  # npm writes it last
    if done.exists() and all((folder / name).read_bytes() == content for name, content in pins.items()):
        return ""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in pins.items():
        (folder / name).write_bytes(content)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=0"]
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=FETCHING)
    except subprocess.TimeoutExpired:
        return f"npm did not fetch its server within {FETCHING:g} s"
    except (OSError, subprocess.CalledProcessError) as error:
        said = [line for line in str(getattr(error, "stderr", "") or "").splitlines() if "A complete log" not in line]
        return f"npm could not fetch its server: {said[-1].removeprefix('npm error ') if said else error}"
    return ""
