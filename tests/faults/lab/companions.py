"""The lab's own processes beside a studio: started as a module of the lab, ended with the context."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.stand import ROOT


@contextmanager
def companion(home: Path, module: str, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """Run `tests.faults.lab.MODULE`, with its stderr in a log of the state folder."""
    with (home / f"{module}.log").open("w") as log:
        argv = [sys.executable, "-m", f"tests.faults.lab.{module}", *words]
        pipe = subprocess.PIPE
        process = subprocess.Popen(argv, cwd=ROOT, text=True, stdin=pipe, stdout=pipe, stderr=log)
        try:
            yield process
        finally:
            process.kill()
            process.communicate(timeout=10)
