"""`make mutants`: each break is made in a copy of the tree, and what is named to catch it has to.

First all of that runs on an untouched copy, where it must pass: what fails anyway catches nothing.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.faults.mutants.patches import Mutant, mutants, trouble
from tests.repo.tree import ROOT, files

LIMIT: Final = 300.0  # seconds for each
CAUGHT: Final = 1  # how pytest and the lab end when something failed that ran
TIMES: Final = 4  # how often the lab runs a trial, side by side
CLEAN: Final = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("MAKE", "PYTEST", "DJANGO", "OZ0_", "DATABASE_", "REDIS_", "BROKER_"))
}


@contextmanager
def a_copy() -> Iterator[Path]:
    """The tree as it is, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="oz0-mutant-") as folder:
        copy = Path(folder) / "tree"
        for path in files(ROOT):
            target = copy / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
        yield copy


def run(tree: Path, *words: str) -> tuple[int, str]:
    """Run Python in a tree; how it ended, and the end of what it said."""
    argv = [sys.executable, "-m", *words]
    try:
        done = subprocess.run(
            argv, cwd=tree, env=CLEAN | {"PYTHONPATH": str(tree)}, capture_output=True, text=True, timeout=LIMIT
        )
    except subprocess.TimeoutExpired:
        return -1, f"it took longer than {LIMIT:g} s"
    return done.returncode, "\n".join((done.stdout + done.stderr).splitlines()[-30:])


def catch(tree: Path, mutant: Mutant) -> tuple[int, str]:
    """Run what is named to catch it."""
    if mutant.trial:
        report = str(tree / "chaos")
        return run(tree, "tests.faults.lab.chaos", "--trial", mutant.trial, "--times", str(TIMES), "--report", report)
    return run(tree, "pytest", "-q", "-x", "-p", "no:cacheprovider", mutant.caught_by)


def main() -> int:
    """Make each break; fail when one gets through."""
    chosen = [mutant for mutant in mutants() if not sys.argv[1:] or mutant.name in sys.argv[1:]]
    with a_copy() as tree:
        stale = [why for mutant in chosen if (why := trouble(mutant, tree))]
        if stale:
            print(*stale, sep="\n")
            return 2
        named = sorted({mutant.caught_by for mutant in chosen if not mutant.trial})
        code, said = run(tree, "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *named) if named else (0, "")
        for trial in sorted({mutant.trial for mutant in chosen if mutant.trial}):
            if code == 0:
                code, said = catch(tree, next(mutant for mutant in chosen if mutant.trial == trial))
        if code != 0:
            print("what is named to catch the breaks fails without any:", said, sep="\n")
            return 2
    caught = 0
    for mutant in chosen:
        began = time.monotonic()
        with a_copy() as tree:
            why = trouble(mutant, tree, check=False)
            assert not why, why
            code, said = catch(tree, mutant)
        caught += code == CAUGHT
        verdict = "caught" if code == CAUGHT else f"NOT CAUGHT, it ended with {code}:\n{said}\n"
        print(f"{mutant.name}: {verdict} ({time.monotonic() - began:.0f} s). {mutant.what}", flush=True)
    print(f"{caught} of {len(chosen)}")
    return 0 if caught == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
