"""The catalog: what exists, what each function says it does, and what to fix."""

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from base.htmx import page as answer
from catalog.queries.pages import catalog_page
from tenants.views.place import seat_of


@require_GET
def catalog(request: HttpRequest) -> HttpResponse:
    """Plugins with their tools, functions and agents."""
    return answer(request, "catalog/catalog.html", {"page": catalog_page(seat_of(request).tenant)})


@require_GET
def tool(request: HttpRequest, slug: str) -> HttpResponse:
    """One tool of the catalog."""
    page = catalog_page(seat_of(request).tenant, tool=slug)
    if not page.plugins:
        raise Http404
    return answer(request, "catalog/catalog.html", {"page": page, "only": slug})
