"""Two transactions, interleaved on purpose: one is held at a chosen line while another runs."""

import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.db import connection

PATIENCE = 20.0  # seconds; every wait ends


class Side:
    """One of the two transactions, in a thread and on a connection of its own."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self._act = act
        self.result: Any = None
        self.error: BaseException | None = None
        self.ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self.result = self._act()
        except BaseException as error:
            self.error = error
        finally:
            connection.close()
            self.ended.set()

    def start(self) -> "Side":
        """Begin."""
        self._thread.start()
        return self

    def join(self) -> Any:
        """Wait for the end; returns the result or raises what was raised."""
        assert self.ended.wait(PATIENCE), "a transaction did not end"
        self._thread.join(PATIENCE)
        if self.error is not None:
            raise self.error
        return self.result

    @property
    def thread(self) -> threading.Thread:
        """The thread it runs in."""
        return self._thread


class Pause:
    """Holds the first `holds` callers of a function, before or after it, until `go`."""

    def __init__(
        self, patch: pytest.MonkeyPatch, module: Any, name: str, *, after: bool = False, holds: int = 1
    ) -> None:
        self._reached = threading.Semaphore(0)
        self._go = threading.Event()
        self._left = holds
        self._lock = threading.Lock()
        real = getattr(module, name)

        def held(*args: Any, **kwargs: Any) -> Any:
            if after:
                result = real(*args, **kwargs)
                self._hold()
                return result
            self._hold()
            return real(*args, **kwargs)

        patch.setattr(module, name, held)

    def _hold(self) -> None:
        with self._lock:
            mine = self._left > 0
            self._left -= 1
        if mine:
            self._reached.release()
            assert self._go.wait(PATIENCE), "nobody let the paused transaction go on"

    def reached(self, times: int = 1) -> None:
        """Wait until this many callers are held."""
        for _ in range(times):
            assert self._reached.acquire(timeout=PATIENCE), "the line was never reached"

    def go(self) -> None:
        """Let everyone go on."""
        self._go.set()


def until_blocked_or_ended(admin: psycopg.Connection[Any], side: Side) -> bool:
    """Wait until `side` has ended (False) or some transaction waits for a lock (True)."""
    tick = threading.Event()
    for _ in range(int(PATIENCE / 0.02)):
        if side.ended.is_set():
            return False
        waiting = admin.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()
        if waiting and waiting[0]:
            return True
        tick.wait(0.02)
    raise AssertionError("the other side neither ended nor waited for a lock")


def told(name: str, counts: Counter[str]) -> None:
    """The figures of many races, for whoever runs them at length with `-s`."""
    said = ", ".join(f"{count:,} {what}" for what, count in counts.most_common())
    sys.stdout.write(f"{name}: {sum(counts.values()):,}: {said}\n")
