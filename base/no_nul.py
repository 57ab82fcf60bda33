"""Refuses requests with NUL in what they ask or say: PostgreSQL holds it in no text, so it names nothing of ours."""

from collections.abc import Callable
from typing import Any

from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, QueryDict
from django.utils.deprecation import MiddlewareMixin


class RefuseNul(MiddlewareMixin):
    """A query string with NUL asks for what is not there (404); a form with it is none of ours (400)."""

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: tuple[Any, ...], names: dict[str, Any]
    ) -> None:
        """Before the view, and after the check of the form's token."""
        if _holds_nul(request.GET):
            raise Http404("nothing is called by a name with NUL in it")
        if _holds_nul(request.POST):
            raise BadRequest("a form's text cannot hold NUL")


def _holds_nul(given: QueryDict) -> bool:
    return any("\0" in text for name, texts in given.lists() for text in (name, *texts))
