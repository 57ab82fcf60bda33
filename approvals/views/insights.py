"""How deciding goes: what is asked how often, how long it takes, and what could be asked less."""

import json
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_GET

from approvals.queries.insights import insights as read
from approvals.rules.insights import RANGES, Advice
from base.htmx import page as answer
from tenants.views.place import seat_of


@require_GET
def insights(request: HttpRequest) -> HttpResponse:
    """The figures of the last 7, 30 or 90 days; which, is in the address."""
    asked = request.GET.get("days", "")
    days = next((one for one in RANGES if str(one) == asked), 30)
    found = read(seat_of(request).tenant, days=days)
    context = {
        "seen": found,
        "days": days,
        "ranges": RANGES,
        "most": max((row.answers.asked for row in found.functions), default=0),
        "most_of_rule": max((row.answers.asked for row in found.rules), default=0),
        "advice": [(one, *_place(one)) for one in found.advice],
    }
    return answer(request, "approvals/insights.html", context)


def _place(advice: Advice) -> tuple[str, str]:
    """(the address, the word of the link) where something can be done about it."""
    tool, _, function = advice.about.partition(".")
    match advice.where:
        case "allow":
            return (
                f"{reverse('policy-waiting')}?{urlencode({'tool': tool, 'q': function})}",
                "See what would let it run",
            )
        case "refuse":
            rule = {"id": f"refuse-{tool}-{function}"[:100], "title": f"{advice.about} is refused"[:200]}
            paste = json.dumps({**rule, "effect": "refuse", "tool": tool, "function": function}, ensure_ascii=False)
            return f"{reverse('policy-edit')}?{urlencode({'add': paste})}", "Write that rule"
        case "notices":
            return reverse("notices"), "Notices"
        case "agents":
            return reverse("agents"), "Agents"
        case _:
            return reverse("policy"), "Policy"
