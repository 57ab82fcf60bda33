"""The one terminal: every line of every child, prefixed with who said it."""

import json
import os
import sys
import threading
from collections.abc import Callable
from typing import Final

COLOURS: Final = {"web": 36, "node": 35, "valkey": 33, "postgres": 34, "oz0": 32}
WIDTH: Final = max(map(len, COLOURS))


class Terminal:
    """Writes whole lines. Once nobody reads them any more it stays silent, and `closed` is true."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        self.closed = False

    def sink(self, name: str) -> Callable[[str], None]:
        """Where the lines of child `name` go."""
        prefix = f"{name:<{WIDTH}} | "
        if self._coloured:
            prefix = f"\033[{COLOURS.get(name, 37)}m{prefix}\033[0m"
        return lambda line: self.print(prefix + line)

    def say(self, text: str) -> None:
        """A line of the supervisor's own."""
        self.sink("oz0")(text)

    def ready(self, link: str) -> None:
        """The pages are served; `link` signs a person in."""
        self.print(link)

    def print(self, line: str) -> None:
        """One line, bare."""
        with self._lock:
            if self.closed:
                return
            try:
                sys.stdout.write(line + "\n")
                sys.stdout.flush()
            except (OSError, ValueError):
                self.closed = True


class JsonTerminal(Terminal):
    """The same for a program: an object for each line."""

    def sink(self, name: str) -> Callable[[str], None]:
        """Where the lines of child `name` go."""
        return lambda line: self.print(json.dumps({"event": "said", "by": name, "line": line}))

    def ready(self, link: str) -> None:
        """The pages are served; `link` signs a person in."""
        self.print(json.dumps({"event": "serving", "sign_in": link}))
