"""Making, changing and removing connections to remote servers, and reading one for a session (CASES S03, RULES A12)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urljoin
from uuid import UUID

from base import db
from base.addresses import Refused, read_place, read_url
from catalog.models import Connection, Credential, Stage, Tool, Transport
from catalog.operations import sign_ins
from catalog.queries.connections import named, users_of
from catalog.rules.secret_names import access_name
from catalog.rules.servers import Remote
from tenants.models import Gate
from tenants.operations import audit, vault
from tenants.rules.who import Actor

PAGE: Final = "/settings/connections/"
_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?\Z")
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}\Z")
_VALUE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,8190}[\x21-\x7e])?\Z")
_OURS: Final = re.compile(
    r"host|accept|content-.*|transfer-encoding|connection|expect|upgrade|te|trailer|user-agent|mcp-.*|cookie", re.I
)


class BadConnection(ValueError):
    """A connection that cannot be made or changed so. The message says what is wrong and how to fix it."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a connection's credential shall be. `value` is None to keep the one that is there."""

    kind: Credential = Credential.NONE
    value: str | None = None
    header: str = ""


def make(*, tenant: UUID, name: str, url: str, allowed: Sequence[str], given: Given, actor: Actor) -> UUID:
    """Add a connection. The caller has made sure that the actor is an admin. Raises `BadConnection`."""
    if not _NAME.match(name):
        raise BadConnection("a name has small letters, digits, - and _, at most 64, such as archive")
    with db.write(tenant):
        db.alone("names a connection")
        if named(name) is not None:
            raise BadConnection(f"there is a connection {name} already: change that one, or choose another name")
        return _make(name, url, allowed, given, actor)


def make_public(*, name: str, url: str, actor: Actor) -> UUID:
    """Add a connection without credential or allow-list, for a plugin that gives a whole address. In an open write.

    Raises `BadConnection` when the plugin gives only a path.
    """
    if not _NAME.match(name):
        raise BadConnection(f"{name!r} cannot name a connection: small letters, digits, - and _, at most 64")
    if url.startswith("/"):
        raise BadConnection(f"there is no connection {name} yet, and the path {url} alone names no server")
    return _make(name, url, (), Given(), actor)


def _make(name: str, url: str, allowed: Sequence[str], given: Given, actor: Actor) -> UUID:
    now, tenant = db.must_write(), db.writing_tenant()
    row = Connection(tenant_id=tenant, name=name, url=_url(url), allowed=_allowed(allowed), changed_at=now)
    _credential(row, given)
    row.save(force_insert=True)
    audit.record(actor, "connection.made", f"connection {name}", after=_shown(row))
    measure_again(name)
    return row.pk


def change(
    *, tenant: UUID, name: str, url: str, allowed: Sequence[str], given: Given, actor: Actor, ask_again: bool = False
) -> None:
    """Change a connection; sessions that used it as it was are replaced. Raises `BadConnection`.

    `ask_again` forgets which protocol the server was found to speak. What was listed, or began to be, before this is
    of another server (`listings.store`).
    """
    with db.write(tenant):
        # Under the gate, for approvals count where the connection leads: no claim is under way while that changes.
        Gate.objects.select_for_update().get(tenant_id=tenant)
        now = db.later()
        row = locked(name)
        before = _shown(row)
        moved = _url(url) != row.url
        row.url, row.allowed, row.changed_at = _url(url), _allowed(allowed), now
        row.credential_version += 1
        if moved or ask_again:
            row.protocol = ""
        _credential(row, given, moved=moved)
        row.save()
        audit.record(actor, "connection.changed", f"connection {name}", before=before, after=_shown(row))
        measure_again(name)


def remove(*, tenant: UUID, name: str, actor: Actor) -> None:
    """Remove a connection with its credential. Raises `BadConnection` while a current tool or agent uses it."""
    with db.write(tenant):
        row = locked(name)
        if using := users_of(name):
            raise BadConnection(f"{', '.join(using)} still uses it: remove or change the plugin first")
        vault.drop(secret_name(row))
        sign_ins.forget(row.pk)
        audit.record(actor, "connection.removed", f"connection {name}", before=_shown(row))
        row.delete()


def keep_protocol(tool: Tool, protocol: str) -> None:
    """Pin the protocol that a connection's server was found to speak. Demands an open write."""
    db.must_write()
    Connection.objects.filter(name=tool.connection, protocol="").update(protocol=protocol)


def changed_since(tool: Tool, at: datetime) -> bool:
    """Whether a remote tool's connection led elsewhere at that time, or may have. Demands an open read or write."""
    if tool.transport != Transport.URL:
        return False
    return Connection.objects.filter(name=tool.connection, changed_at__gt=at).exists()


