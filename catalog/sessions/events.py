"""Cutting a `text/event-stream` into the data of its events, with bounds; a blank line may come in any pieces."""

from collections.abc import Iterator
from typing import Final

from catalog.sessions.lines import HEAD, Lines, Overlong

KNOWN: Final = (b"", b"message")


class Events:
    """Feed it chunks, get the data of whole events. An event longer than `limit` bytes comes as `Overlong`."""

    def __init__(self, limit: int) -> None:
        self._limit: Final = limit
        self._lines: Final = Lines(limit + 16)
        self._after_return = False
        self._data = bytearray()
        self._head = self._tail = self._kind = b""
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes | Overlong]:
        """The events that `chunk` completes."""
        if self._after_return and chunk[:1] == b"\n":
            chunk = chunk[1:]
        if chunk:
            self._after_return = chunk[-1:] == b"\r"
        for line in self._lines.feed(chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")):
            yield from self._line(line)

    def rest(self) -> Iterator[bytes | Overlong]:
        """The event that the stream's end left without its blank line, if there is one."""
        rest = self._lines.rest()
        if rest:
            yield from self._line(rest)
        yield from self._line(b"")

    def _line(self, line: bytes | Overlong) -> Iterator[bytes | Overlong]:
        if isinstance(line, Overlong):
            if line.head.startswith(b"data:"):
                self._add(line.head[5:].removeprefix(b" "), line.tail, line.size)
        elif not line:
            if self._size and self._kind in KNOWN:
                yield self._event()
            self._reset()
        elif line.startswith(b"data:"):
            data = line[5:].removeprefix(b" ")
            self._add(data, data[-HEAD:], len(data))
        elif line.startswith(b"event:"):
            self._kind = line[6:].strip()

    def _add(self, data: bytes, tail: bytes, size: int) -> None:
        if self._size:
            self._data += b"\n"
        self._size += size + (1 if self._size else 0)
        if self._size <= self._limit:
            self._data += data
        else:
            if not self._head:
                self._head = (bytes(self._data) + data)[:HEAD]
            self._data.clear()
        self._tail = tail

    def _event(self) -> bytes | Overlong:
        if self._head:
            return Overlong(self._size, self._head, self._tail)
        return bytes(self._data)

    def _reset(self) -> None:
        self._data = bytearray()
        self._head = self._tail = self._kind = b""
        self._size = 0
