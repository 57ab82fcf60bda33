"""What keeps an embedded service from running, said in one sentence."""

import errno
from typing import Final

HINTS: Final = {
    errno.EROFS: "that file system is read-only: set OZ0_HOME to a folder that can be written",
    errno.EACCES: "this account may not write there: set OZ0_HOME to a folder of its own",
    errno.EPERM: "this account may not write there: set OZ0_HOME to a folder of its own",
    errno.ENOSPC: "the disk is full: free some space and start again",
    errno.EDQUOT: "the disk quota is used up: free some space and start again",
}


class CannotStart(Exception):
    """A service cannot run; the message says which, why and what helps."""


class Interrupted(Exception):
    """A start was given up because its caller was asked to stop."""


def cannot_keep(what: str, error: OSError) -> CannotStart:
    """The sentence for a file or folder that could not be written."""
    where = f" ({error.filename})" if error.filename else ""
    why = HINTS.get(error.errno or 0, error.strerror or str(error))
    return CannotStart(f"cannot keep {what}{where}: {why}")
