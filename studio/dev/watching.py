"""Noticing that a plugin's folder was saved."""

from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Final

from watchfiles import Change, watch

from base.portable import stays_at_home
from catalog.rules.listing_file import LISTING_FILE

QUIET: Final = 50  # milliseconds without another change after which a save is taken to be whole
LONGEST: Final = 500  # milliseconds after which it is looked at all the same


def is_of_plugin(folder: Path, path: Path) -> bool:
    """Whether a change there is one of the plugin: not of hidden files, caches, and the listing, which we write."""
    inside = path.relative_to(folder) if path.is_relative_to(folder) else None
    if inside is None or inside == Path(LISTING_FILE) or stays_at_home(path.name):
        return False
    return not any(stays_at_home(part, folder=True) for part in inside.parts)


def tell_of_saves(folder: Path, tell: Callable[[tuple[str, ...]], None]) -> None:
    """Call `tell` with the paths that were changed, each time there are some, from a thread of its own, for ever."""

    def changed(_: Change, path: str) -> bool:
        return is_of_plugin(folder, Path(path))

    def run() -> None:
        for changes in watch(folder, watch_filter=changed, step=QUIET, debounce=LONGEST):
            tell(tuple(sorted({Path(path).relative_to(folder).as_posix() for _, path in changes})))

    Thread(target=run, name="oz0-watch", daemon=True).start()
