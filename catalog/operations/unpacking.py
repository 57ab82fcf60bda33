"""Opening a pack's file. It is read piece by piece, and nothing of it is written before all of it was looked at."""

from pathlib import Path
from typing import Final, Protocol

from catalog.rules.pack_directory import Source
from catalog.rules.pack_reading import read_pack
from catalog.rules.problems import BadPlugin, Problem

_NOT_THERE: Final = "name a pack, as `oz0 plugin pack` writes it"


class Opened(Protocol):
    """A file that is open for reading bytes: one of the disk's, or one that a browser sent."""

    def seek(self, at: int, whence: int = 0, /) -> int:
        """Go there; returns where that is."""

    def read(self, length: int = -1, /) -> bytes:
        """At most that many bytes from there on."""


def files_in(file: Opened, name: str) -> dict[str, bytes]:
    """The files of the pack in an open file, which people know as `name`. Raises `BadPlugin`."""
    size = file.seek(0, 2)

    def read(at: int, length: int) -> bytes:
        file.seek(at)
        return file.read(length)

    return read_pack(Source(size, read), name)


def files_in_pack(path: Path) -> dict[str, bytes]:
    """The files of the pack at `path`. Raises `BadPlugin`."""
    try:
        with path.open("rb") as file:
            return files_in(file, path.name)
    except OSError as error:
        why = f"cannot be read: {error.strerror or error}"
        raise BadPlugin([Problem(path.name, 0, "", why, _NOT_THERE)]) from error
