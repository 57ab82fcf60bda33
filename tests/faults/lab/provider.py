"""The fake provider: what the tools' functions act upon, in a process of its own, with a ledger nobody else writes.

    python -m tests.faults.lab.provider SOCKET LEDGER

A function opens one connection for one call and says in a line of JSON each what happens to it; every line is in the
ledger, with the time of CLOCK_MONOTONIC, before it is confirmed. A connection that closes before its function said how
it ended is `gone`: so each `received` gets exactly one of `replied`, `cancelled` and `gone`.
"""

import json
import os
import socketserver
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

ENDS = frozenset({"replied", "cancelled", "gone"})


class Ledger:
    """Appended to and never changed. Each line has its number, its time, what happened, and whose call it was."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a")
        self._lock = threading.Lock()
        self._received: Counter[str] = Counter()
        self._made: set[str] = set()
        self._lines = 0

    def write(self, who: dict[str, Any], what: str, **more: Any) -> dict[str, Any]:
        """Keep one line; what the function is told: the how manieth call of its key this is, and what was made."""
        with self._lock:
            told: dict[str, Any] = {}
            if what == "received":
                self._received[who["key"]] += 1
                told["time"] = self._received[who["key"]]
            if what == "effect" and more.pop("once", False):
                told["made"] = who["key"] not in self._made
                what = "effect" if told["made"] else "repeat"
            if what == "effect":
                self._made.add(who["key"])
            self._lines += 1
            line = {"n": self._lines, "at": time.monotonic(), "what": what, **who, **more, **told}
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()
            return told


class Functions(socketserver.StreamRequestHandler):
    """One call of one function."""

    server: "Provider"

    def handle(self) -> None:
        """Keep each line and confirm it."""
        who: dict[str, Any] = {}
        ended = True
        try:
            for raw in self.rfile:
                said = json.loads(raw)
                what = said.pop("what")
                if what == "received":
                    who, said, ended = said, {}, False
                told = self.server.ledger.write(who, what, **said)
                ended = ended or what in ENDS
                self.wfile.write(json.dumps(told).encode() + b"\n")
        except OSError:  # it died while it was told
            pass
        finally:
            if not ended:
                self.server.ledger.write(who, "gone")


class Provider(socketserver.ThreadingUnixStreamServer):
    """Listens on a socket that everybody may use: sandboxed servers run as nobody."""

    daemon_threads = True
    request_queue_size = 200

    def __init__(self, path: Path, ledger: Ledger) -> None:
        self.ledger = ledger
        os.chdir(path.parent)  # a socket's path may have about a hundred letters only
        super().__init__(path.name, Functions)
        path.chmod(0o777)


if __name__ == "__main__":
    with Provider(Path(sys.argv[1]), Ledger(Path(sys.argv[2]))) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        print("ready", flush=True)
        sys.stdin.read()  # it ends with whoever started it, however that ended
