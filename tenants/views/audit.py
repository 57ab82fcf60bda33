"""The audit log for admins: search in the address, pages by key, and the whole of it as a file (RULES A12)."""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Final
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.urls import NoReverseMatch, reverse
from django.utils.dateparse import parse_date, parse_datetime
from django.utils.timezone import is_aware
from django.views.decorators.http import require_GET, require_POST

from base import ids
from base.htmx import page as answer
from base.problem import problem
from base.streaming import download
from tenants.operations import audit as log
from tenants.queries.audit import AuditFilter, audit_page
from tenants.queries.seats import Seat
from tenants.rules.audit_chain import FIELDS, Link
from tenants.rules.auditing import cell, why_not_read
from tenants.views.place import actor_of, seat_of

ASKED: Final = ("who", "verb", "object", "q", "since", "until")
PLACES: Final = {
    "tool": "tool",
    "agent": "agent",
    "plugin": "plugin",
    "connection": "connections",
    "person": "people",
    "invitation": "people",
    "channel": "notices",
    "token": "tokens",
    "policy": "policy-versions",
    "function": "switches",
    "tenant": "switches",
}
TYPED: Final = {ids.JOB: "job", ids.CALL: "call", ids.HOLD: "hold"}


@require_GET
def audit(request: HttpRequest) -> HttpResponse:
    """Search the log."""
    seat = _reader(request)
    typed = {name: request.GET.get(name, "").strip()[:200] for name in ASKED}
    found = audit_page(seat.tenant, _wanted(request.GET))
    here = {name: value for name, value in typed.items() if value}
    context = {
        "page": found,
        "rows": [(row, _link(row.object)) for row in found.rows],
        "typed": typed,
        "filters": urlencode(here),
        "kinds": sorted({f"{verb.partition('.')[0]}." for verb in found.verbs}),
        "first": "before" not in request.GET,
    }
    return answer(request, "tenants/audit.html", context, parts=["audit-page"])


@require_POST
def export(request: HttpRequest) -> HttpResponseBase:
    """Send what the search finds, oldest first, as CSV or as JSON lines; that it was asked for is in the log itself."""
    seat, kind = _reader(request), request.POST.get("as", "")
    if kind not in ("csv", "jsonl"):
        return problem(HTTPStatus.BAD_REQUEST, "An export is asked for as csv or as jsonl.")
    links = log.export(tenant=seat.tenant, actor=actor_of(request), kind=kind, wanted=_wanted(request.POST))
    chunks = as_csv(links) if kind == "csv" else as_lines(links)
    media = "text/csv; charset=utf-8" if kind == "csv" else "application/jsonl"
    return download(request, chunks, name=f"audit-{seat.tenant_slug}.{kind}", kind=media)


def as_lines(links: Iterable[Link]) -> Iterator[str]:
    """JSON, an entry a line, exactly as it is hashed; `oz0 audit verify FILE` follows it."""
    for link in links:
        yield json.dumps({**link.said, "hash": link.hash}, ensure_ascii=False) + "\n"


def as_csv(links: Iterable[Link]) -> Iterator[str]:
    """A table for people: no cell begins a formula, whatever it holds."""
    names = [*FIELDS[1:], "hash"]
    yield _row(names)
    for link in links:
        yield _row([cell({**link.said, "hash": link.hash}[name]) for name in names])


def _row(cells: Iterable[str]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue()


def _reader(request: HttpRequest) -> Seat:
    seat = seat_of(request)
    if why_not := why_not_read(seat.role):
        raise PermissionDenied(why_not)
    return seat


def _wanted(asked: QueryDict) -> AuditFilter:
    text = {name: asked.get(name, "").strip()[:200] for name in (*ASKED, "before")}
    return AuditFilter(
        who=text["who"],
        verb=text["verb"],
        object=text["object"],
        words=text["q"],
        since=_moment(text["since"]),
        until=_moment(text["until"], end=True),
        before=int(text["before"]) if text["before"].isdecimal() and len(text["before"]) < 19 else None,
    )


def _moment(text: str, *, end: bool = False) -> datetime | None:
    """A day or a time in UTC; the end of a day is its last moment. None for what is neither."""
    try:
        day = parse_date(text)
        if day is not None:
            return datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1 if end else 0)
        found = parse_datetime(text)
        return found if found is None or is_aware(found) else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def _link(object: str) -> str:
    """The page of what an entry is about, empty where it has none."""
    for prefix, name in TYPED.items():
        try:
            ids.parse(prefix, object)
        except ids.BadId:
            continue
        return reverse(name, args=[object])
    kind, _, name = object.partition(" ")
    place = PLACES.get(kind)
    if place is None:
        return ""
    try:
        return reverse(place, args=[name] if place in ("tool", "agent", "plugin") else [])
    except NoReverseMatch:  # a name that no address can hold
        return ""
