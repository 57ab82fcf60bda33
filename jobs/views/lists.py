"""The list of jobs."""

from dataclasses import dataclass
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from base import ids
from base.htmx import page as answer
from jobs.queries.lists import VIEWS, JobFilter, jobs_page
from jobs.views.places import id_in
from tenants.views.place import seat_of


@dataclass(frozen=True, slots=True)
class _Tab:
    text: str
    query: str


@require_GET
def jobs(request: HttpRequest) -> HttpResponse:
    """The jobs that fit the filter in the address, rows patched in place; new ones wait behind a button."""
    seat = seat_of(request)
    wanted = JobFilter(
        view=request.GET.get("view", "all") if request.GET.get("view") in VIEWS else "all",
        agent=request.GET.get("agent", "")[:64],
        words=request.GET.get("q", "")[:200],
        function=request.GET.get("function", "").replace("\0", "")[:200],
        before=job_id_of(request.GET.get("before")),
        newest=job_id_of(request.GET.get("newest")),
    )
    shown = jobs_page(seat.tenant, wanted)
    fresh = {"view": wanted.view, "agent": wanted.agent, "q": wanted.words}
    fresh |= {"function": wanted.function} if wanted.function else {}
    here = fresh | ({"newest": shown.top} if shown.top else {})
    if wanted.before:
        here["before"] = ids.show(ids.JOB, wanted.before)
    context = {
        "page": shown,
        "wanted": wanted,
        "filtered": bool(wanted.agent or wanted.words or wanted.function or wanted.view != "all"),
        "views": [(key, _Tab(text, urlencode(fresh | {"view": key}))) for key, (text, _) in VIEWS.items()],
        "here": urlencode(here),
        "fresh": urlencode(fresh),
    }
    return answer(request, "jobs/list.html", context, parts=["jobs-list"])


def job_id_of(text: str | None) -> UUID | None:
    """The job that an address names; None for none. Anything else is no address of ours."""
    return id_in(ids.JOB, text) if text else None
