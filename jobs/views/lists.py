"""The list of jobs, and a job's start."""

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.crypto import get_random_string
from django.views.decorators.http import require_GET, require_http_methods

from base import ids
from base.htmx import page as answer
from catalog.queries.agents import agent_choices
from jobs.models import Starter
from jobs.operations.intake import CannotStart, start_job
from jobs.queries.lists import VIEWS, JobFilter, jobs_page
from jobs.queries.trace import job_input
from jobs.rules.permits import why_not_start
from tenants.models import Role
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
        before=_job_id(request.GET.get("before")),
        newest=_job_id(request.GET.get("newest")),
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


@require_http_methods(["GET", "HEAD", "POST"])
def new_job(request: HttpRequest) -> HttpResponse:
    """Choose an agent, give its input, start it. What was typed stays when something is wrong."""
    seat = seat_of(request)
    if request.method == "POST":
        return _start(request)
    source = _job_id(request.GET.get("from"))
    given = job_input(seat.tenant, source) if source else None
    typed = {
        "agent": request.GET.get("agent", ""),
        "title": "",
        "input": json.dumps(given, indent=2, ensure_ascii=False) if given else "",
    }
    return _form(request, typed)


def _start(request: HttpRequest) -> HttpResponse:
    seat = seat_of(request)
    if why_not := why_not_start(operator=seat.may(Role.OPERATOR)):
        raise PermissionDenied(why_not)
    typed = {name: request.POST.get(name, "") for name in ("agent", "title", "input")}
    given, trouble = _read_input(typed["input"])
    if trouble:
        return _form(request, typed, error=trouble, bad_input=True)
    try:
        job_id = start_job(
            tenant=seat.tenant,
            agent=typed["agent"],
            given=given,
            starter=Starter.PERSON,
            person=seat.person_id,
            title=typed["title"].strip(),
            start_key=request.POST.get("once", "")[:64],  # the same form sent twice starts one job (CASES V09)
        )
    except CannotStart as error:
        return _form(request, typed, error=str(error), bad_input="input" in str(error))
    return HttpResponseRedirect(reverse("job", args=[ids.show(ids.JOB, job_id)]))


def _read_input(text: str) -> tuple[dict[str, Any], str]:
    """The input as an object, or why it is none."""
    if not text.strip():
        return {}, ""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        return {}, f"The input is not JSON: {error.msg}, line {error.lineno}, column {error.colno}."
    except RecursionError:
        return {}, "The input is nested too deep."
    if not isinstance(value, dict):
        return {}, 'The input must be a JSON object, such as {"month": "2026-10"}.'
    return value, ""


def _form(request: HttpRequest, typed: dict[str, str], *, error: str = "", bad_input: bool = False) -> HttpResponse:
    context = {
        "agents": agent_choices(seat_of(request).tenant),
        "typed": typed,
        "error": error,
        "bad_input": bad_input,
        "once": get_random_string(24),
        "why_not": why_not_start(operator=seat_of(request).may(Role.OPERATOR)),
    }
    return answer(request, "jobs/new.html", context, status=422 if error else 200)


def _job_id(text: str | None) -> UUID | None:
    if not text:
        return None
    try:
        return ids.parse(ids.JOB, text)
    except ids.BadId as error:
        raise Http404 from error
