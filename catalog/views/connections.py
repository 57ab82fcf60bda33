"""Connections to remote servers, for admins: their address, allow-list and credential, and signing in by OAuth.

Signing in leaves by a page of its own: browsers hold a form to the addresses its page allows (`form-action`), also
after a redirect, and the provider's address is known only once the form was sent.
"""

import secrets
from typing import Final
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from base import ids
from base.htmx import page as answer
from catalog.models import Credential
from catalog.operations import connections as operations
from catalog.operations import signing_in
from catalog.operations.connections import BadConnection, Given
from catalog.queries.connections import ConnectionRow, connection_page, connections_page
from catalog.rules.model_names import ANTHROPIC, GOOGLE, OPENAI
from catalog.rules.oauth import CannotSignIn
from tenants.models import Role
from tenants.views.place import actor_of, seat_with

BEGUN: Final = "oauth"  # the session's key for sign-ins whose person is at the provider: nonce → connection
MOST_BEGUN: Final = 5
OF_MODELS: Final = {"Anthropic": ANTHROPIC, "OpenAI": OPENAI, "Google": GOOGLE}
KINDS: Final = (
    (Credential.NONE, "Nothing"),
    (Credential.BEARER, "A bearer token"),
    (Credential.HEADER, "A header of its own"),
    (Credential.OAUTH, "A token that an admin signs in for (OAuth)"),
)


@require_GET
def connections(request: HttpRequest) -> HttpResponse:
    """All connections."""
    rows, now = connections_page(seat_with(request, Role.ADMIN).tenant)
    return answer(request, "catalog/connections.html", {"rows": rows, "now": now})


@sensitive_variables()
@sensitive_post_parameters("value")
@require_http_methods(["GET", "HEAD", "POST"])
def new_connection(request: HttpRequest) -> HttpResponse:
    """Add a connection."""
    seat, typed, error = seat_with(request, Role.ADMIN), _typed(request), ""
    if request.method != "POST":
        typed |= _of_provider(request.GET.get("provider", ""))
    else:
        try:
            made = operations.make(
                tenant=seat.tenant,
                name=typed["name"],
                url=typed["url"],
                allowed=typed["allowed"].split(),
                given=_given(request),
                actor=actor_of(request),
            )
        except BadConnection as refused:
            error = str(refused)
        else:
            messages.success(request, f"Connection {typed['name']} is there.")
            return HttpResponseRedirect(reverse("connection", args=[ids.show(ids.CONNECTION, made)]))
    context = {"typed": typed, "kinds": KINDS, "error": error, "providers": OF_MODELS}
    return answer(request, "catalog/new_connection.html", context, status=422 if error else 200)


@sensitive_variables()
@sensitive_post_parameters("value")
@require_http_methods(["GET", "HEAD", "POST"])
def connection(request: HttpRequest, shown: str) -> HttpResponse:
    """One connection; a POST changes its address, allow-list or credential."""
    seat, pk = seat_with(request, Role.ADMIN), _id(shown)
    if request.method != "POST":
        return _page(request, pk)
    row = _row(request, pk)
    typed = _typed(request)
    try:
        operations.change(
            tenant=seat.tenant,
            name=row.name,
            url=typed["url"],
            allowed=typed["allowed"].split(),
            given=_given(request),
            actor=actor_of(request),
            ask_again="ask_again" in request.POST,
        )
    except BadConnection as refused:
        return _page(request, pk, error=str(refused), typed=typed, status=422)
    messages.success(request, "Saved. Sessions that used it as it was are replaced.")
    return HttpResponseRedirect(reverse("connection", args=[shown]))


@require_POST
def remove(request: HttpRequest, shown: str) -> HttpResponse:
    """Remove a connection that no tool uses."""
    seat, pk = seat_with(request, Role.ADMIN), _id(shown)
    row = _row(request, pk)
    try:
        operations.remove(tenant=seat.tenant, name=row.name, actor=actor_of(request))
    except BadConnection as refused:
        return _page(request, pk, error=str(refused), status=409)
    messages.success(request, f"Connection {row.name} is removed.")
    return HttpResponseRedirect(reverse("connections"))


@sensitive_variables()
@sensitive_post_parameters("secret")
@require_POST
def client(request: HttpRequest, shown: str) -> HttpResponse:
    """Keep the client that an admin registered at the provider, and the scopes to ask for."""
    seat, pk = seat_with(request, Role.ADMIN), _id(shown)
    try:
        signing_in.enter_client(
            tenant=seat.tenant,
            connection=pk,
            client_id=request.POST.get("client_id", "").strip(),
            secret=request.POST.get("secret", "").strip() or None,
            scopes=request.POST.get("scopes", ""),
            actor=actor_of(request),
        )
    except CannotSignIn as refused:
        return _page(request, pk, trouble=str(refused), status=422)
    messages.success(request, "Saved. It counts from the next sign-in on.")
    return HttpResponseRedirect(reverse("connection", args=[shown]))


