"""What happened in the shop, one JSON line each, so that a person or a test can see what a stopped call left behind."""

import fcntl
import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Journal:
    """The journal of one state folder."""

    folder: Path

    @property
    def path(self) -> Path:
        """Where the lines are."""
        return self.folder / "journal.jsonl"

    def write(self, event: str, what: str = "") -> None:
        """Append one line; several threads and servers may do so at once."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(json.dumps({"event": event, "what": what}, ensure_ascii=False) + "\n")
