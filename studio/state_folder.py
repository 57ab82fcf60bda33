"""Where this studio keeps its state."""

import os
from pathlib import Path


def state_folder() -> Path:
    """`OZ0_HOME`, or `.oz0` in the working folder; absolute."""
    return Path(os.environ.get("OZ0_HOME") or ".oz0").absolute()
