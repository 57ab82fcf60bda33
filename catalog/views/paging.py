"""The number of a page in an address, and the addresses beside it."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest

from catalog.queries.paging import Paged


def page_number(request: HttpRequest) -> int:
    """The page that an address asks for; anything odd is the first."""
    said = request.GET.get("page", "1")
    return int(said) if said.isascii() and said.isdigit() and 0 < len(said) < 6 else 1


def addresses(page: Paged[Any], asked: Mapping[str, str]) -> dict[str, str]:
    """The queries of this page, the one before and the one after, with the same filters; empty where there is none."""

    def of(number: int) -> str:
        return urlencode({**asked, "page": str(number)})

    return {
        "here": of(page.page) if page.page > 1 else urlencode(asked),
        "newer": of(page.page - 1) if page.page > 1 else "",
        "older": of(page.page + 1) if page.more else "",
    }
