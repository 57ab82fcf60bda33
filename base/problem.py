"""What went wrong, told to a program: a problem document (RFC 9457)."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final

from django.http import HttpRequest, JsonResponse

FOR_PROGRAMS: Final = ("/api/", "/hooks/")
KIND: Final = "application/problem+json"


def problem(status: HTTPStatus, detail: str, *, errors: Iterable[tuple[str, str]] = ()) -> JsonResponse:
    """An answer with this status; `detail` is a sentence that says what to do, in our own words only.

    `errors` are (where, what), of a body or a query with more than one mistake in it.
    """
    told: dict[str, Any] = {"type": "about:blank", "title": status.phrase, "status": status.value, "detail": detail}
    if found := [{"at": at, "detail": what} for at, what in errors]:
        told["errors"] = found
    answer = JsonResponse(told, status=status, content_type=KIND)
    answer["Cache-Control"] = "no-store"
    return answer


def is_for_programs(request: HttpRequest) -> bool:
    """Whether what is asked for is answered by problem documents, and by no page."""
    return request.path.startswith(FOR_PROGRAMS)
