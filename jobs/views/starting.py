"""Starting a job: a form of the agent's own inputs, or their JSON."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.crypto import get_random_string
from django.views.decorators.http import require_http_methods

from base import ids
from base.htmx import page as answer
from base.text import pretty
from catalog.queries.agents import AgentChoice, agent_choices
from catalog.rules import filling_form
from catalog.rules.agent_input import schema_of
from catalog.rules.agents import AgentSpec
from catalog.rules.filling_form import Field
from jobs.models import Starter
from jobs.operations.intake import CannotStart, start_job
from jobs.queries.trace import job_input
from jobs.rules.arguments import misfits
from jobs.rules.permits import why_not_start
from jobs.views.lists import job_id_of
from tenants.models import Role
from tenants.views.place import seat_of

BEGINNINGS: Final = (filling_form.FIELD, filling_form.FIELD_OF_JSON)
NO_JSON: Final = "This is not JSON: look for a missing quote, comma or bracket."


@dataclass(frozen=True, slots=True)
class _Typed:
    """What stands in the form: the agent's fields, or None and a text of JSON."""

    agent: str
    title: str
    fields: tuple[Field, ...] | None
    text: str = ""


class _NotAnObject(ValueError):
    """The input cannot be read; the message is a sentence of ours."""


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
        chosen = _chosen(choices, request.GET.get("agent", ""))
        typed = _begun(chosen, given if isinstance(given, dict) else {}, as_json=request.GET.get("as") == "json")
        return _show(request, choices, typed)
    if why_not := why_not_start(operator=seat.may(Role.OPERATOR)):
        raise PermissionDenied(why_not)
    return _posted(request, choices)


def _posted(request: HttpRequest, choices: Sequence[AgentChoice]) -> HttpResponse:
    agent, before = request.POST.get("agent", ""), request.POST.get("for", "")
    chosen, shown = _spec(choices, agent), _spec(choices, before or agent)
    do = request.POST.get("do", "") or request.GET.get("do", "")
    title = request.POST.get("title", "")
    typed = replace(_typed(request, shown), agent=agent, title=title)
    if before and before != agent:
        moved = _moved(typed, shown, chosen)
        if do == "show":
            return _show(request, choices, moved)
        if _touched(typed, shown):
            why = f"The fields were those of {before}. These are {agent}'s, with what you typed where it has the same."
            return _show(request, choices, moved, error=why, status=422)
        typed = moved
    try:
        given = _given(typed)
    except _NotAnObject as error:
        return _show(request, choices, typed, error=str(error), wrong=(("$", str(error)),), status=422)
    if do == "json":
        return _show(request, choices, replace(typed, fields=None, text=pretty(given)))
    if do == "fields":
        return _show(request, choices, replace(_begun_as(chosen, agent, given), title=title))
    wrong = _misfits(typed.fields, given, chosen) if chosen is not None and typed.fields else ()
    if wrong:
        return _show(request, choices, typed, wrong=wrong, status=422)
    return _start(request, choices, typed, given)


def _misfits(fields: Sequence[Field], given: dict[str, Any], spec: AgentSpec) -> tuple[tuple[str, str], ...]:
    """What is wrong with what was typed. JSON may be whatever the agent's file does not forbid."""
    schema = schema_of(spec)
    for one in fields:
        free = one.name not in spec.input_schema and not isinstance(spec.input[one.name], dict | list)
        if one.type == filling_form.JSON and free:
            schema["properties"][one.name] = {}
    torn = {one.name for one in fields if one.type == filling_form.JSON and not filling_form.is_json(one.text)}
    found = [
        (path, what)
        for path, what in misfits(given, schema)
        if not any(filling_form.about(path, name) for name in torn)
    ]
    return (*found, *((f"$.{name}", NO_JSON) for name in sorted(torn)))


def _start(request: HttpRequest, choices: Sequence[AgentChoice], typed: _Typed, given: dict[str, Any]) -> HttpResponse:
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
        return _show(request, choices, typed, error=told, wrong=beside, status=422)
    return HttpResponseRedirect(reverse("job", args=[ids.show(ids.JOB, job_id)]))


def _chosen(choices: Sequence[AgentChoice], wanted: str) -> AgentChoice | None:
    """The agent that an address names, else the first one that can be started."""
    can = [one for one in choices if one.spec is not None]
    return next((one for one in choices if one.name == wanted), can[0] if can else None)


def _spec(choices: Sequence[AgentChoice], name: str) -> AgentSpec | None:
    return next((one.spec for one in choices if one.name == name), None)


def _begun(chosen: AgentChoice | None, given: dict[str, Any], *, as_json: bool) -> _Typed:
    if chosen is None:
        return _Typed("", "", None)
    if as_json and chosen.spec is not None:
        return _Typed(chosen.name, "", None, pretty({**chosen.spec.input, **given}))
    return _begun_as(chosen.spec, chosen.name, given)


