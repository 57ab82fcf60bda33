"""A job's trace, one call of it, and stopping it."""

from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from base import ids
from base.htmx import page as answer
from jobs.operations.cancel import AlreadyOver, cancel_job
from jobs.queries import trace as traces
from jobs.queries.call_page import call_page
from jobs.queries.trace import JobHead
from jobs.rules.permits import why_not_stop
from jobs.views.places import id_in
from tenants.models import Role
from tenants.queries.seats import Seat
from tenants.views.place import actor_of, seat_of


@require_GET
def job(request: HttpRequest, shown: str) -> HttpResponse:
    """The trace. `?call=` opens one call in it, `?start=` shows older calls, `?run=` one of its runs, from 1."""
    seat = seat_of(request)
    start, run = _number(request.GET.get("start")), _number(request.GET.get("run"))
    opened = request.GET.get("call", "")
    call = call_page(seat.tenant, id_in(ids.CALL, opened), role=seat.role) if opened else None
    if call is not None and run is None:
        run = call.run_number + 1
    trace = traces.trace(
        seat.tenant, id_in(ids.JOB, shown), role=seat.role, start=start, run=None if run is None else run - 1
    )
    if trace is None or (opened and (call is None or call.job_id != trace.head.id)):
        raise Http404
    around = {"run": str(run)} if run is not None and run < trace.runs else {}
    around |= {"start": str(start)} if start is not None else {}
    context = {
        "trace": trace,
        "call": call,
        "start": start,
        "around": urlencode(around),
        "here": urlencode(around | ({"call": opened} if opened else {})),
        "why_not_stop": _why_not_stop(seat, trace.head),
    }
    return answer(request, "jobs/trace.html", context, parts=["job-page"])


@require_GET
def call(request: HttpRequest, shown: str) -> HttpResponse:
    """One call by itself. `?whole=arguments` or `?whole=result` loads a large value."""
    whole = request.GET.get("whole", "")
    seat = seat_of(request)
    found = call_page(seat.tenant, id_in(ids.CALL, shown), role=seat.role, whole=whole)
    if found is None:
        raise Http404
    context = {"call": found, "whole": whole, "here": urlencode({"whole": whole} if whole else {})}
    return answer(request, "jobs/call.html", context, parts=["call-page"])


@require_POST
def stop_job(request: HttpRequest, shown: str) -> HttpResponse:
    """Cancel a job. A second click finds it being stopped and says so; nothing is done twice."""
    seat = seat_of(request)
    job_id = id_in(ids.JOB, shown)
    head = traces.head(seat.tenant, job_id)
    if head is None:
        raise Http404
    if why_not := _why_not_stop(seat, head):
        if not head.over and head.state != "cancelling":
            raise PermissionDenied(why_not)
        messages.info(request, why_not)
    else:
        try:
            cancel_job(tenant=seat.tenant, job_id=job_id, by=actor_of(request))
        except AlreadyOver as error:
            messages.info(request, f"It was not stopped: {error}.")
    return HttpResponseRedirect(reverse("job", args=[shown]))


def _why_not_stop(seat: Seat, head: JobHead) -> str | None:
    started_it = head.started_by_id == seat.person_id
    return why_not_stop(head.state, operator=seat.may(Role.OPERATOR), started_it=started_it)


def _number(text: str | None) -> int | None:
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) < 10**8:
        raise Http404
    return int(text[:9])
