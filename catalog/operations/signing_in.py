"""A person signs a connection in at its provider, and out again (RULES A12; CASES S03, S07).

What is asked of a provider is asked between transactions. While the person is away, the vault keeps what the way
back needs, under the digest of a nonce that only their browser session holds; it can be used once, for 10 minutes.

The SDK's door is imported where it is used: it takes the better part of a second, and no other page needs it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

from base import db
from catalog.models import Connection, Credential, SignIn, Standing
from catalog.operations import sign_ins
from catalog.operations.connections import measure_again
from catalog.rules import oauth
from catalog.rules.oauth import CannotSignIn, Client, Provider
from catalog.rules.secret_names import access_name, begun_name, client_name, refresh_name
from tenants.operations import audit, vault
from tenants.rules.who import Actor

MOST_ID: Final = 2_000  # characters of a client's id or secret


@dataclass(frozen=True, slots=True)
class _Begun:
    provider: Provider
    client: Client
    entered: bool
    verifier: str
    return_to: str
    url: str
    person: int | None
    at: datetime


def enter_client(
    *, tenant: UUID, connection: UUID, client_id: str, secret: str | None, scopes: str, actor: Actor
) -> None:
    """Keep the client that an admin registered at the provider, and the scopes to ask for. Raises `CannotSignIn`.

    An empty id goes back to registering by itself; `secret` None keeps the one that is there.
    """
    wanted = oauth.scopes_of(scopes)
    for text, what in ((client_id, "id"), (secret or "", "secret")):
        if len(text) > MOST_ID or not (text.isascii() and text.isprintable()):
            raise CannotSignIn(f"A client's {what} is plain visible text of at most {MOST_ID:,} characters")
    with db.write(tenant):
        held = _held(connection)
        row = sign_ins.locked(held.pk)
        before = _client_shown(row)
        other = client_id != row.client_id
        if other and row.standing == Standing.IN:
            raise CannotSignIn("Sign out before changing the client: the tokens in use belong to the one before")
        row.client_id, row.client_entered, row.wanted = client_id, bool(client_id), wanted
        if other:
            row.client_method, row.return_to = "", ""
        if secret or other:
            vault.drop(client_name(held.pk))
        if secret:
            vault.put(client_name(held.pk), secret)
        row.save()
        audit.record(actor, "connection.client", f"connection {held.name}", before=before, after=_client_shown(row))


def begin(*, tenant: UUID, connection: UUID, return_to: str, nonce: str, actor: Actor) -> str:
    """Find the provider, be known to it, and return the address to send the person to. Raises `CannotSignIn`."""
    from catalog.sessions import authorization

    with db.read(tenant):
        held = _connection(Connection.objects.filter(pk=connection).first())
        row = SignIn.objects.filter(connection=held).first() or SignIn(connection=held, tenant_id=tenant)
        client = sign_ins.client_of(row)
        known = row.client_entered or (row.client_id and row.return_to == return_to)
        issuer = row.provider.get("issuer") if row.client_id and not row.client_entered else None
    found = authorization.discover(held.url, allowed=held.allowed, scopes=row.wanted)
    if not known or (issuer is not None and issuer != found.issuer):
        client = authorization.register(found, allowed=held.allowed, return_to=return_to)
    proof = authorization.draw_proof()
    with db.write(tenant) as now:
        begun = _Begun(found, client, row.client_entered, proof.verifier, return_to, held.url, actor.user_id, now)
        vault.drop_all(begun_name(held.pk, ""), before=now - oauth.BEGUN_FOR)
        vault.put(_begun_name(held.pk, nonce), _written(begun))
    return oauth.sign_in_address(found, client, return_to=return_to, nonce=nonce, code_challenge=proof.challenge)


def finish(*, tenant: UUID, connection: UUID, nonce: str, given: Mapping[str, str], actor: Actor) -> None:
    """Take the answer a person came back with, once, and keep the tokens it is good for. Raises `CannotSignIn`."""
    from catalog.sessions import authorization

    with db.write(tenant) as asked_at:
        held = _held(connection)
        begun = _taken(held, nonce, asked_at, actor)
    code = oauth.code_of(given, begun.provider)
    granted = authorization.exchange(
        begun.provider,
        begun.client,
        allowed=held.allowed,
        code=code,
        verifier=begun.verifier,
        return_to=begun.return_to,
    )
    with db.write(tenant) as now:
        held = _held(connection)
        if held.url != begun.url:
            raise CannotSignIn("The connection's address was changed meanwhile, so nothing was kept. Sign in again")
        row = sign_ins.locked(held.pk)
        vault.drop(refresh_name(held.pk))  # the one of the grant before is of no use with this one
        _know(row, begun)
        row.scopes = begun.provider.scopes
        sign_ins.keep(row, granted, asked_at=asked_at)
        row.signed_in_by_id, row.signed_in_at = actor.user_id, now
        row.save()
        sign_ins.sessions_anew(held)
        measure_again(held.name)
        audit.record(actor, "connection.signed_in", f"connection {held.name}", after=_shown(row))


def sign_out(*, tenant: UUID, connection: UUID, actor: Actor) -> bool:
    """Forget a connection's tokens, then ask the provider to do so too; whether it said that it did."""
    from catalog.sessions import authorization

    with db.write(tenant):
        held = _held(connection)
        row = sign_ins.locked(held.pk)
        found, client, before = sign_ins.provider_of(row), sign_ins.client_of(row), _shown(row)
        names = {"refresh_token": refresh_name(held.pk), "access_token": access_name(held.pk)}
        tokens = {kind: vault.get(tenant, name) for kind, name in names.items() if vault.has(name)}
        sign_ins.end(row, Standing.OUT, "")
        row.scopes = ""
        row.save()
        sign_ins.sessions_anew(held)
        audit.record(actor, "connection.signed_out", f"connection {held.name}", before=before, after=_shown(row))
    return (
        bool(tokens) and found is not None and authorization.revoke(found, client, allowed=held.allowed, tokens=tokens)
    )


