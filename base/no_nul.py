"""Refuses requests with NUL in what they ask or say: PostgreSQL holds it in no text, so it names nothing of ours."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.utils.deprecation import MiddlewareMixin

from base.bounded_body import JOURNAL
from base.problem import is_for_programs, problem


class RefuseNul(MiddlewareMixin):
    """A query string with NUL asks for what is not there (404); a form with it is none of ours (400).

    What programs say is read as JSON, by the views that take it; the spend journal refuses such a query by itself.
    """

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: tuple[Any, ...], names: dict[str, Any]
    ) -> HttpResponse | None:
        """Before the view, and after the check of the form's token."""
        if request.path.startswith(JOURNAL):
            return None
        if is_for_programs(request):
            held = _holds_nul(request.GET)
            return problem(HTTPStatus.BAD_REQUEST, "A query cannot hold NUL.") if held else None
        if _holds_nul(request.GET):
            raise Http404("nothing is called by a name with NUL in it")
        if _holds_nul(request.POST):
            raise BadRequest("a form's text cannot hold NUL")
        return None


def _holds_nul(given: QueryDict) -> bool:
    return any("\0" in text for name, texts in given.lists() for text in (name, *texts))
