"""Trying the policy: what would become of a call, and what it would have said of the last days' calls.

Nothing runs and nothing is written. A draft comes by POST, as it does not fit an address; the rest is in the address.
"""

from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods

from approvals.queries.policy_replay import DAYS
from approvals.queries.policy_replay import replay as replayed
from approvals.queries.policy_simulation import Asked, choices
from approvals.queries.policy_simulation import simulate as simulated
from base.canonical import NotCanonical, parse
from base.htmx import page as answer
from catalog.queries.policies import number_in_force
from catalog.rules.policy_editing import BadDraft, read_draft
from catalog.rules.policy_explained import Part
from catalog.rules.policy_rules import STARTERS
from jobs.rules.arguments import unkeepable
from tenants.views.place import seat_of

REPEATS_MOST: Final = 1_000_000
ARGUMENTS_LONGEST: Final = 200_000  # characters


@dataclass(frozen=True, slots=True)
class _Typed:
    """The form of a simulated call, as it was filled in."""

    function: str
    agent: str
    starter: str
    arguments: str
    repeats: str
    tainted: bool
    over_rates: bool


@require_http_methods(["GET", "HEAD", "POST"])
def simulate(request: HttpRequest) -> HttpResponse:
    """What would become of the call that the form describes; `draft` holds rules to judge it by instead."""
    seat = seat_of(request)
    given = request.POST if request.method == "POST" else request.GET
    rules, trouble = _draft(given.get("draft", ""))
    typed = _Typed(
        function=given.get("function", "").strip()[:200],
        agent=given.get("agent", "").strip()[:64],
        starter=given.get("starter", STARTERS[0]),
        arguments=given.get("arguments", "{}")[:ARGUMENTS_LONGEST],
        repeats=given.get("repeats", "1").strip()[:10],
        tainted=given.get("tainted", "") == "yes",
        over_rates=given.get("over_rates", "") == "yes",
    )
    found, status = None, 400 if trouble else 200
    if typed.function and not trouble:
        asked = _asked(typed)
        found = simulated(seat.tenant, asked, rules) if isinstance(asked, Asked) else None
        trouble = asked if isinstance(asked, str) else "" if found else "The catalog lists no such function now."
        status = 422 if trouble else 200
    context = {
        "typed": typed,
        "found": found,
        "decided": next((told for told in found.explained.told if told.part is Part.DECIDES), None) if found else None,
        "trouble": trouble,
        "choices": choices(seat.tenant),
        "starters": STARTERS,
        "number": number_in_force(seat.tenant),
        "draft": given.get("draft", "") if rules is not None else "",
    }
    return answer(request, "approvals/policy_simulate.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
def replay(request: HttpRequest) -> HttpResponse:
    """What the policy in force, or the rules of a `draft`, would have said of the calls of the last seven days."""
    seat = seat_of(request)
    text = request.POST.get("draft", "")
    rules, trouble = _draft(text)
    context = {
        "page": None if trouble else replayed(seat.tenant, rules),
        "trouble": trouble,
        "days": DAYS,
        "number": number_in_force(seat.tenant),
        "draft": text if rules is not None else "",
    }
    return answer(request, "approvals/policy_replay.html", context, status=400 if trouble else 200)


def _draft(text: str) -> tuple[list[Any] | None, str]:
    """(the rules of a draft or None without one, what is wrong with it)."""
    if not text.strip():
        return None, ""
    try:
        return read_draft(text), ""
    except BadDraft as error:
        return None, f"The draft cannot be read: {error}."


def _asked(typed: _Typed) -> Asked | str:
    """The call that was described, or what is wrong with the description."""
    tool, dot, function = typed.function.partition(".")
    if not dot:
        return "Name a function as tool.function."
    if typed.starter not in STARTERS:
        return f"A job is started by one of {', '.join(STARTERS)}."
    if not (typed.repeats.isascii() and typed.repeats.isdigit() and 1 <= int(typed.repeats) <= REPEATS_MOST):
        return "How often the job asked for this call is a whole number from 1."
    try:
        arguments = parse(typed.arguments or "{}")
    except NotCanonical as error:
        return f"The arguments cannot be sent exactly as written: {error}."
    if not isinstance(arguments, dict):
        return "The arguments must be a JSON object."
    if trouble := unkeepable(arguments):
        return f"The arguments cannot be kept as written: {trouble}."
    return Asked(
        tool=tool,
        function=function,
        agent=typed.agent,
        starter=typed.starter,
        tainted=typed.tainted,
        arguments=arguments,
        repeats=int(typed.repeats),
        over_rates=typed.over_rates,
    )