def remote_of(tool: Tool) -> tuple[Remote, str, str]:
    """(how a tool's server is reached, the protocol it speaks, the version of the credential).

    Demands an open read or write. Its `trouble` says what keeps the server from being reached.
    """
    found, row = _reached(tool.connection, tool.url, tool.pk)
    return (found, row.protocol, str(row.credential_version)) if row else (found, "", "")


def provider_of(name: str, agent: UUID) -> Remote:
    """How an agent's model provider is reached over a connection; `trouble` says what keeps it from being asked.

    Demands an open read or write.
    """
    return _reached(name, "", agent)[0]


def _reached(name: str, url: str, whose: UUID) -> tuple[Remote, Connection | None]:
    """(how a server is reached over a connection, the connection when it can be)."""
    row = named(name)
    if row is None:
        why = f"There is no connection {name}: an admin makes it at {PAGE}."
        return Remote(whose, name, url, trouble=why), None
    try:
        address = address_of(url, row)
        headers = _headers(row)
    except (BadConnection, vault.NoSecret) as error:
        return Remote(row.pk, row.name, url, trouble=f"{error}."), None
    return Remote(row.pk, row.name, address, tuple(row.allowed), headers=headers), row


def address_of(url: str, row: Connection) -> str:
    """Where a tool's `url` leads over a connection: a path of its server, or an address of the same origin.

    Raises `BadConnection` for another origin, to which the credential must not go.
    """
    if not url:
        return row.url
    whole = urljoin(row.url, url)
    try:
        if read_url(whole).origin == read_url(row.url).origin:
            return read_url(whole).url
    except Refused as error:
        raise BadConnection(f"{url} cannot be read: {error}") from error
    raise BadConnection(f"{url} is not on the server of connection {row.name} ({row.url}), so it gets no credential")


def secret_name(row: Connection) -> str:
    """What the vault calls a connection's credential."""
    return access_name(row.pk)


def _headers(row: Connection) -> Mapping[str, str]:
    match Credential(row.credential):
        case Credential.NONE:
            return {}
        case Credential.BEARER:
            return {"Authorization": f"Bearer {vault.get(row.tenant_id, secret_name(row))}"}
        case Credential.OAUTH:
            if why := sign_ins.why_unusable(row):
                raise BadConnection(why)
            return {"Authorization": f"Bearer {vault.get(row.tenant_id, secret_name(row))}"}
        case Credential.HEADER:
            return {row.header: vault.get(row.tenant_id, secret_name(row))}


def _credential(row: Connection, given: Given, *, moved: bool = False) -> None:
    kept = given.value is None and given.kind == row.credential and given.header == row.header
    signed_in = row.credential == Credential.OAUTH
    if kept and moved and given.kind not in (Credential.NONE, Credential.OAUTH):
        raise BadConnection(
            "the address changed to another server, so enter its credential anew: the old one stays here"
        )
    row.credential, row.header = given.kind, given.header if given.kind is Credential.HEADER else ""
    if given.kind is Credential.HEADER and (not _HEADER.match(given.header) or _OURS.match(given.header)):
        raise BadConnection(f"{given.header[:100]!r} cannot be the credential's header; name one such as X-Api-Key")
    if signed_in and (moved or given.kind is not Credential.OAUTH):
        sign_ins.forget(row.pk)  # a sign-in is for one server; at another one somebody signs in anew
        vault.drop(secret_name(row))
    if given.kind is Credential.NONE or (given.kind is Credential.OAUTH and not signed_in):
        vault.drop(secret_name(row))
    elif given.kind is not Credential.OAUTH and not kept:
        if not _VALUE.match(given.value or ""):
            raise BadConnection("a credential's value is plain visible text without line breaks; enter it")
        vault.put(secret_name(row), given.value or "")


def _url(url: str) -> str:
    try:
        return read_url(url.strip()).url
    except Refused as error:
        raise BadConnection(f"the address cannot be used: {error}") from error


def _allowed(entries: Sequence[str]) -> list[str]:
    try:
        return sorted({read_place(entry) for entry in entries if entry.strip()})
    except Refused as error:
        raise BadConnection(f"the allow-list cannot be used: {error}") from error


def locked(name: str) -> Connection:
    """A connection, held until the open write ends. Raises `BadConnection`."""
    row = Connection.objects.select_for_update(no_key=True).filter(name=name).first()
    if row is None:
        raise BadConnection(f"there is no connection {name}")
    return row


def measure_again(name: str) -> None:
    """Read the listings of the tools that use a connection anew, soon. Demands an open write."""
    using = Tool.objects.filter(plugin_version__stage=Stage.CURRENT, connection=name)
    using.update(measure_due_at=db.must_write(), measure_failures=0)


def _shown(row: Connection) -> dict[str, Any]:
    """What the audit log keeps of a connection: everything but the secret."""
    return {
        "url": row.url,
        "allowed": row.allowed,
        "credential": row.credential,
        "header": row.header,
        "credential_version": row.credential_version,
    }
