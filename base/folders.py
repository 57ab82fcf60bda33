"""A folder's files: read as bytes, within limits and without following links, and kept elsewhere."""

import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

MAX_FILES: Final = 2_000
MAX_BYTES: Final = 32 * 1024 * 1024
READABLE: Final = 0o644  # a sandboxed server may run as another account; folders above keep out whom they keep out
PASSED_OVER: Final = frozenset({"__pycache__", "node_modules"})


class BadFolder(ValueError):
    """The folder cannot be taken as it is; the message names the file and the fix."""


def files_of(folder: Path) -> Mapping[str, bytes]:
    """Every file under `folder` by its path in it, with `/` between parts, in the order of the paths.

    Hidden names, caches and compiled files are passed over. Raises `BadFolder` for links and for too much.
    """
    if not folder.is_dir():
        raise BadFolder(f"{folder}: there is no such folder. fix: name the folder that holds oz0-plugin.yaml")
    found: dict[str, bytes] = {}
    size = 0
    for where, folders, names in os.walk(folder):
        here = Path(where)
        folders[:] = sorted(n for n in folders if not n.startswith(".") and n not in PASSED_OVER)
        for name in sorted(names) + folders:
            path = here / name
            if name.startswith(".") or name.endswith(".pyc"):
                continue
            if path.is_symlink():
                raise BadFolder(f"{path}: is a link. fix: put the file itself into the plugin's folder")
            if name in folders:
                continue
            if not path.is_file():
                raise BadFolder(f"{path}: is neither a file nor a folder. fix: take it out of the plugin's folder")
            size += path.stat().st_size
            if size > MAX_BYTES or len(found) >= MAX_FILES:
                raise BadFolder(
                    f"{folder}: holds more than {MAX_FILES} files or {MAX_BYTES // 2**20} MiB, reached at {path}. "
                    "fix: keep data out of the plugin's folder"
                )
            found[path.relative_to(folder).as_posix()] = path.read_bytes()
    return dict(sorted(found.items()))


def keep(files: Mapping[str, bytes], folder: Path) -> None:
    """Write the files under `folder`, which then holds them all or does not exist; one that exists is left alone.

    Paths that would leave the folder raise `BadFolder`.
    """
    if folder.is_dir():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent, prefix=".") as building:
        root = Path(building) / "files"
        root.mkdir()
        for path, content in files.items():
            place = root / path
            if ".." in place.relative_to(root).parts:
                raise BadFolder(f"{path}: leads out of the folder. fix: name files inside it")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
            place.chmod(READABLE)
        for inside in (root, *(path for path in root.rglob("*") if path.is_dir())):
            inside.chmod(READABLE | 0o111)
        try:
            root.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process kept the same files at the same moment
                raise
