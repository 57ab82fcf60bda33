"""What went wrong, told to a program: a problem document (RFC 9457)."""

from http import HTTPStatus

from django.http import JsonResponse


def problem(status: HTTPStatus, detail: str) -> JsonResponse:
    """An answer with this status; `detail` is a sentence that says what to do, in our own words only."""
    told = {"type": "about:blank", "title": status.phrase, "status": status.value, "detail": detail}
    answer = JsonResponse(told, status=status, content_type="application/problem+json")
    answer["Cache-Control"] = "no-store"
    return answer
