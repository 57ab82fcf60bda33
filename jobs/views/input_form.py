"""The part of a form that fills in an agent's input, of a start or a routine: fields of its own, or their JSON."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.http import HttpRequest

from base.text import pretty
from catalog.queries.agents import AgentChoice
from catalog.rules import filling_form
from catalog.rules.agent_input import schema_of
from catalog.rules.agents import AgentSpec
from catalog.rules.filling_form import Field
from jobs.rules.arguments import misfits

BEGINNINGS: Final = (filling_form.FIELD, filling_form.FIELD_OF_JSON)
NO_JSON: Final = "This is not JSON: look for a missing quote, comma or bracket."


@dataclass(frozen=True, slots=True)
class Typed:
    """What stands in the form: the agent's fields, or None and a text of JSON."""

    agent: str
    title: str
    fields: tuple[Field, ...] | None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Sent:
    """What a form sent. `given` is the input, None where the form is to be shown once more as `typed`, and why."""

    typed: Typed
    given: dict[str, Any] | None
    error: str = ""
    wrong: tuple[tuple[str, str], ...] = ()
    status: int = 200


class _NotAnObject(ValueError):
    """The input cannot be read; the message is a sentence of ours."""


def sent(request: HttpRequest, choices: Sequence[AgentChoice]) -> Sent:
    """Read what was sent: as JSON (`do=json`), as fields (`do=fields`) or those of the agent chosen (`do=show`) it is
    shown once more, and without `do` it is an input or says what is wrong with it."""
    agent, before = request.POST.get("agent", ""), request.POST.get("for", "")
    chosen, shown = spec_of(choices, agent), spec_of(choices, before or agent)
    do = request.POST.get("do", "") or request.GET.get("do", "")
    title = request.POST.get("title", "")
    typed = replace(_typed(request, shown), agent=agent, title=title)
    if before and before != agent:
        moved = _moved(typed, shown, chosen)
        if do == "show":
            return Sent(moved, None)
        if _touched(typed, shown):
            why = f"The fields were those of {before}. These are {agent}'s, with what you typed where it has the same."
            return Sent(moved, None, why, status=422)
        typed = moved
    try:
        given = _given(typed)
    except _NotAnObject as error:
        return Sent(typed, None, str(error), (("$", str(error)),), 422)
    if do == "json":
        return Sent(replace(typed, fields=None, text=pretty(given)), None)
    if do == "fields":
        return Sent(replace(begun_as(chosen, agent, given), title=title), None)
    wrong = _misfits(typed.fields, given, chosen) if chosen is not None and typed.fields else ()
    return Sent(typed, None, "", wrong, 422) if wrong else Sent(typed, given)


def context(
    choices: Sequence[AgentChoice], typed: Typed, *, error: str = "", wrong: Sequence[tuple[str, str]] = ()
) -> dict[str, Any]:
    """What `jobs/input.html` and a form around it need."""
    chosen = next((one for one in choices if one.name == typed.agent), None)
    found = filling_form.beside(typed.fields or (), wrong)
    beside = [(one, [_words(one, what) for what in whats]) for one, whats in found]
    elsewhere = [
        what for path, what in wrong if not any(filling_form.about(path, one.name) for one in typed.fields or ())
    ]
    return {
        "agents": choices,
        "any": any(one.spec is not None for one in choices),
        "chosen": chosen,
        "typed": typed,
        "fields": beside,
        "as_json": typed.fields is None,
        "error": error or ("" if typed.fields is None or not elsewhere else "; ".join(elsewhere)),
        "marked": sum(bool(what) for _, what in beside),
        "bad_input": bool(wrong) and typed.fields is None,
    }


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


def chosen_of(choices: Sequence[AgentChoice], wanted: str) -> AgentChoice | None:
    """The agent that an address names, else the first one that can be started."""
    can = [one for one in choices if one.spec is not None]
    return next((one for one in choices if one.name == wanted), can[0] if can else None)


def spec_of(choices: Sequence[AgentChoice], name: str) -> AgentSpec | None:
    return next((one.spec for one in choices if one.name == name), None)


def begun(chosen: AgentChoice | None, given: dict[str, Any], *, as_json: bool) -> Typed:
    if chosen is None:
        return Typed("", "", None)
    if as_json and chosen.spec is not None:
        return Typed(chosen.name, "", None, pretty({**chosen.spec.input, **given}))
    return begun_as(chosen.spec, chosen.name, given)


def begun_as(spec: AgentSpec | None, agent: str, given: dict[str, Any]) -> Typed:
    """The fields of an agent with this input, or its JSON where fields do not say all of it."""
    if spec is None:
        return Typed(agent, "", None, pretty(given) if given else "")
    value = {**spec.input, **given}
    if not value:
        return Typed(agent, "", ())
    fields = filling_form.fields(schema_of(spec), _without_nulls(value), json_fields=True)
    return Typed(agent, "", fields, "" if fields is not None else pretty(value))


def _without_nulls(value: dict[str, Any]) -> dict[str, Any]:
    """Null is what an empty field leaves: the agent's own."""
    return {name: one for name, one in value.items() if one is not None}


def _typed(request: HttpRequest, spec: AgentSpec | None) -> Typed:
    if "input" in request.POST:
        return Typed("", "", None, request.POST["input"])
    sent = {name: str(value) for name, value in request.POST.items()}
    begun = begun_as(spec, "", {})
    if begun.fields is None or not any(name.startswith(BEGINNINGS) for name in sent):
        return begun
    return replace(begun, fields=filling_form.filled(begun.fields, sent))


def _touched(typed: Typed, spec: AgentSpec | None) -> bool:
    """Whether anything was typed: a form that only shows the agent's own values has nothing to lose."""
    if typed.fields is None:
        return typed.text.replace("\r\n", "\n").strip() not in ("", pretty(dict(spec.input)) if spec else "")
    return typed.fields != begun_as(spec, "", {}).fields


def _moved(typed: Typed, before: AgentSpec | None, now: AgentSpec | None) -> Typed:
    """The form of another agent than the fields were filled in for: what was typed stays where it has the same."""
    begun = replace(begun_as(now, typed.agent, {}), title=typed.title)
    if typed.fields is None:
        own_text = pretty(dict(now.input)) if now else ""
        return replace(begun, fields=None, text=typed.text if _touched(typed, before) else own_text)
    if begun.fields is None:
        return begun
    own = {one.name: one.text for one in begun_as(before, "", {}).fields or ()}
    changed = {one.name: one.text for one in typed.fields if one.text != own.get(one.name)}
    return replace(begun, fields=tuple(replace(one, text=changed.get(one.name, one.text)) for one in begun.fields))


def _given(typed: Typed) -> dict[str, Any]:
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


def _words(field: Field, what: str) -> str:
    """What is wrong with a field, in words that need no schema."""
    if "is not of type" not in what or field.type == filling_form.JSON:
        return what if what == NO_JSON else f"{what[:1].upper()}{what[1:]}."
    if field.type == filling_form.LIST:
        return "A line of it is not a number."
    return f"This is not a {field.takes}."
