"""What watches over the studio asks: `/healthz`, `/readyz` and `/metrics`.

They are answered before Django and whatever host is asked for, since those who probe come by address (`studio.asgi`).
"""

import json
from enum import StrEnum
from functools import cache
from http import HTTPStatus
from typing import Any, Final

from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from base.db import GONE
from jobs.queries.gauges import Working, working
from studio import metrics

UP: Final = "/healthz"
READY: Final = "/readyz"
PAGES: Final = "/readyz/pages"
METRICS: Final = "/metrics"
PATHS: Final = (UP, READY, PAGES, METRICS)
JSON: Final = "application/json"

type Told = tuple[HTTPStatus, str, bytes]  # status, media type, body


class Readiness(StrEnum):
    """What stands between a request and its answer, or between work and who does it."""

    READY = "ready"
    MIGRATING = "migrating"
    AWAY = "database away"
    IDLE = "no node"


SAYS: Final = {
    Readiness.READY: "Requests are answered.",
    Readiness.MIGRATING: "The database lacks migrations of this version: `oz0 migrate` applies them.",
    Readiness.AWAY: "The database does not answer: see that it runs, and DATABASE_URL.",
    Readiness.IDLE: "Pages are served and no work is done: no node was heard of for 10 s. `oz0 node` runs one.",
}
WORKS: Final = "Requests are answered, and nodes take work from the broker."
SLOW: Final = "Requests are answered, and nodes take work by themselves: no message of the broker reaches them."


def readiness() -> Readiness:
    """Ask the database whether pages can be served. Blocks for as long as it takes to answer or to be given up."""
    try:
        connection.close_if_unusable_or_obsolete()
        applied = MigrationRecorder(connection).applied_migrations()
    except GONE:
        return Readiness.AWAY
    return Readiness.READY if _known() <= applied.keys() else Readiness.MIGRATING


def told(path: str) -> Told:
    """What is answered at one of `PATHS`. Blocks as `readiness` does."""
    if path == UP:
        return _as_json(HTTPStatus.OK, {"status": "up"})
    found = readiness()
    if found is Readiness.READY and path == METRICS:
        return HTTPStatus.OK, metrics.TYPE, metrics.text()
    if found is not Readiness.READY or path != READY:
        return _as_json(_status(found), {"status": found, "detail": SAYS[found]})
    try:
        return _worked(working())
    except GONE:
        return _as_json(_status(Readiness.AWAY), {"status": Readiness.AWAY, "detail": SAYS[Readiness.AWAY]})


def _worked(found: Working) -> Told:
    ready = Readiness.READY if found.pulses else Readiness.IDLE
    detail = SAYS[ready] if not found.pulses else WORKS if found.consumes else SLOW
    seconds = {"pulse_seconds": found.pulse, "message_seconds": found.message}
    rounded = {name: None if value is None else round(value, 1) for name, value in seconds.items()}
    messages = "consumed" if found.consumes else "silent"
    told = {"status": ready, "detail": detail, "nodes": found.nodes, "messages": messages, **rounded}
    return _as_json(_status(ready), told)


def _status(found: Readiness) -> HTTPStatus:
    return HTTPStatus.OK if found is Readiness.READY else HTTPStatus.SERVICE_UNAVAILABLE


def _as_json(status: HTTPStatus, said: dict[str, Any]) -> Told:
    return status, JSON, json.dumps(said).encode()


@cache
def _known() -> frozenset[tuple[str, str]]:
    return frozenset(MigrationLoader(None).disk_migrations or ())
