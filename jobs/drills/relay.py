"""Stands between the node and a plugin's server in a drill, and does to the server what it is told.

    python -I -S relay.py FOLDER -- PROGRAM WORD…

Lines go through unchanged. FOLDER holds `orders`, a pipe that orders are written to, one JSON object a line, and
`seen.jsonl`, to which the relay adds what it saw with the machine's monotonic time. An order is `{"at": …, "do": …}`:

- `at`: `now`, or the next `request`, `reply` or `progress` of a `tools/call`; what it is done at is not handed on;
- `do`: `kill`, `term`, `eof` (close the server's input), or `drop` (only do not hand on).

It uses the standard library alone: it is started for each server of a drill, and has to be up at once.
"""

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

CHUNK = 256 * 1024


class Relay:
    """One server and the lines to and from it."""

    def __init__(self, folder: str, argv: list[str]) -> None:
        self.seen = open(os.path.join(folder, "seen.jsonl"), "a", buffering=1, encoding="utf-8")  # noqa: PTH118, PTH123, SIM115
        self.orders = os.open(os.path.join(folder, "orders"), os.O_RDWR | os.O_NONBLOCK)  # noqa: PTH118
        self.server = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.waiting: dict[str, str] = {}  # what to do, by what it is done at
        self.calls: set[str] = set()
        self.rest: dict[int, bytes] = {}

    def run(self) -> int:
        """Until the server has ended; its exit code."""
        assert self.server.stdin is not None  # noqa: S101
        assert self.server.stdout is not None  # noqa: S101
        theirs, from_server = sys.stdin.fileno(), self.server.stdout.fileno()
        self.note("started", pid=self.server.pid)
        watched = selectors.DefaultSelector()
        for file in (self.orders, theirs, from_server):
            watched.register(file, selectors.EVENT_READ)
        while True:
            ready = {key.fd for key, _ in watched.select()}
            if self.orders in ready:  # before the lines: an order is always written before the call it is for
                for line in self.lines(self.orders) or ():
                    self.ordered(json.loads(line))
            if theirs in ready:
                lines = self.lines(theirs)
                for line in lines or ():
                    self.to_server(line)
                if lines is None:
                    watched.unregister(theirs)
                    self.close_input()
            if from_server in ready:
                lines = self.lines(from_server)
                for line in lines or ():
                    self.from_server(line)
                if lines is None:
                    code = self.server.wait()
                    self.note("ended", code=code)
                    return code

    def lines(self, file: int) -> list[bytes] | None:
        """The whole lines that have come, None at the end."""
        try:
            chunk = os.read(file, CHUNK)
        except BlockingIOError:
            return []
        if not chunk:
            return None
        *whole, self.rest[file] = (self.rest.get(file, b"") + chunk).split(b"\n")
        return whole

    def to_server(self, line: bytes) -> None:
        """A line of the node's."""
        message = parsed(line) if b'"tools/call"' in line or b"notifications/cancelled" in line else {}
        if message.get("method") == "tools/call":
            self.calls.add(str(message.get("id")))
            self.note("request", id=message.get("id"))
            if self.did("request"):
                return
        elif message.get("method") == "notifications/cancelled":
            self.note("cancel", id=message["params"].get("requestId"))
        if self.server.stdin is None or self.server.stdin.closed:
            return
        with suppress(OSError):  # it is gone, and its end is on its way
            write_all(self.server.stdin.fileno(), line + b"\n")

    def from_server(self, line: bytes) -> None:
        """A line of the server's."""
        message = parsed(line)
        if "method" not in message and str(message.get("id")) in self.calls:
            self.calls.discard(str(message["id"]))
            self.note("reply", id=message["id"], error="error" in message)
            if self.did("reply"):
                return
        elif message.get("method") == "notifications/progress":
            self.note("progress")
            if self.did("progress"):
                return
        elif message.get("method") == "notifications/oz0/stopped":
            self.note("stopped", id=(message.get("params") or {}).get("requestId"))
        write_all(sys.stdout.fileno(), line + b"\n")

    def ordered(self, order: dict[str, str]) -> None:
        """Take an order."""
        if order["at"] == "now":
            self.act(order["do"])
        else:
            self.waiting[order["at"]] = order["do"]

    def did(self, at: str) -> bool:
        """Do what was ordered for this, once."""
        do = self.waiting.pop(at, "")
        if do:
            self.act(do)
        return bool(do)

    def act(self, do: str) -> None:
        """Do it to the server."""
        self.note("did", what=do, open=len(self.calls))
        if do == "kill":
            self.server.kill()
        elif do == "term":
            self.server.terminate()
        elif do == "eof":
            self.close_input()

    def close_input(self) -> None:
        """End the server's input; twice is no error."""
        if self.server.stdin is not None and not self.server.stdin.closed:
            self.server.stdin.close()

    def note(self, event: str, **more: object) -> None:
        """Add to what was seen."""
        self.seen.write(json.dumps({"event": event, "at": time.monotonic(), **more}) + "\n")


def write_all(file: int, data: bytes) -> None:
    """Every byte, waiting as long as it takes."""
    while data:
        data = data[os.write(file, data) :]


def parsed(line: bytes) -> dict[str, Any]:
    """The message, empty when it is none."""
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


if __name__ == "__main__":
    # a signal to the group is for the server; a handler, unlike "ignore", is not handed down to it
    signal.signal(signal.SIGTERM, lambda *_: None)
    _, where, _, *words = sys.argv
    ended = Relay(where, words).run()
    if ended < 0:
        if -ended != signal.SIGKILL:
            signal.signal(-ended, signal.SIG_DFL)
        os.kill(os.getpid(), -ended)
    sys.exit(ended)
