"""The tool policy: what is in force and what it comes to, its versions, and its editor. Admins change it, by POST."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from base.htmx import page as answer
from catalog.operations import policies
from catalog.queries import policy_pages as pages
from catalog.queries.policy_waiting import Show, waiting_page
from catalog.rules.policy_diff import compare
from catalog.rules.policy_editing import NOTE_LONGEST, spell, why_not_edit
from catalog.rules.policy_fixes import Fix, Way
from catalog.views import policy_draft
from tenants.views.place import actor_of, seat_of

CONFLICT, UNPROCESSABLE = 409, 422


@require_GET
def policy(request: HttpRequest) -> HttpResponse:
    """The policy in force: its rules in words, what they are about, and what none of them names."""
    seat = seat_of(request)
    context = {"page": pages.policy_page(seat.tenant), "why_not": why_not_edit(seat.role)}
    return answer(request, "catalog/policy.html", context, parts=["policy-page"])


@require_GET
def waiting(request: HttpRequest) -> HttpResponse:
    """Which functions wait for a person, why, and the fix to paste; `?show=` `?tool=` `?q=` `?page=` say which."""
    seat = seat_of(request)
    wanted = {name: request.GET.get(name, "").strip()[:200] for name in ("show", "tool", "q")}
    show = Show(wanted["show"]) if wanted["show"] in set(Show) else Show.WAITS
    number = request.GET.get("page", "1")
    at = int(number) if number.isascii() and number.isdigit() and len(number) < 6 else 1
    page = waiting_page(seat.tenant, show=show, tool=wanted["tool"], words_=wanted["q"], page=max(1, at))
    filters = {"show": str(show), **{name: wanted[name] for name in ("tool", "q") if wanted[name]}}
    context = {
        "page": page,
        "wanted": {**wanted, "show": str(show)},
        "here": urlencode({**filters, "page": max(1, at)}),
        "newer": urlencode({**filters, "page": at - 1}) if at > 1 else "",
        "older": urlencode({**filters, "page": at + 1}) if page.more else "",
        "sorts": [(urlencode({**filters, "show": str(sort)}), sort, count) for sort, count in page.counts],
        "rows": [(row, with_adding(row.fixes)) for row in page.rows],
        "why_not": why_not_edit(seat.role),
    }
    return answer(request, "catalog/waiting.html", context, parts=["waiting-page"])


def with_adding(fixes: Iterable[Fix]) -> list[tuple[Fix, str]]:
    """Each way out, with the address of the editor that has its rule in the draft; empty where it is no rule."""
    editor = reverse("policy-edit")
    return [(fix, f"{editor}?{urlencode({'add': fix.paste})}" if fix.way is Way.RULE else "") for fix in fixes]


@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest) -> HttpResponse:
    """The draft of a new version. It lives in the form alone: nothing is kept before it is saved.

    `?from=` begins with an older version, `?add=` with one more rule, `?new=` with the form of a new one open.
    """
    if forbidden := why_not_edit(seat_of(request).role):
        raise PermissionDenied(forbidden)
    if request.method != "POST":
        return _show(request, _begun(request))
    draft = policy_draft.posted(request.POST)
    if draft.do == "save" and not draft.error:
        return _save(request, draft)
    return _show(request, draft, status=draft.status)


def _begun(request: HttpRequest) -> policy_draft.Draft:
    seat = seat_of(request)
    from_ = request.GET.get("from", "")
    number = int(from_) if from_.isascii() and from_.isdigit() and len(from_) < 9 else None
    found, newest = pages.draft_from(seat.tenant, number), pages.draft_from(seat.tenant)
    if found is None or newest is None:
        raise Http404
    rules = found[1]
    draft = policy_draft.Draft(rules if isinstance(rules, list) else [rules], seen=newest[0].number)
    if add := request.GET.get("add", "")[:20_000]:
        draft = policy_draft.with_pasted(draft, add)
    return replace(draft, open=policy_draft.NEW) if request.GET.get("new") else draft


def _save(request: HttpRequest, draft: policy_draft.Draft) -> HttpResponse:
    seat = seat_of(request)
    try:
        number = policies.save(
            tenant=seat.tenant, rules=draft.rules, seen=draft.seen, note=draft.note, by=actor_of(request)
        )
    except policies.PolicyMoved as moved:
        return _put_together(request, draft, moved.newest)
    except policies.BadPolicy as bad:
        return _show(request, draft.with_error("It was not saved", *bad.troubles), status=UNPROCESSABLE)
    messages.success(request, f"Version {number} is in force from now on.")
    return HttpResponseRedirect(reverse("policy"))


def _put_together(request: HttpRequest, draft: policy_draft.Draft, newest: int) -> HttpResponse:
    """Somebody else saved first: their version with this person's changes made to it, to be looked at and saved."""
    seat = seat_of(request)
    base, theirs = pages.draft_from(seat.tenant, draft.seen), pages.draft_from(seat.tenant, newest)
    if base is None or theirs is None:
        raise Http404
    merged, conflict = policy_draft.put_together(draft, base[1], theirs)
    return _show(request, merged, conflict=conflict, status=CONFLICT)