def _begun_as(spec: AgentSpec | None, agent: str, given: dict[str, Any]) -> _Typed:
    """The fields of an agent with this input, or its JSON where fields do not say all of it."""
    if spec is None:
        return _Typed(agent, "", None, pretty(given) if given else "")
    value = {**spec.input, **given}
    if not value:
        return _Typed(agent, "", ())
    fields = filling_form.fields(schema_of(spec), _without_nulls(value), json_fields=True)
    return _Typed(agent, "", fields, "" if fields is not None else pretty(value))


def _without_nulls(value: dict[str, Any]) -> dict[str, Any]:
    """Null is what an empty field leaves: the agent's own."""
    return {name: one for name, one in value.items() if one is not None}


def _typed(request: HttpRequest, spec: AgentSpec | None) -> _Typed:
    if "input" in request.POST:
        return _Typed("", "", None, request.POST["input"])
    sent = {name: str(value) for name, value in request.POST.items()}
    begun = _begun_as(spec, "", {})
    if begun.fields is None or not any(name.startswith(BEGINNINGS) for name in sent):
        return begun
    return replace(begun, fields=filling_form.filled(begun.fields, sent))


def _touched(typed: _Typed, spec: AgentSpec | None) -> bool:
    """Whether anything was typed: a form that only shows the agent's own values has nothing to lose."""
    if typed.fields is None:
        return typed.text.replace("\r\n", "\n").strip() not in ("", pretty(dict(spec.input)) if spec else "")
    return typed.fields != _begun_as(spec, "", {}).fields


def _moved(typed: _Typed, before: AgentSpec | None, now: AgentSpec | None) -> _Typed:
    """The form of another agent than the fields were filled in for: what was typed stays where it has the same."""
    begun = replace(_begun_as(now, typed.agent, {}), title=typed.title)
    if typed.fields is None:
        own_text = pretty(dict(now.input)) if now else ""
        return replace(begun, fields=None, text=typed.text if _touched(typed, before) else own_text)
    if begun.fields is None:
        return begun
    own = {one.name: one.text for one in _begun_as(before, "", {}).fields or ()}
    changed = {one.name: one.text for one in typed.fields if one.text != own.get(one.name)}
    return replace(begun, fields=tuple(replace(one, text=changed.get(one.name, one.text)) for one in begun.fields))


def _given(typed: _Typed) -> dict[str, Any]:
    """The input that was typed. Raises `_NotAnObject`."""
    if typed.fields is not None:
        return filling_form.typed(typed.fields)
    if not typed.text.strip():
        return {}
    try:
        value = json.loads(typed.text)
    except json.JSONDecodeError as error:
        raise _NotAnObject(f"The input is not JSON: {error.msg}, line {error.lineno}, column {error.colno}.") from error
    except RecursionError as error:
        raise _NotAnObject("The input is nested too deep.") from error
    if not isinstance(value, dict):
        raise _NotAnObject('The input must be a JSON object, such as {"month": "2026-10"}.')
    return value


def _show(
    request: HttpRequest,
    choices: Sequence[AgentChoice],
    typed: _Typed,
    *,
    error: str = "",
    wrong: Sequence[tuple[str, str]] = (),
    status: int = 200,
) -> HttpResponse:
    chosen = next((one for one in choices if one.name == typed.agent), None)
    found = filling_form.beside(typed.fields or (), wrong)
    beside = [(one, [_words(one, what) for what in whats]) for one, whats in found]
    elsewhere = [
        what for path, what in wrong if not any(filling_form.about(path, one.name) for one in typed.fields or ())
    ]
    context = {
        "agents": choices,
        "any": any(one.spec is not None for one in choices),
        "chosen": chosen,
        "typed": typed,
        "fields": beside,
        "as_json": typed.fields is None,
        "error": error or ("" if typed.fields is None or not elsewhere else "; ".join(elsewhere)),
        "marked": sum(bool(what) for _, what in beside),
        "bad_input": bool(wrong) and typed.fields is None,
        "once": get_random_string(24),
        "why_not": why_not_start(operator=seat_of(request).may(Role.OPERATOR)),
    }
    return answer(request, "jobs/new.html", context, parts=["job-input"], status=status)


def _words(field: Field, what: str) -> str:
    """What is wrong with a field, in words that need no schema."""
    if "is not of type" not in what or field.type == filling_form.JSON:
        return what if what == NO_JSON else f"{what[:1].upper()}{what[1:]}."
    if field.type == filling_form.LIST:
        return "A line of it is not a number."
    return f"This is not a {field.takes}."
