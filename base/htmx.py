"""One view, one address, whole page or part: which of them a request wants, and an answer that tells caches."""

from collections.abc import Collection, Mapping
from typing import Any

from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils.cache import patch_vary_headers


def wanted_part(request: HttpRequest, parts: Collection[str]) -> str | None:
    """The id of the element that htmx will put the answer into, when it is one of `parts`; None for a whole page."""
    if request.headers.get("HX-Request") != "true" or request.headers.get("HX-History-Restore-Request") == "true":
        return None
    target = request.headers.get("HX-Target", "").rpartition("#")[2]
    return target if target in parts else None


def page(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any],
    *,
    parts: Collection[str] = (),
    status: int = 200,
) -> TemplateResponse:
    """The page, or the one partial of it that htmx asks for. `parts` name partials and the elements they fill."""
    part = wanted_part(request, parts)
    response = TemplateResponse(request, f"{template}#{part}" if part else template, dict(context), status=status)
    patch_vary_headers(response, ["HX-Request", "HX-Target"])
    response["Cache-Control"] = "no-store"
    return response
