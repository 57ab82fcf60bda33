"""The list of open questions that stands beside whichever of them is open, and the filter in its address."""

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.http import Http404, HttpRequest

from approvals.queries.queue import Queue, QueueFilter, queue
from base import ids
from jobs.rules.states import HoldKind
from tenants.views.place import seat_of

KINDS: Final = (("approve", "May it run?"), ("retry", "Try again?"), ("unknown", "Did it happen?"))


@dataclass(frozen=True, slots=True)
class Wanted:
    """The filter in the address, read and ready to be written again."""

    filter: QueueFilter
    query: str


def wanted_of(request: HttpRequest) -> Wanted:
    """The filter that the address asks for."""
    given = {name: request.GET.get(name, "")[:64] for name in ("kind", "agent", "tool")}
    kind = given["kind"] if given["kind"] in set(HoldKind) else ""
    after = hold_id_of(request.GET["after"]) if request.GET.get("after") else None
    kept = {name: value for name, value in (given | {"kind": kind}).items() if value}
    if after:
        kept["after"] = request.GET["after"]
    return Wanted(QueueFilter(kind=kind, agent=given["agent"], tool=given["tool"], after=after), urlencode(kept))


def waiting(request: HttpRequest) -> Queue:
    """The questions that the filter leaves."""
    return queue(seat_of(request).tenant, wanted_of(request).filter)


def beside(request: HttpRequest, found: Queue) -> dict[str, Any]:
    """What the template needs for the list and its filter."""
    wanted = wanted_of(request)
    return {"queue": found, "wanted": wanted.filter, "filters": wanted.query, "here": wanted.query, "kinds": KINDS}


def hold_id_of(shown: str) -> UUID:
    """The id of a question in an address; 404 when it is none."""
    try:
        return ids.parse(ids.HOLD, shown)
    except ids.BadId as error:
        raise Http404 from error
