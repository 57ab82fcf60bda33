"""Only one supervisor works in a state folder."""

import fcntl
import os
from pathlib import Path
from typing import Final

from studio.embedded.failure import CannotStart, cannot_keep

LOCK: Final = "up.lock"  # the file's name in a state folder


class Lock:
    """Held by the running supervisor; the kernel frees it when that process ends, however it ends."""

    def __init__(self, home: Path, note: str) -> None:
        """Take the lock of state folder `home`, or raise `CannotStart` with the holder's `note`."""
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = os.open(home / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise cannot_keep("the lock of the state folder", error) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(self._file, 500).decode(errors="replace").strip()
            os.close(self._file)
            raise CannotStart(
                f"oz0 is already up in {home} ({holder}): stop that one (Ctrl-C in its terminal, or `kill` and that"
                " number), or set OZ0_HOME to another folder"
            ) from error
        self.left_behind = bool(os.read(self._file, 1))
        """Whether the last holder died without an orderly end, so that its children may still be going."""
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, note.encode(), 0)

    def release(self) -> None:
        """Leave the folder in order."""
        os.ftruncate(self._file, 0)
        os.close(self._file)


def holder(home: Path) -> str | None:
    """The note of the supervisor that works in `home`, or None when none does."""
    try:
        file = os.open(home / LOCK, os.O_RDWR)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.read(file, 500).decode(errors="replace").strip()
    finally:
        os.close(file)
    return None
