"""Seeing what a function did in the world: by a file of lines, rows of a table, a program, or the files themselves."""

import hashlib
import json
import os
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from catalog.rules.drill_file import Effects
from catalog.rules.templates import Values, fill_text

PATIENCE: Final = 30.0  # seconds an author's program may take
MOST: Final = 64 * 1024 * 1024  # bytes of a file that are looked at


class CannotObserve(Exception):
    """Effects cannot be seen; the message is one sentence with the way out."""


@dataclass(frozen=True, slots=True)
class Observer:
    """Looks for the effects of one function whose state is in `home`. `passed_over` are files that are no effect."""

    effects: Effects
    home: Path
    cwd: Path
    wanted: Mapping[str, Any]
    passed_over: frozenset[Path] = frozenset()

    def look(self) -> Counter[str]:
        """Everything that counts, now. Raises `CannotObserve`."""
        return Counter(line for line in self._lines() if self._counts(line))

    def leave_a_mark(self) -> bool:
        """Make an effect ourselves, for a control where nothing of the tool writes; false where we cannot."""
        if self.effects.sqlite or self.effects.program:
            return False
        mark = self._path(self.effects.file) if self.effects.file else self.home / "oz0-drill-mark"
        mark.parent.mkdir(parents=True, exist_ok=True)
        with mark.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"oz0": "a mark of the drill", **self.wanted}) + "\n")
        return True

    def _lines(self) -> list[str]:
        if self.effects.file:
            path = self._path(self.effects.file)
            return path.read_text("utf-8", "replace").splitlines() if path.is_file() else []
        if self.effects.sqlite:
            return self._rows(self._path(self.effects.sqlite))
        if self.effects.program:
            return self._printed()
        return self._files()

    def _rows(self, path: Path) -> list[str]:
        if not path.is_file():
            return []
        try:
            with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=10)) as db:
                found = db.execute(self.effects.query)
                names = [column[0] for column in found.description or ()]
                return [json.dumps(dict(zip(names, row, strict=True)), default=repr) for row in found.fetchall()]
        except sqlite3.Error as error:
            raise CannotObserve(f"the query of `effects` cannot be asked of {path.name}: {error}") from error

    def _printed(self) -> list[str]:
        argv = [fill_text(word, Values(home=str(self.home))) for word in self.effects.program]
        argv = [sys.executable, *argv[1:]] if argv[0] == "python" else argv
        try:
            done = subprocess.run(argv, cwd=self.cwd, capture_output=True, timeout=PATIENCE, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CannotObserve(f"the program of `effects`, {argv[0]}, cannot be run: {error}") from error
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise CannotObserve(f"the program of `effects` ended with code {done.returncode}: {said[:200]}")
        return done.stdout.decode("utf-8", "replace").splitlines()

    def _files(self) -> list[str]:
        found = []
        for where, _, names in os.walk(self.home):
            for name in names:
                path = Path(where) / name
                if path not in self.passed_over and path.is_file() and path.stat().st_size <= MOST:
                    digest = hashlib.sha256(path.read_bytes()).hexdigest()
                    found.append(f"{path.relative_to(self.home).as_posix()} {digest}")
        return found

    def _counts(self, line: str) -> bool:
        if not line.strip():
            return False
        if not self.wanted:
            return True
        try:
            fields = json.loads(line)
        except ValueError:
            return False
        return isinstance(fields, dict) and all(fields.get(name) == value for name, value in self.wanted.items())

    def _path(self, text: str) -> Path:
        return Path(fill_text(text, Values(home=str(self.home))))


def changes(before: Counter[str], after: Counter[str]) -> int:
    """How many effects came, or went, between two looks."""
    return (after - before).total() + (before - after).total()
