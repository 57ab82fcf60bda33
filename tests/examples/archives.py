"""The example archive as a real process on a free port."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.examples.serving import EXAMPLES


class Archive:
    """A running archive on any free port."""

    def __init__(self, state: Path, url: str) -> None:
        self.state, self.url = state, url
        self.port = int(url.rsplit(":", 1)[1].split("/")[0])

    def pages(self) -> list[dict[str, Any]]:
        """Every page that was really read, and by which process."""
        file = self.state / "pages.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@contextmanager
def an_archive(state: Path, *, older: bool = False) -> Iterator[Archive]:
    """A running archive for one test."""
    words = ["--state", str(state), *(["--older"] if older else [])]
    script = str(EXAMPLES / "archive" / "archive_server.py")
    with subprocess.Popen([sys.executable, script, *words], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Archive(state, "http://" + process.stdout.readline().split(" at ")[1].strip())
        finally:
            process.terminate()
            process.wait(20)
