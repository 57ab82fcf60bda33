"""The ledger file: one JSON line for each thing that was done, on the disk before it is answered.

A line and the key it was made under are one write, so there is no moment in which the effect is there and the record
of its key is not. Several servers may share a ledger: every reading and writing holds the lock of the folder.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Line = dict[str, Any]


@dataclass(frozen=True)
class Ledger:
    """The files of one state folder."""

    folder: Path

    @property
    def path(self) -> Path:
        """Where the lines are."""
        return self.folder / "ledger.jsonl"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder: no other server or test reads or writes meanwhile."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def lines(self) -> list[Line]:
        """Every whole line. A last line that was cut off by a crash was never answered and does not count."""
        try:
            text = self.path.read_text()
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]

    def under_key(self, key: str) -> Line | None:
        """What was done under this key, if anything was."""
        return next((line for line in self.lines() if line["key"] == key), None) if key else None

    def append(self, line: Line) -> None:
        """Write one line and wait until the disk has it."""
        append_durably(self.path, line)


def append_durably(path: Path, line: Line) -> None:
    """Append one JSON line and wait until the disk has it, cutting off what a crash left of the line before."""
    existed = path.exists()
    with path.open("ab+") as file:
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
        file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    if not existed:
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
