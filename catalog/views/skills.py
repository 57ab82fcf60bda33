"""The skills that agents may read."""

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from base import tokens
from base.htmx import page as answer
from catalog.queries.skill_pages import skill_page, skills_page
from catalog.rules.estimates import ERROR
from catalog.views.paging import addresses, page_number
from tenants.views.place import seat_of

ABOUT = {"basis": tokens.BASIS, "error": ERROR}


@require_GET
def skills(request: HttpRequest) -> HttpResponse:
    """Every skill of the current plugins; `?q=` and `?plugin=` narrow the list."""
    words, plugin = request.GET.get("q", "")[:200], request.GET.get("plugin", "")[:64]
    words = words.replace("\0", "")
    page = skills_page(seat_of(request).tenant, words=words, plugin=plugin, page=page_number(request))
    asked = {name: said for name, said in (("q", words), ("plugin", plugin)) if said}
    context = {"page": page, "q": words, "plugin": plugin, **addresses(page, asked)}
    return answer(request, "catalog/skills.html", context | ABOUT, parts=["skills-page"])


@require_GET
def skill(request: HttpRequest, plugin: str, name: str) -> HttpResponse:
    """One skill; `?version=` shows it in an older version of its plugin."""
    page = skill_page(seat_of(request).tenant, plugin, name, version=_version(request.GET.get("version", "")))
    if page is None:
        raise Http404
    return answer(request, "catalog/skill.html", {"page": page, **ABOUT})


def _version(text: str) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError as error:
        raise Http404 from error
