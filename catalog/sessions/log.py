"""The last of what a server said beside the protocol: its stderr, log notifications and stray lines (RULES C8)."""

from collections import deque
from collections.abc import Iterable
from threading import Lock
from typing import Final

from base.masking import Mask

KEPT: Final = 2**20  # bytes
LONGEST: Final = 16 * 1024  # bytes of one line


class Log:
    """A ring of lines, at most 1 MiB, without the server's own secrets. Safe to read and write from any thread."""

    def __init__(self, kept: int = KEPT, *, secrets: Iterable[str] = ()) -> None:
        self._mask: Final = Mask(secrets)
        self._kept: Final = kept
        self._lines: deque[str] = deque()
        self._size = 0
        self._lock: Final = Lock()

    def add(self, source: str, line: bytes | str) -> None:
        """Keep one line, marked by where it came from (`stderr`, `stdout`, `log`, `oz0`)."""
        text = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
        more = f"… ({len(text)} characters)" if len(text) > LONGEST else ""
        kept = f"{source}: {self._mask(text[:LONGEST])}{more}"
        with self._lock:
            self._lines.append(kept)
            self._size += len(kept.encode("utf-8", "replace"))
            while self._size > self._kept and self._lines:
                self._size -= len(self._lines.popleft().encode("utf-8", "replace"))

    def tail(self, lines: int | None = None) -> tuple[str, ...]:
        """The last lines, oldest first; all that is kept without a number."""
        with self._lock:
            every = tuple(self._lines)
        return every if lines is None else every[-lines:]
