"""What programs may ask for: the routers of the apps as one API, and its description (OpenAPI)."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import URLPattern
from django.views.decorators.http import require_GET
from ninja import NinjaAPI
from ninja.parser import Parser
from ninja.renderers import JSONRenderer

from approvals.api import holds
from base.htmx import page as answer
from budgets.api import admission, pairs, usage
from budgets.api.door import of_anybody, of_journal, of_logins
from catalog.api import functions, tokens
from jobs.api import calls, events, jobs
from studio import description
from tenants.rules.bearers import Scope
from tenants.views.place import seat_of
from tenants.views.programs import JSON, allow, asker_of, for_programs

PREFIX: Final = "/api/v1/"
JOURNAL: Final = "budgets/"  # what stands around these is the spend journal's own
OF_OTHERS: Final = {"budgets/tokens": of_logins, "budgets/tokens/refresh": of_anybody}
EXAMPLE: Final = """curl -H "Authorization: Bearer $OZ0_TOKEN" -H "Idempotency-Key: 2026-10-nightly" \\
     -H "Content-Type: application/json" -d '{"agent": "clerk", "input": {"month": "2026-10"}}' URL/api/v1/jobs
curl -H "Authorization: Bearer $OZ0_TOKEN" -N -H "Accept: text/event-stream" URL/api/v1/jobs/job_…/events"""


class OnlyJson(Parser):
    """JSON as RFC 8259 has it, in UTF-8: no NaN, and no name twice."""

    def parse_body(self, request: HttpRequest) -> Any:
        """What the body says. Raises `ValueError`."""
        return json.loads(request.body.decode("utf-8"), parse_constant=_no_number, object_pairs_hook=_once)


class Utf8(JSONRenderer):
    """UTF-8, not escaped: what reads an answer counts its bytes (RULES W2)."""

    json_dumps_params: Mapping[str, Any] = {"ensure_ascii": False}


class Api(NinjaAPI):
    """The API, whose errors are told by `tenants.views.programs` alone."""

    def get_content_type(self) -> str:
        """JSON is UTF-8, and has no parameter that says so."""
        return JSON

    def on_exception(self, request: HttpRequest, exc: Any) -> NoReturn:
        """Leave it to what stands around every address."""
        raise exc


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return found


api: Final = Api(
    title="oz0 studio",
    version="1",
    description="Start jobs, follow them, and read what the studio knows. Nothing here answers a question.",
    docs_url=None,
    openapi_url=None,
    parser=OnlyJson(),
    renderer=Utf8(),
)
OF_BUDGETS: Final = (admission.router, usage.router, pairs.router)
for router in (jobs.router, events.router, calls.router, holds.router, functions.router, tokens.router, *OF_BUDGETS):
    api.add_router("", router)


def _described() -> dict[str, Any]:
    return description.completed(api.get_openapi_schema(path_prefix=PREFIX))


@for_programs
@require_GET
def openapi(request: HttpRequest) -> HttpResponse:
    """The description of all of it, for programs that make clients and for those that test this one."""
    allow(asker_of(request), Scope.READ, free=True)
    return JsonResponse(_described())


@require_GET
def api_page(request: HttpRequest) -> HttpResponse:
    """The same for people."""
    seat_of(request)
    example = EXAMPLE.replace("URL", settings.OZ0_URL.rstrip("/"))
    return answer(request, "settings/api.html", {"found": description.read(_described()), "example": example})


def _around(place: str) -> Callable[..., Any]:
    return OF_OTHERS.get(place, of_journal if place.startswith(JOURNAL) else for_programs)


def addresses() -> list[URLPattern]:
    """The API's addresses below its prefix, each behind what stands around all of them."""
    found = [one for one in api.urls[0] if isinstance(one, URLPattern) and one.name != "api-root"]
    for one in found:
        one.callback = _around(str(one.pattern))(one.callback)
    return found
