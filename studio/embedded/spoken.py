"""The lines a child prints: handed on as they come, the last ones kept for the sentence about its end."""

import threading
from collections import deque
from collections.abc import Callable
from typing import IO, Final

KEPT: Final = 12
LONGEST: Final = 65_536  # bytes of one line; the rest becomes a line of its own
Sink = Callable[[str], None]


class Spoken:
    """Reads a stream to its end on a thread of its own."""

    def __init__(self, stream: IO[bytes], sink: Sink) -> None:
        self._stream = stream
        self._sink = sink
        self._last: deque[str] = deque(maxlen=KEPT)
        self._thread = threading.Thread(target=self._read, name="child-output", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._stream:
            while line := self._stream.readline(LONGEST):
                text = line.decode(errors="replace").rstrip("\r\n")
                self._last.append(text)
                self._sink(text)

    def last_words(self) -> str:
        """The last lines, once the stream has ended or a second has passed."""
        self._thread.join(1.0)
        return "\n".join(self._last)
