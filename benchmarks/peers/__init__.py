"""What the figures are measured beside: other people's programs, in an environment of their own."""

import os
import sys
from pathlib import Path

FOLDER = Path(os.environ.get("PEERS", ".peers"))


def interpreter() -> str:
    """The Python that has the peers, which `make bench-quick` installs."""
    python = FOLDER / "bin" / "python"
    if not python.exists():
        sys.exit(f"{python} is not there: `make bench-quick` makes it from benchmarks/peers/requirements.lock")
    return str(python)
