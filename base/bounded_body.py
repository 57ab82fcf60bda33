"""Refuses requests whose body is larger than anything the studio takes, before a byte of it is looked at."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin

from base.portable import MAX_PACK
from base.problem import is_for_programs, problem

AROUND: Final = 256 * 1024  # bytes of a form beside the pack in it
OF_PROGRAMS: Final = 256 * 1024  # bytes of what a program says
EVENTS: Final = "/hooks/"  # bounded by their own view, which reads no form
JOURNAL: Final = "/api/v1/budgets/"
OF_JOURNAL: Final = 4 * 2**20  # bytes of what one says to the spend journal (RULES W2)


class BoundedBody(MiddlewareMixin):
    """A body may be as large as a form with one pack. It stands before whatever reads a form."""

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: tuple[Any, ...], names: dict[str, Any]
    ) -> HttpResponse | None:
        """Before the view, and before the check of the form's token, which reads the form."""
        length = str(request.META.get("CONTENT_LENGTH") or 0)
        if request.path.startswith(JOURNAL):
            if length.isdigit() and int(length) <= OF_JOURNAL:
                return None
            return JsonResponse({"detail": {"code": "too_large"}}, status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        if request.path.startswith(EVENTS):
            return None
        if is_for_programs(request):
            if length.isdigit() and int(length) <= OF_PROGRAMS:
                return None
            return problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"A body here has at most {OF_PROGRAMS} bytes.")
        if length.isdigit() and int(length) <= MAX_PACK + AROUND:
            return None
        return render(request, "413.html", {"most": MAX_PACK // 2**20, "back": request.path}, status=413)
