"""A folder's files: read as bytes, within limits and without following links, and kept elsewhere."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from base.portable import MAX_BYTES, MAX_FILES, stays_at_home

READABLE: Final = 0o644  # a sandboxed server may run as another account; folders above keep out whom they keep out
KEPT: Final = 0o444  # what was registered is changed by nobody


class BadFolder(ValueError):
    """The folder cannot be taken as it is; the message names the file and the fix."""


@dataclass(frozen=True, slots=True)
class Found:
    """A folder's files by their paths, and why other paths were passed over."""

    files: Mapping[str, bytes]
    passed_over: Mapping[str, str]


def files_of(folder: Path) -> Mapping[str, bytes]:
    """Every file under `folder` by its path in it, with `/` between parts, in the order of the paths.

    Hidden names, caches, compiled files and packs are passed over. Raises `BadFolder` for links and for too much.
    """
    return look(folder).files


def look(folder: Path) -> Found:
    """The same, with what was passed over; a folder's path ends with `/`."""
    if not folder.is_dir():
        raise BadFolder(f"{folder}: there is no such folder. fix: name the folder that holds oz0-plugin.yaml")
    found: dict[str, bytes] = {}
    passed_over: dict[str, str] = {}
    size = 0
    for where, folders, names in os.walk(folder):
        here = Path(where)
        for name in [*folders, *names]:
            if why := stays_at_home(name, folder=name in folders):
                passed_over[f"{(here / name).relative_to(folder).as_posix()}{'/' * (name in folders)}"] = why
        folders[:] = sorted(name for name in folders if not stays_at_home(name, folder=True))
        for name in sorted(name for name in names if not stays_at_home(name)) + folders:
            path = here / name
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
    return Found(dict(sorted(found.items())), dict(sorted(passed_over.items())))


def keep(files: Mapping[str, bytes], folder: Path, *, lasting: bool = True) -> None:
    """Write the files under `folder`, which then holds them all or does not exist; one that exists is left alone.

    What need not outlast a power cut is not `lasting`, and written sooner.
    Paths that would leave the folder raise `BadFolder`, and so does a folder that holds other content by these paths.
    """
    if folder.is_dir():
        refuse_changed(files, folder)
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
            with place.open("wb") as file:
                file.write(content)
                if lasting:  # what the database is told next must not outlive its files
                    file.flush()
                    os.fsync(file.fileno())
            place.chmod(KEPT)
        for inside in (root, *(path for path in root.rglob("*") if path.is_dir())):
            inside.chmod(READABLE | 0o111)
        try:
            root.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process kept the same files at the same moment
                raise
            refuse_changed(files, folder)


def refuse_changed(files: Mapping[str, bytes], folder: Path) -> None:
    """Raise `BadFolder` when a kept file is not what was kept. What servers wrote beside them is theirs."""
    for path, content in files.items():
        place = folder / path
        if place.is_symlink() or not place.is_file() or place.read_bytes() != content:
            raise BadFolder(
                f"{place}: was changed after it was kept. fix: end the studio, remove {folder}, and register it again"
            )