def _show(
    request: HttpRequest, draft: policy_draft.Draft, *, conflict: policy_draft.Conflict | None = None, status: int = 200
) -> HttpResponse:
    seat = seat_of(request)
    seen = pages.draft_from(seat.tenant, draft.seen)
    context: dict[str, Any] = {
        "draft": draft,
        "text": spell(draft.rules),
        "rows": pages.rows_of(seat.tenant, draft.rules),
        "changes": compare(seen[1] if seen else [], draft.rules),
        "seen": seen[0] if seen else None,
        "conflict": conflict,
        "form": policy_draft.form_of(draft),
        "most_note": NOTE_LONGEST,
    }
    return answer(request, "catalog/policy_edit.html", context, status=status)


@require_GET
def versions(request: HttpRequest) -> HttpResponse:
    """Every version: who, when, why."""
    rows, now = pages.versions_page(seat_of(request).tenant)
    return answer(request, "catalog/policy_versions.html", {"rows": rows, "now": now})


@require_GET
def version(request: HttpRequest, number: int) -> HttpResponse:
    """One version and what it changed; `?beside=` compares it with another one than the one before it."""
    seat = seat_of(request)
    beside = request.GET.get("beside", "")
    with_ = int(beside) if beside.isascii() and beside.isdigit() and len(beside) < 9 else None
    page = pages.version_page(seat.tenant, number, with_)
    if page is None:
        raise Http404
    return _version(request, page)


def _version(request: HttpRequest, page: pages.VersionPage, *, error: str = "", status: int = 200) -> HttpResponse:
    context = {
        "page": page,
        "why_not": why_not_edit(seat_of(request).role),
        "text": spell(page.raw),
        "error": error,
        "most_note": NOTE_LONGEST,
        "note": request.POST.get("note", ""),
    }
    return answer(request, "catalog/policy_version.html", context, status=status)


@require_POST
def restore(request: HttpRequest, number: int) -> HttpResponse:
    """Put the rules of an older version in force again, as a new version. `seen` is the version that was in force."""
    seat = seat_of(request)
    if forbidden := why_not_edit(seat.role):
        raise PermissionDenied(forbidden)
    found = pages.draft_from(seat.tenant, number)
    page = pages.version_page(seat.tenant, number)
    if found is None or page is None:
        raise Http404
    try:
        made = policies.save(
            tenant=seat.tenant,
            rules=found[1] if isinstance(found[1], list) else [found[1]],
            seen=policy_draft.number(request.POST.get("seen", "")),
            note=request.POST.get("note", ""),
            by=actor_of(request),
            restores=number,
        )
    except policies.PolicyMoved as moved:
        error = (
            f"Version {moved.newest} was saved since you looked. Nothing was changed: look at it before you restore."
        )
        return _version(request, page, error=error, status=CONFLICT)
    except policies.BadPolicy as bad:
        error = f"Nothing was changed: {bad}. An old version that cannot be saved as it is can be edited."
        return _version(request, page, error=error, status=UNPROCESSABLE)
    messages.success(request, f"Version {made} is in force: the rules of version {number} again.")
    return HttpResponseRedirect(reverse("policy"))
