"""Reading a pack that anybody may have made: everything is checked before anything is given out (RULES D3).

The directory at its end, the header before each file and the files themselves must tell one story and leave no byte
over. Whatever a program that unpacks could be talked into is refused by the entry's name: nothing is passed over.
Memory is bounded by the limits of a plugin, never by what the pack says of itself.
"""

import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from base.portable import clashes
from catalog.rules.manifest import MANIFEST
from catalog.rules.pack_directory import Entry, Notes, Source, directory_of, entries_of, extra_troubles, name_of
from catalog.rules.packs import DEFLATED, LOCAL, LOCAL_SIGN, manifests, nested

_PIECE: Final = 64 * 1024


def read_pack(source: Source, pack: str) -> dict[str, bytes]:
    """The files of the pack called `pack`, by their paths. Raises `BadPlugin`, each problem naming its entry."""
    notes = Notes(pack)
    directory_at, count, directory = directory_of(source, notes)
    entries = list(entries_of(directory, count, notes))
    notes.end()
    entries = [_with_header(entry, source, directory_at, notes) for entry in entries]
    notes.end()
    _refuse_lies_of_place(entries, directory_at, notes)
    for path, why in clashes(entry.name for entry in entries):
        notes.add(path, why.message, why.fix)
    paths = {entry.name: None for entry in entries if not entry.is_folder}
    notes.problems += manifests(paths)
    if MANIFEST not in paths:
        inside = next((path.rpartition("/")[0] for path in paths if path.endswith(f"/{MANIFEST}")), "")
        there = f"; there is one in {inside}/, so pack that folder's content" if inside else ""
        notes.add("", f"has no {MANIFEST} at its top{there}")
    notes.end()
    files: dict[str, bytes] = {}
    for entry in entries:
        if not entry.is_folder and (content := _content(entry, source, notes)) is not None:
            files[entry.name] = content
    notes.end()
    return files


def _with_header(entry: Entry, source: Source, directory_at: int, notes: Notes) -> Entry:
    """The entry with the place of its content. Its own header must say what the directory says of it."""
    header = source.read(entry.header_at, LOCAL.size) if entry.header_at + LOCAL.size <= directory_at else b""
    if len(header) < LOCAL.size or not header.startswith(LOCAL_SIGN):
        notes.add(entry.name, "is not where the directory says")
        return entry
    _, _, flags, method, _, _, crc, packed, size, name_length, extra_length = LOCAL.unpack(header)
    beside = source.read(entry.header_at + LOCAL.size, name_length + extra_length)
    said = (flags, method, crc, packed, size, beside[:name_length])
    if said != (entry.flags, entry.method, entry.crc, entry.packed, entry.size, entry.raw):
        other = name_of(beside[:name_length], flags)
        called = f" (there it is called {other})" if beside[:name_length] != entry.raw else ""
        notes.add(entry.name, f"is described otherwise by its own header than by the directory{called}")
    for message, fix in extra_troubles(beside[name_length:]):
        notes.add(entry.name, message, fix)
    data_at = entry.header_at + LOCAL.size + name_length + extra_length
    return replace(entry, data_at=data_at)


def _refuse_lies_of_place(entries: list[Entry], directory_at: int, notes: Notes) -> None:
    """Each file follows the one before, from the first byte to the directory: nothing lies in another, or hidden."""
    ends, before = 0, ""
    for entry in sorted(entries, key=lambda entry: entry.header_at):
        if entry.header_at < ends:
            notes.add(entry.name, f"lies inside {before}: the two overlap")
        elif entry.header_at > ends:
            notes.add(entry.name, "comes after bytes that belong to no file")
        ends, before = max(ends, entry.ends_at), entry.name
    if ends > directory_at:
        notes.add(before, "reaches into the directory")
    elif ends < directory_at:
        notes.add(before, "is followed by bytes that belong to no file")


def _content(entry: Entry, source: Source, notes: Notes) -> bytes | None:
    content = bytearray()
    try:
        for piece in _inflated(entry, source):
            content += piece
            if len(content) > entry.size:
                notes.add(entry.name, f"unfolds to more than the {entry.size:,} bytes that it says")
                return None
    except zlib.error:
        notes.add(entry.name, "is damaged: it cannot be unfolded")
        return None
    except _LeftOver:
        notes.add(entry.name, "hides bytes behind the end of its content")
        return None
    except _CutOff:
        notes.add(entry.name, "is cut off: its content has no end")
        return None
    if len(content) < entry.size:
        notes.add(entry.name, f"is cut off: {len(content):,} bytes of the {entry.size:,} that it says")
    elif zlib.crc32(content) != entry.crc:
        notes.add(entry.name, "is damaged: its checksum is another")
    elif (problem := nested(entry.name, bytes(content[:300]))) is not None:
        notes.problems.append(problem)
    else:
        return bytes(content)
    return None


class _LeftOver(ValueError):
    """A compressed file ends before the bytes that are said to be its own."""


class _CutOff(ValueError):
    """A compressed file has no end."""


def _inflated(entry: Entry, source: Source) -> Iterator[bytes]:
    """The content in pieces, never more than a piece at a time, and one piece more than it should be at most."""
    unfold = zlib.decompressobj(-zlib.MAX_WBITS) if entry.method == DEFLATED else None
    for at in range(entry.data_at, entry.ends_at, _PIECE):
        piece = source.read(at, min(_PIECE, entry.ends_at - at))
        if unfold is None:
            yield piece
            continue
        while piece:
            if unfold.eof:
                raise _LeftOver
            yield unfold.decompress(piece, _PIECE)
            piece = unfold.unconsumed_tail
        if unfold.unused_data:
            raise _LeftOver
    if unfold is not None and not unfold.eof:
        yield unfold.flush()
        if not unfold.eof and entry.packed:
            raise _CutOff