def _know(row: SignIn, begun: _Begun) -> None:
    row.provider = sign_ins.write_provider(begun.provider)
    if begun.entered:
        return
    row.client_id, row.client_method, row.client_entered = begun.client.id, begun.client.method, False
    row.return_to = begun.return_to
    vault.drop(client_name(row.connection_id))
    if begun.client.secret:
        vault.put(client_name(row.connection_id), begun.client.secret)


def _held(connection: UUID) -> Connection:
    return _connection(Connection.objects.select_for_update(no_key=True).filter(pk=connection).first())


def _connection(found: Connection | None) -> Connection:
    if found is None:
        raise CannotSignIn("There is no such connection any more")
    if found.credential != Credential.OAUTH:
        raise CannotSignIn(f"Connection {found.name} is not signed in to: choose OAuth as its credential first")
    return found


def _taken(held: Connection, nonce: str, now: datetime, actor: Actor) -> _Begun:
    """What was kept for this way back, which is gone afterwards."""
    name = _begun_name(held.pk, nonce)
    try:
        begun = _read(vault.get(held.tenant_id, name))
    except vault.NoSecret as error:
        raise CannotSignIn("This way back was used already, or nobody went this way. Sign in again") from error
    vault.drop(name)
    if now - begun.at > oauth.BEGUN_FOR:
        raise CannotSignIn("It took longer than 10 minutes, so nothing was taken from it. Sign in again")
    if begun.person != actor.user_id:
        raise CannotSignIn("Somebody else began this sign-in. Nothing was taken from it; sign in yourself")
    return begun


def _begun_name(connection: UUID, nonce: str) -> str:
    return begun_name(connection, sha256(nonce.encode()).hexdigest())


def _written(begun: _Begun) -> str:
    client = {"id": begun.client.id, "secret": begun.client.secret, "method": begun.client.method}
    return json.dumps(
        {
            "provider": sign_ins.write_provider(begun.provider),
            "client": client,
            "entered": begun.entered,
            "verifier": begun.verifier,
            "return_to": begun.return_to,
            "url": begun.url,
            "person": begun.person,
            "at": begun.at.isoformat(),
        }
    )


def _read(kept: str) -> _Begun:
    said: dict[str, Any] = json.loads(kept)
    whole = {"provider": sign_ins.read_provider(said["provider"]), "client": Client(**said["client"])}
    return _Begun(**{**said, **whole, "at": datetime.fromisoformat(said["at"])})


def _client_shown(row: SignIn) -> dict[str, Any]:
    return {"client": row.client_id, "entered": row.client_entered, "scopes": row.wanted}


def _shown(row: SignIn) -> dict[str, Any]:
    """What the audit log keeps of a sign-in: everything but secrets."""
    return {
        "standing": str(row.standing),
        "issuer": row.provider.get("issuer", ""),
        "client": row.client_id,
        "scopes": row.scopes,
        "expires_at": row.expires_at.isoformat() if row.expires_at else None,
    }
