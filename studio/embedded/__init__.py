"""A real PostgreSQL and a real Valkey without installing either, for `oz0 up` and for the tests.

with embedded.postgres(folder) as server:
    server.url_app, server.url_owner
    server.restart()  # or stop(), start(), kill()
"""

from pathlib import Path

from studio.embedded.failure import CannotStart, Interrupted
from studio.embedded.postgres import Postgres
from studio.embedded.valkey import Valkey

__all__ = ["CannotStart", "Interrupted", "Postgres", "Valkey", "postgres", "valkey"]


def postgres(folder: Path, *, fsync: bool = True, keep: bool = True) -> Postgres:
    """A PostgreSQL whose state folder is `folder`, running inside `with`.

    Tests pass `fsync=False, keep=False`. Without `keep` its data is deleted at the end. Raises `CannotStart`.
    """
    return Postgres(folder, fsync=fsync, keep=keep)


def valkey(folder: Path, *, keep: bool = True) -> Valkey:
    """A Valkey whose state folder is `folder`, running inside `with`. Raises `CannotStart`."""
    return Valkey(folder, keep=keep)
