"""The breaks as they are kept: a patch whose first lines say what it breaks and what catches it.

What: a sentence
Caught by: tests/….py::test_… or lab {a trial as JSON}
"""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
LAB: Final = "lab "


@dataclass(frozen=True, slots=True)
class Mutant:
    """One break."""

    name: str
    what: str
    caught_by: str
    patch: Path

    @property
    def trial(self) -> str:
        """The trial of the lab that catches it, as JSON; empty when a test does."""
        return self.caught_by.removeprefix(LAB) if self.caught_by.startswith(LAB) else ""


def mutants() -> list[Mutant]:
    """All of them. Raises `ValueError` for a patch without its two lines."""
    return [read(path) for path in sorted(FOLDER.glob("*.patch"))]


def read(path: Path) -> Mutant:
    """One patch's file."""
    head = dict(line.split(": ", 1) for line in path.read_text().split("\n\n", 1)[0].splitlines())
    if set(head) != {"What", "Caught by"}:
        raise ValueError(f"{path.name} must begin with a line “What: …” and a line “Caught by: …”, then an empty one")
    return Mutant(path.stem, head["What"], head["Caught by"], path)


def trouble(mutant: Mutant, tree: Path, *, check: bool = True) -> str:
    """Apply a patch to a tree, or only look whether it would; why it cannot be, empty when it can."""
    words = ["git", "apply", *(["--check"] if check else []), str(mutant.patch)]
    env = os.environ | {"GIT_CEILING_DIRECTORIES": str(tree.parent), "GIT_DIR": os.devnull}
    done = subprocess.run(words, cwd=tree, env=env, capture_output=True, text=True, timeout=60)
    if done.returncode == 0:
        return ""
    fix = "make the same break in the code as it is now, and keep its diff"
    return f"{mutant.patch.name} does not fit the tree any more: {done.stderr.strip()}. {fix}"
