"""The list of open questions that stands beside whichever of them is open, and the filter in its address."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.http import Http404, HttpRequest

from approvals.queries.floods import Flood
from approvals.queries.queue import (
    Choices,
    Queue,
    QueueFilter,
    QueueRow,
    answered_lately,
    choices,
    failed_lately,
    queue,
)
from base import ids
from jobs.rules.states import HoldKind
from tenants.views.place import seat_of

KINDS: Final = (("approve", "May it run?"), ("retry", "Try again?"), ("unknown", "Did it happen?"))
NAMES: Final = ("kind", "agent", "tool", "function")
DONE: Final = {
    "approve": "approved",
    "edit": "edited and approved",
    "deny": "denied",
    "happened": "said to have happened",
    "again": "run again",
    "stop": "stopped",
}
LONGEST: Final = 128  # characters of a name in the address


@dataclass(frozen=True, slots=True)
class Wanted:
    """The filter in the address, read and ready to be written again."""

    filter: QueueFilter
    query: str


def wanted_of(request: HttpRequest) -> Wanted:
    """The filter that the address asks for."""
    given = {name: request.GET.get(name, "")[:LONGEST] for name in NAMES}
    given["kind"] = given["kind"] if given["kind"] in set(HoldKind) else ""
    after = hold_id_of(request.GET["after"]) if request.GET.get("after") else None
    kept = {name: value for name, value in given.items() if value}
    if after:
        kept["after"] = request.GET["after"]
    return Wanted(QueueFilter(**given, after=after, at=_moment(request.GET.get("at", ""))), urlencode(kept))


def _moment(text: str) -> datetime | None:
    """When the page was opened, in microseconds since 1970; None for anything else."""
    if not (text.isascii() and text.isdigit() and len(text) <= 17):
        return None
    return datetime.fromtimestamp(int(text) / 1_000_000, UTC)


def waiting(request: HttpRequest) -> Queue:
    """The questions that the filter leaves."""
    seat = seat_of(request)
    return queue(seat.tenant, wanted_of(request).filter, role=seat.role)


def beside(request: HttpRequest, found: Queue) -> dict[str, Any]:
    """What the template needs for the list and its filter."""
    wanted, seat = wanted_of(request), seat_of(request)
    return {
        "queue": found,
        "wanted": wanted.filter,
        "filters": wanted.query,
        "here": wanted.query,
        "opened": f"at={round(found.at.timestamp() * 1_000_000)}",
        "kinds": KINDS,
        "yours": "" if found.rows else _yours(request),
        "failed": failed_lately(seat.tenant, seat.person_id),
    }


@dataclass(frozen=True, slots=True)
class Following:
    """The question to read after one that is answered. `first`: nothing waits below, so it is the list's first."""

    row: QueueRow | Flood
    first: bool


def following(found: Queue, shown: str) -> Following | None:
    """The next question of the list below `shown`, else the first that waits; None when none does."""
    open_ones = [row for row in found.rows if row.shown_id != shown and not (isinstance(row, QueueRow) and row.closed)]
    below = [row for row in open_ones if row.shown_id > shown]  # ids are in the order of their asking
    rest = below or open_ones
    return Following(rest[0], first=not below) if rest else None


def waiting_choices(request: HttpRequest) -> Choices:
    """What a filter of the open questions offers."""
    return choices(seat_of(request).tenant, wanted_of(request).filter)


def _yours(request: HttpRequest) -> str:
    """What the reader answered in the last hour, in words: "97 approved, 3 denied"."""
    seat = seat_of(request)
    counts = answered_lately(seat.tenant, seat.person_id)
    return ", ".join(f"{count:,} {DONE.get(answer, answer)}" for answer, count in counts)


def hold_id_of(shown: str) -> UUID:
    """The id of a question in an address; 404 when it is none."""
    try:
        return ids.parse(ids.HOLD, shown)
    except ids.BadId as error:
        raise Http404 from error
