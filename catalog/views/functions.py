"""The list of functions, whose filters are all in its address."""

from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_GET

from base.htmx import page as answer
from catalog.queries.function_list import ANY, functions_page
from catalog.queries.policy_waiting import Show
from catalog.rules.estimates import ERROR, METHOD, ONE_IS_LONG
from catalog.rules.function_filter import LONGEST, TOKENS_MOST, FunctionFilter, Order
from catalog.rules.kinds import Kind
from catalog.views.paging import addresses, page_number
from tenants.views.place import seat_of

FARES: Final = {
    Show.WAITS: "every call waits",
    Show.SOMETIMES: "some calls fare otherwise",
    Show.REFUSED: "refused",
    Show.RUNS: "runs unasked",
}
ORDERS: Final = {Order.NAME: "by name", Order.TOKENS: "by tokens", Order.KIND: "by kind", Order.PLUGIN: "by plugin"}
SIZES: Final = (250, 500, 1_000, ONE_IS_LONG)


@require_GET
def functions(request: HttpRequest) -> HttpResponse:
    """Every function that the filter in the address lets through, a page at a time."""
    wanted, number = _wanted(request), page_number(request)
    if any(not value for value in request.GET.values()):  # a form sends its empty fields too
        return HttpResponseRedirect(f"{reverse('functions')}?{urlencode(wanted.asked)}".rstrip("?"))
    page = functions_page(seat_of(request).tenant, wanted, number)
    context = {
        "page": page,
        "wanted": wanted,
        "kinds": list(Kind),
        "fares": list(FARES.items()),
        "orders": list(ORDERS.items()),
        "sizes": sorted({*SIZES, *([wanted.over] if wanted.over else [])}),
        "any": ANY,
        **addresses(page, wanted.asked),
        "method": METHOD,
        "error": ERROR,
    }
    return answer(request, "catalog/functions.html", context, parts=["functions-page"])


def _wanted(request: HttpRequest) -> FunctionFilter:
    """The filter of an address. What is no filter of ours is passed over."""
    names = ("q", "kind", "tool", "plugin", "agent", "fares", "findings")
    said = {name: request.GET.get(name, "").replace("\0", "").strip()[:LONGEST] for name in names}
    sort = request.GET.get("sort", "")
    return FunctionFilter(
        q=said["q"],
        kind=said["kind"] if said["kind"] in set(Kind) else "",
        tool=said["tool"],
        plugin=said["plugin"],
        agent=said["agent"],
        fares=said["fares"] if said["fares"] in set(Show) else "",
        findings=said["findings"],
        over=_number(request, "over", TOKENS_MOST),
        sort=Order(sort) if sort in set(Order) else Order.NAME,
    )


def _number(request: HttpRequest, name: str, most: int) -> int:
    said = request.GET.get(name, "")
    return min(int(said), most) if said.isascii() and said.isdigit() and len(said) < 9 else 0
