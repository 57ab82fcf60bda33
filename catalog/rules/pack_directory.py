"""A pack's directory, at its end: whether it is one, and what can be told from it alone (RULES D3)."""

import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from base.portable import MAX_BYTES, MAX_FILES, MAX_PACK, trouble
from catalog.rules.packs import CENTRAL, CENTRAL_SIGN, DEFLATED, END, END_SIGN, LOCAL_SIGN, STORED, UTF8, nested
from catalog.rules.problems import BadPlugin, Problem

PACK_IT: Final = "make it with `oz0 plugin pack`"
MOST_TOLD: Final = 50  # problems of one pack
RATIO: Final = 100  # how many times its stored size a file of any size may unfold to
SMALL: Final = 256 * 1024  # bytes up to which the ratio is nobody's business: blanks shrink well
_LARGEST_DIRECTORY: Final = 8 * 1024 * 1024
_HARMLESS: Final = UTF8 | 0b110  # the two bits say how hard the compressor tried
_METHODS: Final = {
    1: "shrunk",
    6: "imploded",
    9: "Deflate64",
    12: "bzip2",
    14: "LZMA",
    93: "Zstandard",
    95: "XZ",
    99: "AES",
}
_KINDS: Final = {
    stat.S_IFLNK: "a link, which could lead out of the plugin's folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}
_EXTRAS: Final = {
    0x0001: "gives other sizes in a ZIP64 part",
    0x000D: "is a link of Unix, which could lead out of the plugin's folder",
    0x756E: "is a link of Unix, which could lead out of the plugin's folder",
    0x7075: "gives itself a second name",
    0x0017: "is encrypted",
    0x9901: "is encrypted",
}


@dataclass(frozen=True, slots=True)
class Source:
    """The bytes of a pack, wherever they lie: `read(at, length)` gives at most that many."""

    size: int
    read: Callable[[int, int], bytes]


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry as the directory tells of it; `data_at` is where its content begins, once its header was read."""

    name: str
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    header_at: int
    mode: int
    raw: bytes
    extra: bytes
    data_at: int = 0

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder, by its name."""
        return self.name.endswith("/")

    @property
    def ends_at(self) -> int:
        """Where its content ends."""
        return self.data_at + self.packed


@dataclass(slots=True)
class Notes:
    """The problems of one pack, each by the name of its entry, or by the pack's own."""

    pack: str
    problems: list[Problem] = field(default_factory=list)

    def add(self, entry: str, message: str, fix: str = PACK_IT) -> None:
        """Note a problem of an entry."""
        self.problems.append(Problem(entry or self.pack, 0, "", message, fix))

    def refuse(self, message: str, fix: str = PACK_IT) -> BadPlugin:
        """A problem of the whole pack, to be raised at once with those noted before."""
        self.add("", message, fix)
        return BadPlugin(self.problems[:MOST_TOLD])

    def end(self) -> None:
        """Raise `BadPlugin` when there is any problem."""
        if self.problems:
            raise BadPlugin(self.problems[:MOST_TOLD])


def directory_of(source: Source, notes: Notes) -> tuple[int, int, bytes]:
    """Where the directory at the end begins, how many entries it is said to have, and its bytes."""
    if source.size > MAX_PACK:
        raise notes.refuse(f"is larger than {MAX_PACK // 2**20} MiB", "keep data out of the plugin's folder")
    head = source.read(0, 300)
    if not head.startswith((LOCAL_SIGN, END_SIGN)):
        other = nested("", head) if not head.startswith(b"PK") else None
        what = other.message.partition(" inside")[0] if other is not None else "does not begin as a ZIP does"
        raise notes.refuse(f"{what}, and a pack is a plain ZIP")
    if source.size < END.size or not (end := source.read(source.size - END.size, END.size)).startswith(END_SIGN):
        tail = source.read(max(0, source.size - 0x10000 - END.size), 0x10000 + END.size)
        ends = tail.rfind(END_SIGN)
        whole = ends >= 0 and len(tail) - ends > END.size
        raise notes.refuse("has bytes or a comment after its end" if whole else "is cut off: its end is not there")
    _, disk, first_disk, here, count, length, at, comment = END.unpack(end)
    if 0xFFFF in (disk, first_disk, here, count) or 0xFFFFFFFF in (length, at):
        raise notes.refuse("is a ZIP64, which no plugin is large enough to need")
    if source.size >= END.size + 20 and source.read(source.size - END.size - 20, 4) == b"PK\x06\x07":
        raise notes.refuse("is a ZIP64, which no plugin is large enough to need")
    if disk or first_disk or here != count or comment:
        raise notes.refuse("says that it is one part of several, or that more comes after its end")
    if at + length != source.size - END.size:
        raise notes.refuse("lies about where its directory is")
    if length > _LARGEST_DIRECTORY:
        raise notes.refuse("has a directory larger than any plugin needs")
    return at, count, source.read(at, length)


def entries_of(directory: bytes, count: int, notes: Notes) -> Iterator[Entry]:
    """The entries of the directory; what can be told from it alone is noted."""
    at, number, total, last = 0, 0, 0, len(directory)
    while at < last:
        if at + CENTRAL.size > last or not directory.startswith(CENTRAL_SIGN, at):
            raise notes.refuse(f"has a directory that cannot be read after entry {number}")
        (_, _, _, flags, method, _, _, crc, packed, size, name_length, extra_length, comment_length, disk, _,
         attributes, header_at) = CENTRAL.unpack_from(directory, at)  # fmt: skip
        name_at = at + CENTRAL.size
        extra_at = name_at + name_length
        at = extra_at + extra_length + comment_length
        if at > last:
            raise notes.refuse(f"has a directory that is cut off in entry {number + 1}")
        raw, number = directory[name_at:extra_at], number + 1
        name = name_of(raw, flags)
        extra = directory[extra_at : extra_at + extra_length]
        entry = Entry(name, flags, method, crc, packed, size, header_at, attributes >> 16, raw, extra)
        if number > MAX_FILES:
            said = f"is one more than the {MAX_FILES:,} entries a pack may have"
            notes.add(name, said, "keep data out of the plugin's folder")
            return
        if disk:
            notes.add(name, "is said to lie on another disk")
        total += size
        if total - size <= MAX_BYTES < total:
            said = f"makes it more than {MAX_BYTES // 2**20} MiB, by what it says of its size"
            notes.add(name, said, "keep data out of the plugin's folder")
        for said, fix in _troubles(entry):
            notes.add(name, said, fix)
        if len(notes.problems) >= MOST_TOLD:
            return
        yield entry
    if number != count:
        raise notes.refuse(f"says that it holds {count:,} entries, and its directory has {number:,}")


def name_of(raw: bytes, flags: int) -> str:
    """The entry's name. What is no UTF-8 keeps its bytes as lone surrogates, which no name may have."""
    return raw.decode("utf-8" if flags & UTF8 else "ascii", "surrogateescape")


def _troubles(entry: Entry) -> Iterator[tuple[str, str]]:
    if (why := trouble(entry.name.removesuffix("/"))) is not None:
        yield why.message, why.fix
    if entry.flags & 0b1 or entry.flags & 0x2040 or entry.method == 99:
        yield "is encrypted", "pack it unencrypted"
    elif entry.method not in (STORED, DEFLATED):
        yield f"is packed by {_METHODS.get(entry.method, f'method {entry.method}')}, which is not read", PACK_IT
    if entry.flags & 0b1000:
        yield "gives its size only after its content", PACK_IT
    elif entry.flags & ~(_HARMLESS | 0x2041):
        yield f"has flags that no pack has ({entry.flags:#06x})", PACK_IT
    kind = stat.S_IFMT(entry.mode)
    if kind in _KINDS:
        yield f"is {_KINDS[kind]}", "put plain files into the plugin's folder"
    elif kind not in (0, stat.S_IFREG, stat.S_IFDIR) or (kind == stat.S_IFDIR) > entry.is_folder:
        yield "is neither a plain file nor a folder", "put plain files into the plugin's folder"
    if entry.mode & 0o7000 and not entry.is_folder:
        yield "asks to run with another's rights (setuid, setgid or sticky)", "take those rights from it"
    yield from extra_troubles(entry.extra)
    if entry.is_folder and (entry.size or entry.packed):
        yield "is a folder with content of its own", PACK_IT
    elif entry.method == STORED and entry.size != entry.packed:
        yield f"says that it is {entry.packed:,} bytes and {entry.size:,} at once", PACK_IT
    elif entry.size > max(SMALL, RATIO * entry.packed):
        yield f"would unfold from {entry.packed:,} bytes to {entry.size:,}: a bomb", "pack what it is made from"


def extra_troubles(extra: bytes) -> Iterator[tuple[str, str]]:
    """What is wrong with the parts that stand beside an entry's name: message and fix."""
    at = 0
    while at < len(extra):
        kind, length = int.from_bytes(extra[at : at + 2], "little"), int.from_bytes(extra[at + 2 : at + 4], "little")
        at += 4 + length
        if at > len(extra):
            yield "has a part beside its name that cannot be read", PACK_IT
        elif kind in _EXTRAS:
            yield _EXTRAS[kind], PACK_IT
