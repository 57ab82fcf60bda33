"""What a plugin's files may be called so that every machine can hold them, how much they may be, what stays at home.

One set of rules for reading a folder, for packing it and for reading a pack, so that what one takes the others take.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from base.visible import is_hidden

MAX_FILES: Final = 2_000
MAX_BYTES: Final = 32 * 1024 * 1024  # of all files of a plugin together
MAX_PACK: Final = MAX_BYTES + 4 * 1024 * 1024  # bytes of a whole pack; names and headers take the rest
LONGEST_PATH: Final = 200  # bytes of UTF-8: a state folder's own path stands before it
LONGEST_NAME: Final = 120  # bytes of UTF-8 of one part of a path
DEEPEST: Final = 16  # folders in each other
PACK_END: Final = ".oz0.zip"

_CACHES: Final = frozenset({"__pycache__", "node_modules", "__pypackages__", "venv", "thumbs.db", "__macosx"})
_RESERVED: Final = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$|clock\$)(?:\.|\Z)", re.I)
_NOT_EVERYWHERE: Final = frozenset('<>:"|?*')
_SECRET: Final = re.compile(
    r"(?:.*\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ppk|env)"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?"
    r"|(?:credentials?|secrets?|passwords?|passwd)(?:\.(?:json|ya?ml|toml|ini|txt|csv|cfg|conf))?"
    r"|(?:token|client_secret[^/]*|service[-_]account[^/]*)\.json"
    r"|cookies\.txt|htpasswd)",
    re.I,
)
_PRIVATE_KEY: Final = re.compile(rb"\A\s*-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----")


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a file of this name cannot be taken, and what to do."""

    message: str
    fix: str


def trouble(path: str) -> Trouble | None:
    """Why not every machine can hold a file at this path, with `/` between its parts; None when all can."""
    rename = "give it a plain, relative name"
    if not path:
        return Trouble("has no name", rename)
    if "\0" in path:
        return Trouble("has a zero byte in its name", rename)
    if "\\" in path:
        return Trouble("has a backslash in its name, which some machines take for a folder's end", "use / and no \\")
    if path.startswith("/"):
        return Trouble("is an absolute path, which leads out of the plugin's folder", rename)
    if re.match(r"[A-Za-z]:", path):
        return Trouble("begins with a drive letter, which leads out of the plugin's folder", rename)
    try:
        long = len(path.encode("utf-8")) > LONGEST_PATH
    except UnicodeEncodeError:
        return Trouble("has a name that is no text", "rename it in UTF-8")
    if long:
        return Trouble(f"has a path longer than {LONGEST_PATH} bytes", "give it and its folders shorter names")
    parts = path.split("/")
    if len(parts) > DEEPEST:
        return Trouble(f"lies deeper than {DEEPEST} folders", "put it further up")
    return next((why for part in parts if (why := _part(part)) is not None), None)


def _part(part: str) -> Trouble | None:
    if part in ("", "."):
        return Trouble("has an empty part in its path", "write each folder's name between two /")
    if part == "..":
        return Trouble("leads out of the plugin's folder by ..", "name files inside the plugin's folder")
    if len(part.encode("utf-8")) > LONGEST_NAME:
        return Trouble(f"has a name longer than {LONGEST_NAME} bytes", "give it a shorter name")
    if any(unicodedata.category(char) == "Cc" for char in part):
        return Trouble("has a control character in its name", "rename it without")
    if any(is_hidden(char) for char in part):
        return Trouble("has an invisible character in its name", "rename it without")
    if unicodedata.normalize("NFC", part) != part:
        return Trouble("has a name that is spelled otherwise on some machines", "rename it in Unicode's NFC form")
    if odd := sorted(_NOT_EVERYWHERE.intersection(part)):
        return Trouble(f"has {' '.join(odd)} in its name, which Windows does not take", "rename it without")
    if part != part.strip(" ") or part.endswith("."):
        return Trouble("begins or ends with a space, or ends with a dot, which Windows drops", "rename it without")
    if _RESERVED.match(part):
        return Trouble("is called like a device of Windows", "give it another name")
    return None


def clashes(paths: Iterable[str]) -> Iterator[tuple[str, Trouble]]:
    """Each path that cannot lie beside an earlier one, and why: on some machines the two are one file.

    A path that ends with `/` is a folder.
    """
    seen_whole: set[str] = set()
    seen: dict[str, tuple[str, bool]] = {}  # how the most careless machine spells it -> as written first, is a file
    for path in paths:
        parts = path.rstrip("/").split("/")
        for upto in range(1, len(parts) + 1):
            here = "/".join(parts[:upto])
            is_file, last = upto == len(parts) and not path.endswith("/"), upto == len(parts)
            spelled, was_file = seen.setdefault(_careless(here), (here, is_file))
            if spelled != here:
                same = "differ only in capitals or in how their letters are spelled, so many machines take them for one"
                yield path, Trouble(f"and {spelled} {same}", "rename one of them")
                break
            if is_file != was_file:
                yield path, Trouble(f"needs {here} to be a file and a folder at once", "rename one of them")
                break
            if last and path in seen_whole:
                yield path, Trouble("is here twice", "keep one of them")
                break
        seen_whole.add(path)


def _careless(path: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", path).casefold())


def stays_at_home(name: str, *, folder: bool = False) -> str:
    """Why a file or folder of this name belongs to one machine alone and is never part of a plugin; else empty."""
    if name.startswith("."):
        return "hidden"
    if name.casefold() in _CACHES or (folder and name.casefold().endswith(".egg-info")):
        return "a cache"
    if not folder and name.casefold().endswith((".pyc", ".pyo")):
        return "compiled"
    if not folder and name.casefold().endswith(PACK_END):
        return "a pack"
    return ""


def looks_secret(path: str, content: bytes = b"") -> bool:
    """Whether a file seems to hold what nobody else should have: by its name, or as it is a private key."""
    return _SECRET.fullmatch(path.rpartition("/")[2]) is not None or _PRIVATE_KEY.match(content[:200]) is not None
