"""Packs that no honest program makes, written byte by byte, each with what it must be refused for."""

import gzip
import io
import random
import stat
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from base.portable import MAX_PACK
from catalog.rules.packs import CENTRAL, CENTRAL_SIGN, END, END_SIGN, LOCAL, LOCAL_SIGN, UTF8
from tests.rules.good_pack import MANIFEST_TEXT

NOISE = random.Random(7).randbytes(64 * 1024)
PACK = "some.oz0.zip"  # what the pack itself is called


@dataclass
class E:
    """One entry, and what it lies about. Left alone, it is honest and stored."""

    name: str | bytes
    content: bytes = b"x"
    deflate: bool = False
    method: int | None = None
    flags: int = UTF8
    mode: int = stat.S_IFREG | 0o644
    crc: int | None = None
    size: int | None = None
    packed: int | None = None
    raw: bytes | None = None
    extra: bytes = b""
    disk: int = 0
    at: int | None = None
    after: bytes = b""
    local: dict[str, Any] = field(default_factory=dict)


def deflated(content: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(content) + packer.flush()


def built(*entries: E, manifest: bool = True, before: bytes = b"", **end: Any) -> bytes:
    """The pack. `end` may lie about `count`, `at` and `length` of the directory, and add a `comment` and a `tail`."""
    whole, directory = bytearray(before), bytearray()
    for one in (*([E("oz0-plugin.yaml", MANIFEST_TEXT)] if manifest else []), *entries):
        name = one.name if isinstance(one.name, bytes) else one.name.encode("utf-8", "surrogatepass")
        raw = one.raw if one.raw is not None else deflated(one.content) if one.deflate else one.content
        said = {
            "flags": one.flags,
            "method": one.method if one.method is not None else 8 if one.deflate else 0,
            "crc": one.crc if one.crc is not None else zlib.crc32(one.content),
            "packed": one.packed if one.packed is not None else len(raw),
            "size": one.size if one.size is not None else len(one.content),
        }
        own = said | {"name": name, "extra": one.extra} | one.local
        at = one.at if one.at is not None else len(whole)
        sizes = [own[key] for key in ("crc", "packed", "size")]
        whole += LOCAL.pack(
            LOCAL_SIGN, 20, own["flags"], own["method"], 0, 33, *sizes, len(own["name"]), len(own["extra"])
        )
        whole += own["name"] + own["extra"] + raw + one.after
        sizes = [said[key] for key in ("crc", "packed", "size")]
        lengths = (len(name), len(one.extra), 0, one.disk, 0)
        directory += CENTRAL.pack(
            CENTRAL_SIGN, 0x0314, 20, said["flags"], said["method"], 0, 33, *sizes, *lengths, one.mode << 16, at
        )
        directory += name + one.extra
    count = end.get("count", len(entries) + manifest)
    at = end.get("at", len(whole))
    whole += directory + end.get("locator", b"")
    comment = end.get("comment", b"")
    whole += END.pack(
        END_SIGN, 0, 0, count & 0xFFFF, count & 0xFFFF, end.get("length", len(directory)), at, len(comment)
    )
    return bytes(whole + comment + end.get("tail", b""))


def extra(kind: int, content: bytes = b"") -> bytes:
    return kind.to_bytes(2, "little") + len(content).to_bytes(2, "little") + content


def named() -> Iterator[tuple[str, bytes, str, str]]:
    """Names: what was tried, the pack, the entry to be named, and words of the reason."""
    for name, why in (
        ("../x", "leads out"),
        ("a/../../b", "leads out"),
        ("/etc/cron.d/x", "absolute"),
        ("C:\\x", "backslash"),
        ("C:x", "drive letter"),
        ("..\\..\\x", "backslash"),
        ("a\0b", "zero byte"),
        ("a\nb", "control character"),
        ("\x1b[2J", "control character"),
        ("a//b", "empty part"),
        ("./a", "empty part"),
        ("con", "device of Windows"),
        ("aux.py", "device of Windows"),
        ("a/COM1.txt", "device of Windows"),
        ("ends.", "Windows drops"),
        ("ends ", "Windows drops"),
        ("x.txt:hidden", "Windows does not take"),
        ("a*b", "Windows does not take"),
        ("a\u202eb", "invisible"),
        ("a\u200bb", "invisible"),
        ("caf\u0065\u0301", "spelled otherwise"),
        ("n" * 121, "longer than 120"),
        ("/".join(["folder"] * 40), "longer than 200"),
        ("/".join("a" * 17), "deeper than 16"),
    ):
        yield f"name {name[:20]!r}", built(E(name)), name, why
    yield "no name", built(E("")), PACK, "has no name"
    broken = built(E(b"\xff\xfe"))
    yield "name that is no UTF-8", broken, b"\xff\xfe".decode("utf-8", "surrogateescape"), "no text"
    old = b"caf\x82".decode("ascii", "surrogateescape")
    yield "name of an old code page", built(E(b"caf\x82", flags=0)), old, "no text"


def kinds() -> Iterator[tuple[str, bytes, str, str]]:
    """What is no plain file."""
    for kind, why in (
        (stat.S_IFLNK, "a link"),
        (stat.S_IFCHR, "a device"),
        (stat.S_IFBLK, "a device"),
        (stat.S_IFIFO, "a pipe"),
        (stat.S_IFSOCK, "a socket"),
        (stat.S_IFDIR, "neither a plain file"),
    ):
        yield f"{why} {kind:o}", built(E("odd", b"/etc/passwd", mode=kind | 0o777)), "odd", why
    yield "link to a folder outside", built(E("out", b"../..", mode=stat.S_IFLNK | 0o777), E("out/x")), "out", "a link"
    yield "hard link", built(E("hard", extra=extra(0x000D, b"\0" * 12 + b"/etc/passwd"))), "hard", "a link of Unix"
    yield "hard link of another kind", built(E("hard", extra=extra(0x756E, b"\0" * 14))), "hard", "a link of Unix"
    for bits in (0o4755, 0o2755, 0o1755):
        yield f"mode {bits:o}", built(E("run", mode=stat.S_IFREG | bits)), "run", "another's rights"
    yield "folder with content", built(E("folder/", b"xx", mode=stat.S_IFDIR | 0o755)), "folder/", "content of its own"


def clashing() -> Iterator[tuple[str, bytes, str, str]]:
    """Entries that cannot lie beside each other."""
    yield "twice", built(E("a.py"), E("a.py", b"other")), "a.py", "is here twice"
    yield "capitals", built(E("Readme.md"), E("README.md")), "README.md", "capitals"
    yield "capitals of a folder", built(E("A/x"), E("a/y")), "a/y", "capitals"
    yield "Unicode", built(E("stra\u00dfe"), E("STRASSE")), "STRASSE", "spelled"
    yield "file and folder", built(E("a"), E("a/b")), "a/b", "file and a folder"
    yield "folder and file", built(E("a/b"), E("a")), "a", "file and a folder"
    yield "two manifests", built(E("in/oz0-plugin.yaml", MANIFEST_TEXT)), "in/oz0-plugin.yaml", "second manifest"
    loud = built(E("OZ0-Plugin.yaml", MANIFEST_TEXT))
    yield "manifest in capitals", loud, "OZ0-Plugin.yaml", "capitals"
    yield "no manifest", built(E("a.py"), manifest=False), PACK, "has no oz0-plugin.yaml"
    inside = built(E("shelf/oz0-plugin.yaml", MANIFEST_TEXT), manifest=False)
    yield "manifest further down", inside, PACK, "there is one in shelf/"
    yield "nothing inside", built(manifest=False), PACK, "has no oz0-plugin.yaml"


def bombs() -> Iterator[tuple[str, bytes, str, str]]:
    """What unfolds to more than anybody wants."""
    blanks = b"\0" * (30 * 2**20)
    yield "a thousandfold", built(E("blank.bin", blanks, deflate=True)), "blank.bin", "a bomb"
    four = deflated(b"\0" * (64 * 2**20))
    lying = built(E("small.txt", raw=four, method=8, size=1_000, crc=0))
    yield "says little, unfolds to much", lying, "small.txt", "unfolds to more than the 1,000 bytes"
    many = [E(f"part{n}", raw=NOISE, method=8, size=3 * 2**20, crc=0) for n in range(12)]
    yield "too much together", built(*many), "part10", "makes it more than 32 MiB"
    yield "too many", built(*(E(f"f{n}", b"") for n in range(2_100))), "f1999", "one more than the 2,000"
    yield "far too many", built(*(E(f"f{n}", b"") for n in range(40_000))), "f1999", "one more than the 2,000"
    lots = built(E("a", b""), count=0xFFFF)
    yield "a million, by ZIP64", lots, PACK, "ZIP64"
    yield "ZIP inside", built(E("more.bin", built(E("a.py")))), "more.bin", "a ZIP inside the pack"
    yield "gzip inside", built(E("data", gzip.compress(b"x" * 1_000), deflate=True)), "data", "a gzip file inside"
    yield "7z by name", built(E("big.7z", b"")), "big.7z", "an archive inside"
    whole, first = built(E("one", NOISE)), LOCAL.size + len("oz0-plugin.yaml") + len(MANIFEST_TEXT)
    assert whole[first:].startswith(LOCAL_SIGN)
    same = built(E("one", NOISE), E("one", NOISE, at=first), E("two", NOISE, at=first))
    yield "the same bytes many times", same, "two", "described otherwise"


def structures() -> Iterator[tuple[str, bytes, str, str]]:
    """Lies about places, sizes and sums."""
    good = built(E("a.py", NOISE), E("b.py", NOISE))
    yield "overlap", _overlapping(), "inner.py", "overlap"
    yield "another name in its header", built(E("a.py", local={"name": b"b.py"})), "a.py", "it is called b.py"
    yield "another size in its header", built(E("a.py", local={"size": 9})), "a.py", "described otherwise"
    yield "another method in its header", built(E("a.py", local={"method": 8})), "a.py", "described otherwise"
    yield "sizes after the content", built(E("a.py", flags=UTF8 | 8)), "a.py", "only after its content"
    yield (
        "ZIP64 sizes",
        built(E("a.py", size=0xFFFFFFFF, packed=0xFFFFFFFF, extra=extra(1, b"\1" * 16))),
        "a.py",
        "ZIP64",
    )
    yield "ZIP64 in its header alone", built(E("a.py", local={"extra": extra(1, b"\0" * 16)})), "a.py", "ZIP64"
    locator = b"PK\x06\x07" + b"\0" * 16
    yield "ZIP64 locator", _with_locator(locator), PACK, "ZIP64"
    yield "cut off", good[: len(good) // 2], PACK, "cut off"
    yield "cut off in its last bytes", good[:-3], PACK, "cut off"
    yield "cut off inside", built(E("a.py", NOISE, raw=deflated(NOISE)[:1_000], method=8)), "a.py", "cut off"
    yield "bytes at the end", built(E("a.py"), tail=b"more"), PACK, "after its end"
    yield "a pack behind a pack", good[:-1] + built(E("c.py")), PACK, "where its directory is"
    yield "a comment", built(E("a.py"), comment=b"hello"), PACK, "a comment after its end"
    yield "a program before", built(E("a.py"), before=b"MZ" + NOISE[:200]), PACK, "does not begin as a ZIP"
    yield "bytes between", built(E("a.py", after=NOISE), E("b.py")), "b.py", "belong to no file"
    yield (
        "bytes before the directory",
        built(E("a.py", after=NOISE)),
        "a.py",
        "followed by bytes that belong to no file",
    )
    yield "wrong checksum", built(E("a.py", NOISE, crc=1)), "a.py", "its checksum is another"
    yield "wrong checksum, deflated", built(E("a.py", b"text" * 99, deflate=True, crc=1)), "a.py", "its checksum"
    yield "damaged", built(E("a.py", NOISE, raw=b"\xff" * 500, method=8)), "a.py", "cannot be unfolded"
    yield "stored in two sizes", built(E("a.py", NOISE, size=10)), "a.py", "at once"
    longer = built(E("a.py", b"text" * 99, deflate=True, size=9_999))
    yield "says more than there is", longer, "a.py", "cut off"
    behind = built(E("a.py", b"text", raw=deflated(b"text") + NOISE[:500], method=8))
    yield "bytes behind the content", behind, "a.py", "hides bytes"
    yield "encrypted", built(E("a.py", flags=UTF8 | 1)), "a.py", "encrypted"
    yield "encrypted by AES", built(E("a.py", method=99, extra=extra(0x9901, b"\0" * 7))), "a.py", "encrypted"
    yield "encrypted headers", built(E("a.py", flags=UTF8 | 0x2000)), "a.py", "encrypted"
    yield "LZMA", built(E("a.py", method=14)), "a.py", "packed by LZMA"
    yield "unknown method", built(E("a.py", method=77)), "a.py", "packed by method 77"
    yield "patch data", built(E("a.py", flags=UTF8 | 0x20)), "a.py", "flags that no pack has"
    yield "a second name", built(E("a.py", extra=extra(0x7075, b"\1" + b"\0" * 4 + b"../x"))), "a.py", "second name"
    yield "a part without end", built(E("a.py", extra=b"\x55\x54\xff\xff")), "a.py", "cannot be read"
    yield "another disk", built(E("a.py", disk=1)), "a.py", "another disk"
    yield "more entries than there are", built(E("a.py"), count=7), PACK, "says that it holds 7 entries"
    yield "fewer entries than there are", built(E("a.py"), count=1), PACK, "says that it holds 1 entries"
    yield "directory elsewhere", built(E("a.py"), at=10), PACK, "where its directory is"
    yield "entry elsewhere", built(E("a.py", at=2**31)), "a.py", "not where the directory says"
    yield "directory that is none", _garbled(), PACK, "cannot be read after entry"


def others() -> Iterator[tuple[str, bytes, str, str]]:
    """What is no pack at all."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as made:
        made.addfile(tarfile.TarInfo("../x"))
        link = tarfile.TarInfo("hard")
        link.type, link.linkname = tarfile.LNKTYPE, "/etc/passwd"
        made.addfile(link)
    yield "tar", tar.getvalue(), PACK, "is a tar file"
    yield "gzip", gzip.compress(b"\0" * 2**20), PACK, "is a gzip file"
    yield "nothing", b"", PACK, "does not begin as a ZIP"
    yield "text", b"name: shelf\n", PACK, "does not begin as a ZIP"
    yield "four bytes", b"PK\x03\x04", PACK, "cut off"
    yield "too large", b"PK\x03\x04" + b"\0" * MAX_PACK, PACK, "larger than"


def hostile() -> Iterator[tuple[str, bytes, str, str]]:
    """All of them."""
    for group in (named, kinds, clashing, bombs, structures, others):
        yield from group()


def _overlapping() -> bytes:
    """A stored file that holds, as its content, the header and content of another entry of the directory."""
    inner = b"evil"
    header = (
        LOCAL.pack(LOCAL_SIGN, 20, UTF8, 0, 0, 33, zlib.crc32(inner), 4, 4, len(b"inner.py"), 0) + b"inner.py" + inner
    )
    first = LOCAL.size + len("oz0-plugin.yaml") + len(MANIFEST_TEXT)
    outer = E("outer.py", header)
    at = first + LOCAL.size + len(b"outer.py")
    whole = built(outer)
    split = whole.index(CENTRAL_SIGN)
    entry = CENTRAL.pack(
        CENTRAL_SIGN,
        0x0314,
        20,
        UTF8,
        0,
        0,
        33,
        zlib.crc32(inner),
        4,
        4,
        len(b"inner.py"),
        0,
        0,
        0,
        0,
        0o100644 << 16,
        at,
    )
    directory = whole[split : -END.size] + entry + b"inner.py"
    return whole[:split] + directory + END.pack(END_SIGN, 0, 0, 3, 3, len(directory), split, 0)


def _with_locator(locator: bytes) -> bytes:
    whole = built(E("a.py"))
    split = whole.index(CENTRAL_SIGN)
    directory = whole[split : -END.size] + locator
    return whole[:split] + directory + END.pack(END_SIGN, 0, 0, 2, 2, len(directory), split, 0)


def _garbled() -> bytes:
    whole = bytearray(built(E("a.py"), E("b.py")))
    at = whole.rindex(CENTRAL_SIGN)
    whole[at : at + 4] = b"PKxx"
    return bytes(whole)
