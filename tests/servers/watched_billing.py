"""The billing example's own server, watched from inside: copied into its plugin's folder by the drills.

`journal.jsonl` in the state folder gets a line when a call begins and when it ends. While a call is being made, the
file of its key is locked: the kernel frees it when the process dies, so a call that begins while another one of its
key is still being made anywhere is caught, and its line says `"alone": false`.
"""

import argparse
import fcntl
import hashlib
import signal
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from billing_ledger import Ledger, append_durably
from billing_server import KEY, build


class Watch:
    """The journal of one state folder."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._keys = ledger.folder / "keys"
        self._keys.mkdir(parents=True, exist_ok=True)

    async def __call__(self, ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        """Around every message from the studio."""
        if ctx.method != "tools/call":
            return await call_next(ctx)
        key = str((ctx.meta or {}).get(KEY, ""))
        with (self._keys / hashlib.sha256(key.encode()).hexdigest()).open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                alone = True
            except BlockingIOError:
                alone = False
            self._note({"key": key, "what": "begun", "alone": alone})
            try:
                return await call_next(ctx)
            finally:
                self._note({"key": key, "what": "ended"})

    def _note(self, line: dict[str, Any]) -> None:
        with self._ledger.locked():
            append_durably(self._ledger.folder / "journal.jsonl", line | {"at": time.monotonic()})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument(
        "--forget-keys", action="store_true", help="say that the key is honoured, and do not look at it"
    )
    parser.add_argument("--stay", action="store_true", help="neither leave when stdin closes nor on SIGTERM")
    words = parser.parse_args()
    if words.forget_keys:
        Ledger.under_key = lambda _self, _key: None  # type: ignore[method-assign]
    if words.stay:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    kept = Ledger(words.state)
    server = build(kept)
    server.middleware.append(Watch(kept))
    try:
        server.run()
    finally:
        if words.stay:
            threading.Event().wait()
