"""A pack: a plugin's files in one file that is the same wherever and whenever it is made (RULES D3).

It is a ZIP whose entries are stored, sorted by their paths and dated 1980-01-01, so that its bytes follow from the
files alone: no clock, no owner, no umask, and no version of a compressor is in it.
"""

import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Final

from base.portable import MAX_BYTES, MAX_FILES, PACK_END, clashes, looks_secret, trouble
from catalog.rules.manifest import MANIFEST
from catalog.rules.problems import Problem

LOCAL: Final = struct.Struct("<4s5H3L2H")
CENTRAL: Final = struct.Struct("<4s6H3L5H2L")
END: Final = struct.Struct("<4s4H2LH")
LOCAL_SIGN: Final = b"PK\x03\x04"
CENTRAL_SIGN: Final = b"PK\x01\x02"
END_SIGN: Final = b"PK\x05\x06"
UTF8: Final = 0x800
STORED: Final = 0
DEFLATED: Final = 8

_VERSION: Final = 20
_MADE_BY: Final = 3 << 8 | _VERSION  # Unix
_TIME, _DATE = 0, 1 << 5 | 1  # midnight of 1 January 1980, the first moment a ZIP can name
_PLAIN_FILE: Final = 0o100644 << 16
_ARCHIVES: Final = (".zip", ".tar", ".tgz", ".gz", ".bz2", ".xz", ".zst", ".7z", ".rar", ".lz4", ".br")
_MAGIC: Final = (
    (b"PK\x03\x04", "a ZIP"),
    (b"\x1f\x8b", "a gzip file"),
    (b"BZh", "a bzip2 file"),
    (b"\xfd7zXZ\0", "an xz file"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z file"),
    (b"Rar!\x1a\x07", "a RAR file"),
)
_ZIPS_OF_THEIR_OWN: Final = (".whl", ".jar", ".docx", ".xlsx", ".pptx", ".odt", ".ods", ".epub")


def file_name(plugin: str, version: str) -> str:
    """What a plugin's pack is called."""
    return f"{plugin}-{version}{PACK_END}"


def pack(files: Mapping[str, bytes]) -> Iterator[bytes]:
    """The pack of these files, in pieces: equal files give equal bytes. `unfit` must have found nothing in them."""
    directory, at = bytearray(), 0
    for path, content in sorted(files.items()):
        name, crc, size = path.encode(), zlib.crc32(content), len(content)
        described = (UTF8, STORED, _TIME, _DATE, crc, size, size, len(name), 0)
        yield LOCAL.pack(LOCAL_SIGN, _VERSION, *described) + name
        yield content
        directory += CENTRAL.pack(CENTRAL_SIGN, _MADE_BY, _VERSION, *described, 0, 0, 0, _PLAIN_FILE, at) + name
        at += LOCAL.size + len(name) + size
    yield bytes(directory)
    yield END.pack(END_SIGN, 0, 0, len(files), len(files), len(directory), at, 0)


def parted(files: Mapping[str, bytes]) -> tuple[dict[str, bytes], list[str]]:
    """What goes into a pack, and the paths of what looks like a secret and does not."""
    secret = [path for path, content in files.items() if looks_secret(path, content)]
    return {path: content for path, content in files.items() if path not in set(secret)}, secret


def unfit(files: Mapping[str, bytes]) -> list[Problem]:
    """Why these files cannot be packed: names not every machine can hold, clashes, too much, archives, manifests."""
    found = [Problem(path, 0, "", why.message, why.fix) for path in files if (why := trouble(path)) is not None]
    found += [Problem(path, 0, "", why.message, why.fix) for path, why in clashes(files)]
    found += [problem for path, content in files.items() if (problem := nested(path, content[:300])) is not None]
    found += manifests(files)
    if len(files) > MAX_FILES:
        found.append(_too_much(sorted(files)[MAX_FILES], f"is one more than the {MAX_FILES:,} files of a plugin"))
    size = 0
    for path, content in files.items():
        if size <= MAX_BYTES < size + len(content):
            found.append(_too_much(path, f"makes it more than {MAX_BYTES // 2**20} MiB"))
        size += len(content)
    return found


def manifests(paths: Mapping[str, object]) -> list[Problem]:
    """A plugin has one manifest, at its top: a second one would be read by some and not by others."""
    of_it = [path for path in paths if path.rpartition("/")[2].casefold() == MANIFEST]
    fix = "keep one plugin in a pack, with its manifest at the top"
    return [
        Problem(path, 0, "", "is a second manifest, which could be taken for the plugin's own", fix)
        for path in of_it
        if path != MANIFEST and MANIFEST in paths
    ]


def nested(path: str, head: bytes) -> Problem | None:
    """An archive inside is opened by nobody here, so what it holds could be neither checked nor shown.

    Wheels, jars and office files are known for what they are.
    """
    name = path.casefold()
    if name.endswith(_ZIPS_OF_THEIR_OWN):
        return None
    what = next((what for magic, what in _MAGIC if head.startswith(magic)), "")
    if not what and head[257:262] == b"ustar":
        what = "a tar file"
    if not what and not name.endswith(_ARCHIVES):
        return None
    fix = "put the files themselves into the plugin's folder, or keep it elsewhere"
    return Problem(path, 0, "", f"is {what or 'an archive'} inside the pack, which nobody looks into", fix)


def _too_much(path: str, message: str) -> Problem:
    return Problem(path, 0, "", message, "keep data out of the plugin's folder")
