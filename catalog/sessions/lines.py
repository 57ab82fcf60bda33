"""Cutting a server's output into lines of bounded length, in time linear in what was read."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

HEAD: Final = 4096  # bytes kept of both ends of a line that is too long: enough to find whose answer it was
_HEAD_ID: Final = re.compile(
    rb'^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(?P<id>-?\d{1,18}|"[^"\\]{0,200}")\s*,'
)
_TAIL_ID: Final = re.compile(
    rb'\}\s*,\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(?P<id>-?\d{1,18}|"[^"\\]{0,200}")'
    rb'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$'
)


@dataclass(frozen=True, slots=True)
class Overlong:
    """A line longer than the limit, of which only the two ends were kept."""

    size: int
    head: bytes
    tail: bytes


class Lines:
    """Feed it chunks, get whole lines without their line ends. Keeps at most `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self._limit: Final = limit
        self._buffer = bytearray()
        self._searched = 0  # bytes of the buffer known to hold no line end
        self._skipped = 0  # bytes of the current line already thrown away
        self._head = b""

    def feed(self, chunk: bytes) -> Iterator[bytes | Overlong]:
        """The lines that `chunk` completes."""
        self._buffer += chunk
        while (end := self._buffer.find(b"\n", self._searched)) >= 0:
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            self._searched = 0
            if self._skipped or len(line) > self._limit:
                yield self._overlong(line)
            else:
                yield line.removesuffix(b"\r")
        self._searched = len(self._buffer)
        if self._searched > self._limit:
            self._skip()

    def rest(self) -> bytes:
        """What came after the last line end, at most the limit."""
        return bytes(self._buffer)

    def _skip(self) -> None:
        """Throw away the middle of a line that has passed the limit."""
        if not self._skipped:
            self._head = bytes(self._buffer[:HEAD])
        self._skipped += len(self._buffer) - HEAD
        del self._buffer[:-HEAD]
        self._searched = len(self._buffer)

    def _overlong(self, end: bytes) -> Overlong:
        found = Overlong(self._skipped + len(end), self._head or end[:HEAD], end[-HEAD:])
        self._skipped, self._head = 0, b""
        return found


def id_in_pieces(head: bytes, tail: bytes) -> int | str | None:
    """The id of a response of which only the ends could be read, when it stands at one of its ends."""
    found = _HEAD_ID.search(head) or _TAIL_ID.search(tail)
    if found is None:
        return None
    spelled = found["id"]
    return spelled[1:-1].decode("utf-8", "replace") if spelled.startswith(b'"') else int(spelled)
