"""The author's terminal: what becomes of the plugin. What the studio's own parts say goes into a file."""

import json
import sys
import threading
from collections.abc import Callable
from typing import IO

from studio.supervisor.terminal import Terminal

ORDINARY = frozenset({"stopping", "stopped"})


class QuietTerminal(Terminal):
    """Shows the plugin's own lines bare, and of the supervisor what an author has to know; `log` gets all else.

    With `as_json` standard output holds JSON alone, an object a line.
    """

    def __init__(self, log: IO[str], *, as_json: bool) -> None:
        super().__init__()
        self._log = log
        self._as_json = as_json
        self._writing = threading.Lock()

    @property
    def coloured(self) -> bool:
        """Whether colours are shown."""
        return self._coloured and not self._as_json

    def sink(self, name: str) -> Callable[[str], None]:
        """Where the lines of child `name` go: into the file."""
        return lambda line: self._keep(f"{name:<8} | {line}")

    def shown(self, line: str) -> None:
        """A line of the program that follows the plugin."""
        if self._as_json and not line.startswith("{"):
            self._aside(line)
        else:
            self.print(line)

    def begin(self, folder: str, state: str, log: str) -> None:
        """What is started now, and where it keeps what it knows."""
        if self._as_json:
            self.print(json.dumps({"event": "starting", "folder": folder, "state": state, "log": log}))
        else:
            self.print(f"starting a studio for {folder}; its state is in {state}, what its parts say in {log}")

    def say(self, text: str) -> None:
        """A line of the supervisor's own: a part that ended and is started again, and the end."""
        self._keep(f"oz0      | {text}")
        if self._as_json:
            event = {"event": text} if text in ORDINARY else {"event": "studio", "said": text}
            self.print(json.dumps(event))
        else:
            self.print(f"oz0: {text}")

    def _keep(self, line: str) -> None:
        with self._writing:
            if not self._log.closed:
                self._log.write(f"{line}\n")
                self._log.flush()

    def _aside(self, line: str) -> None:
        with self._writing:
            sys.stderr.write(f"{line}\n")
