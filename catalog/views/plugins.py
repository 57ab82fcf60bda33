"""Plugins: all of them, one with its versions and files, uploading a pack, and going back to an earlier version."""

from collections.abc import Sequence
from typing import Final

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from base.folders import BadFolder
from base.htmx import page as answer
from base.portable import MAX_PACK
from catalog.models import Came
from catalog.operations import plugins
from catalog.operations.unpacking import files_in
from catalog.queries.plugin_pages import STANDINGS, PluginsPage, plugin_page, plugins_page
from catalog.rules.estimates import ERROR, METHOD
from catalog.rules.plugin_roles import why_not_bring, why_not_remove
from catalog.rules.problems import BadPlugin, Problem
from tenants.views.place import actor_of, seat_of

MIB: Final = 2**20


@require_GET
def plugins_list(request: HttpRequest) -> HttpResponse:
    """All plugins; `?q=`, `?standing=` and `?came=` narrow them."""
    return answer(request, "catalog/plugins.html", _list(request), parts=["plugins-page"])


@require_GET
def plugin(request: HttpRequest, name: str) -> HttpResponse:
    """One plugin; `?version=` opens another version than the current one, `?against=` compares it with one."""
    return _page(request, name)


@require_http_methods(["GET", "HEAD", "POST"])
def upload(request: HttpRequest) -> HttpResponse:
    """Take a pack in from a browser. A pack that cannot be taken keeps the page, with all there is to mend."""
    seat = seat_of(request)
    forbidden = why_not_bring(seat.role)
    if request.method != "POST":
        return answer(request, "catalog/upload.html", {"why_not": forbidden, "most": MAX_PACK // MIB})
    if forbidden:
        raise PermissionDenied(forbidden)
    given = request.FILES.get("pack")
    if not isinstance(given, UploadedFile) or not given.name:
        problem = Problem("", 0, "", "no file was sent", "choose a pack, as `oz0 plugin pack` writes it")
        return _refused(request, "", [problem])
    try:
        taken = plugins.take(
            tenant=seat.tenant,
            files=files_in(given, given.name),
            home=settings.OZ0_HOME,
            actor=actor_of(request),
            came=Came.UPLOAD,
            file_name=given.name,
        )
    except BadPlugin as error:
        return _refused(request, given.name, error.problems)
    except BadFolder as error:
        return _refused(request, given.name, [Problem("", 0, "", str(error), "ask whoever runs this studio")])
    _say(request, taken)
    return HttpResponseRedirect(reverse("plugin", args=[taken.name]))


def _say(request: HttpRequest, taken: plugins.Registered) -> None:
    if not taken.fresh:
        messages.info(request, f"These very files are current already, as {taken.number}: nothing was changed.")
        return
    before = f" {taken.before} is kept, one click away." if taken.before else ""
    messages.success(request, f"{taken.name} {taken.number} is current now.{before} A node lists its servers.")


def _refused(request: HttpRequest, name: str, problems: Sequence[Problem]) -> HttpResponse:
    context = {"name": name, "problems": problems, "most": MAX_PACK // MIB}
    return answer(request, "catalog/upload.html", context, status=422)


@require_POST
def take_up(request: HttpRequest, name: str) -> HttpResponse:
    """Make another version of a plugin current."""
    seat = seat_of(request)
    if forbidden := why_not_bring(seat.role):
        raise PermissionDenied(forbidden)
    digest = request.POST.get("digest", "")
    try:
        taken = plugins.take_up(tenant=seat.tenant, plugin=name, digest=digest, actor=actor_of(request))
    except plugins.NoSuchVersion as error:
        raise Http404 from error
    except (BadFolder, BadPlugin) as error:
        return _page(request, name, error=str(error), status=409)
    _say(request, taken)
    return HttpResponseRedirect(reverse("plugin", args=[name]))


def _page(request: HttpRequest, name: str, *, error: str = "", status: int = 200) -> HttpResponse:
    seat = seat_of(request)
    asked = {key: request.GET.get(key, "")[:64] for key in ("version", "against")}
    page = plugin_page(seat.tenant, name, digest=asked["version"], against=asked["against"])
    if page is None:
        raise Http404
    context = {
        "page": page,
        "error": error,
        "why_not_bring": why_not_bring(seat.role),
        "why_not_remove": why_not_remove(seat.role),
        "address": request.get_full_path() if request.method == "GET" else reverse("plugin", args=[name]),
    }
    return answer(request, "catalog/plugin.html", context, parts=["plugin-page"], status=status)


def _list(request: HttpRequest) -> dict[str, object]:
    seat = seat_of(request)
    asked = {key: request.GET.get(key, "")[:64] for key in ("q", "standing", "came")}
    if asked["standing"] not in ("", *STANDINGS) or asked["came"] not in ("", *Came):
        raise Http404
    page: PluginsPage = plugins_page(seat.tenant, words=asked["q"], standing=asked["standing"], came=asked["came"])
    return {
        "page": page,
        "asked": asked,
        "standings": STANDINGS,
        "ways": list(Came),
        "why_not_bring": why_not_bring(seat.role),
        "address": request.get_full_path(),
        "method": METHOD,
        "error": ERROR,
    }