@sensitive_variables()
@require_POST
def begin(request: HttpRequest, shown: str) -> HttpResponse:
    """Send an admin to the provider. The way back is bound to their session (CASES S07)."""
    seat, pk = seat_with(request, Role.ADMIN), _id(shown)
    nonce = secrets.token_urlsafe(32)
    try:
        address = signing_in.begin(
            tenant=seat.tenant,
            connection=pk,
            return_to=request.build_absolute_uri(reverse("connection-return", args=[shown])),
            nonce=nonce,
            actor=actor_of(request),
        )
    except CannotSignIn as refused:
        return _page(request, pk, trouble=str(refused), status=422)
    begun = dict(list(request.session.get(BEGUN, {}).items())[1 - MOST_BEGUN :])
    request.session[BEGUN] = {**begun, nonce: shown}
    back = reverse("connection", args=[shown])
    return answer(request, "tenants/leaving.html", {"address": address, "back": back})


@sensitive_variables()
@require_GET
def come_back(request: HttpRequest, shown: str) -> HttpResponse:
    """Take what the provider sent an admin back with, once, in the session that left."""
    seat, pk = seat_with(request, Role.ADMIN), _id(shown)
    nonce = request.GET.get("state", "")
    begun = dict(request.session.get(BEGUN, {}))
    if not nonce or begun.pop(nonce, None) != shown:
        why = "This way back does not belong to a sign-in that you began in this browser. Sign in again"
        return _page(request, pk, trouble=why, status=400)
    request.session[BEGUN] = begun
    given = {name: request.GET[name] for name in ("code", "iss", "error") if name in request.GET}
    try:
        signing_in.finish(tenant=seat.tenant, connection=pk, nonce=nonce, given=given, actor=actor_of(request))
    except CannotSignIn as refused:
        return _page(request, pk, trouble=str(refused), status=422)
    messages.success(request, "Signed in. The token is refreshed before it runs out.")
    return HttpResponseRedirect(reverse("connection", args=[shown]))


@require_POST
def end(request: HttpRequest, shown: str) -> HttpResponse:
    """Forget the tokens here, and have the provider forget them."""
    seat, pk = seat_with(request, Role.ADMIN), _id(shown)
    try:
        revoked = signing_in.sign_out(tenant=seat.tenant, connection=pk, actor=actor_of(request))
    except CannotSignIn as refused:
        return _page(request, pk, trouble=str(refused), status=422)
    if revoked:
        messages.success(request, "Signed out, here and at the provider.")
    else:
        messages.warning(request, "Signed out here. The provider did not confirm it: remove the access there as well.")
    return HttpResponseRedirect(reverse("connection", args=[shown]))


def _page(
    request: HttpRequest,
    pk: UUID,
    *,
    error: str = "",
    trouble: str = "",
    typed: dict[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    """`error` is about the connection's form, `trouble` about signing in."""
    found = connection_page(seat_with(request, Role.ADMIN).tenant, pk)
    if found is None:
        raise Http404
    row, sign_in, now = found
    kept = {"url": row.url, "allowed": "\n".join(row.allowed), "kind": row.credential, "header": row.header}
    return_to = request.build_absolute_uri(reverse("connection-return", args=[row.shown_id]))
    context = {
        "row": row,
        "sign_in": sign_in,
        "now": now,
        "kinds": KINDS,
        "typed": typed or kept,
        "error": error,
        "trouble": trouble,
        "return_to": return_to,
    }
    return answer(request, "catalog/connection.html", context, status=status)


def _row(request: HttpRequest, pk: UUID) -> ConnectionRow:
    found = connection_page(seat_with(request, Role.ADMIN).tenant, pk)
    if found is None:
        raise Http404
    return found[0]


def _typed(request: HttpRequest) -> dict[str, str]:
    names = ("name", "url", "allowed", "kind", "header")
    return {name: request.POST.get(name, "").strip()[:20_000] for name in names}


def _of_provider(name: str) -> dict[str, str]:
    """What the form of a model provider's connection begins with; nothing for a name that is none."""
    found = OF_MODELS.get(name)
    if found is None:
        return {}
    kind = Credential.HEADER if found.header else Credential.BEARER
    return {"name": found.connection, "url": found.url, "kind": kind, "header": found.header}


def _given(request: HttpRequest) -> Given:
    """The credential of the form. An empty value keeps the one that is there. Raises `BadConnection`."""
    kind, header = request.POST.get("kind", ""), request.POST.get("header", "").strip()
    if kind not in set(Credential):
        raise BadConnection(f"a credential is one of: {', '.join(Credential)}")
    value = request.POST.get("value", "").strip() or None
    return Given(Credential(kind), value, header if kind == Credential.HEADER else "")


def _id(shown: str) -> UUID:
    try:
        return ids.parse(ids.CONNECTION, shown)
    except ids.BadId as error:
        raise Http404 from error
