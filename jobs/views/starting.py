"""Starting a job: a form of the agent's own inputs, or their JSON."""

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.crypto import get_random_string
from django.views.decorators.http import require_http_methods

from base import ids
from base.htmx import page as answer
from catalog.queries.agents import AgentChoice, agent_choices
from jobs.models import Starter
from jobs.operations.intake import CannotStart, start_job
from jobs.queries.trace import job_input
from jobs.views import input_form
from jobs.views.input_form import Sent, Typed
from jobs.views.lists import job_id_of
from jobs.views.places import starter_of, why_not
from tenants.views.place import seat_of


@require_http_methods(["GET", "HEAD", "POST"])
def new_job(request: HttpRequest) -> HttpResponse:
    """Choose an agent, give its input, start it. What was typed stays when something is wrong.

    A POST starts, or shows the form once more without starting: as JSON (`do=json`), as fields (`do=fields`), or with
    those of the agent chosen (`do=show`). `?as=json` begins with the text.
    """
    seat = seat_of(request)
    choices = agent_choices(seat.tenant)
    if request.method != "POST":
        source = job_id_of(request.GET.get("from"))
        given = job_input(seat.tenant, source) if source else None
        chosen = input_form.chosen_of(choices, request.GET.get("agent", ""))
        as_json = request.GET.get("as") == "json"
        typed = input_form.begun(chosen, given if isinstance(given, dict) else {}, as_json=as_json)
        return _show(request, choices, Sent(typed, None))
    starter_of(request)
    sent = input_form.sent(request, choices)
    return _show(request, choices, sent) if sent.given is None else _start(request, choices, sent.typed, sent.given)


def _start(
    request: HttpRequest, choices: Sequence[AgentChoice], typed: Typed, given: dict[str, object]
) -> HttpResponse:
    seat = seat_of(request)
    try:
        job_id = start_job(
            tenant=seat.tenant,
            agent=typed.agent,
            given=given,
            starter=Starter.PERSON,
            person=seat.person_id,
            title=typed.title.strip(),
            start_key=request.POST.get("once", "")[:64],  # the same form sent twice starts one job (CASES V09)
        )
    except CannotStart as error:
        beside = error.troubles or ((("$", str(error)),) if "input" in str(error) else ())
        told = "" if error.troubles and typed.fields else str(error)
        return _show(request, choices, Sent(typed, None, told, tuple(beside), 422))
    return HttpResponseRedirect(reverse("job", args=[ids.show(ids.JOB, job_id)]))


def _show(request: HttpRequest, choices: Sequence[AgentChoice], sent: Sent) -> HttpResponse:
    context = input_form.context(choices, sent.typed, error=sent.error, wrong=sent.wrong) | {
        "once": get_random_string(24),
        "why_not": why_not(seat_of(request)),
    }
    return answer(request, "jobs/new.html", context, parts=["job-input"], status=sent.status)
