"""Whether this web process is up, and whether it is of use: `/healthz` and `/readyz`, for what watches over it.

They are answered before Django and whatever host is asked for, since those who probe come by address (`studio.asgi`).
"""

from enum import StrEnum
from functools import cache
from http import HTTPStatus
from typing import Final

from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from base.db import GONE

UP: Final = "/healthz"
PATHS: Final = (UP, "/readyz")


class Readiness(StrEnum):
    """What stands between a request and its answer."""

    READY = "ready"
    MIGRATING = "migrating"
    AWAY = "database away"


SAYS: Final = {
    Readiness.READY: "Requests are answered.",
    Readiness.MIGRATING: "The database lacks migrations of this version: `oz0 migrate` applies them.",
    Readiness.AWAY: "The database does not answer: see that it runs, and DATABASE_URL.",
}


def readiness() -> Readiness:
    """Ask the database. Blocks for as long as it takes to answer or to be given up."""
    try:
        connection.close_if_unusable_or_obsolete()
        applied = MigrationRecorder(connection).applied_migrations()
    except GONE:
        return Readiness.AWAY
    return Readiness.READY if _known() <= applied.keys() else Readiness.MIGRATING


def told(path: str) -> tuple[HTTPStatus, dict[str, str]]:
    """What is answered at one of `PATHS`. Blocks as `readiness` does."""
    if path == UP:
        return HTTPStatus.OK, {"status": "up"}
    found = readiness()
    ready = found is Readiness.READY
    return HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE, {"status": found, "detail": SAYS[found]}


@cache
def _known() -> frozenset[tuple[str, str]]:
    return frozenset(MigrationLoader(None).disk_migrations or ())
