"""Which connections there are, and what each is used for. Never a secret."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from base import db
from catalog.models import Connection, Credential, Listing, Stage, Standing, Tool
from catalog.queries.kept_agents import kept_agents
from catalog.queries.sign_ins import SignInPage, shown_id, sign_in_page
from catalog.rules.model_names import connection_of


@dataclass(frozen=True, slots=True)
class ConnectionRow:
    """One connection as its page shows it. `tools` are the current tools that use it."""

    id: UUID
    shown_id: str
    name: str
    url: str
    allowed: tuple[str, ...]
    credential: Credential
    header: str
    protocol: str
    changed_at: datetime
    tools: tuple[str, ...]
    can_cancel: bool | None
    can_report: bool | None
    trouble: str
    standing: Standing


def named(name: str) -> Connection | None:
    """The connection of this name."""
    return Connection.objects.filter(name=name).first()


def standing_of(one: Connection) -> Standing | None:
    """Whether somebody is signed in to a connection; None for one that nobody has to. Demands an open read."""
    if one.credential != Credential.OAUTH:
        return None
    return Standing(one.sign_in.standing) if hasattr(one, "sign_in") else Standing.OUT


def connections_page(tenant: UUID) -> tuple[tuple[ConnectionRow, ...], datetime]:
    """All connections of a tenant by name, and the time."""
    with db.read(tenant) as now:
        tools = list(Tool.objects.filter(plugin_version__stage=Stage.CURRENT).exclude(connection="").order_by("slug"))
        listings = {one.tool_id: one for one in Listing.objects.filter(tool__in=tools, current=True)}
        rows = tuple(
            _row(one, [tool for tool in tools if tool.connection == one.name], listings)
            for one in Connection.objects.select_related("sign_in").order_by("name")[:500]
        )
        return rows, now


def connection_page(tenant: UUID, connection: UUID) -> tuple[ConnectionRow, SignInPage, datetime] | None:
    """One connection, its sign-in and the time; None when there is no such connection."""
    with db.read(tenant) as now:
        one = Connection.objects.filter(pk=connection).first()
        if one is None:
            return None
        current = Tool.objects.filter(plugin_version__stage=Stage.CURRENT, connection=one.name)
        tools = list(current.order_by("slug"))
        listings = {found.tool_id: found for found in Listing.objects.filter(tool__in=tools, current=True)}
        return _row(one, tools, listings), sign_in_page(one), now


def users_of(name: str) -> list[str]:
    """The current tools, and the agents whose models are asked over it, that use a connection."""
    tools = Tool.objects.filter(plugin_version__stage=Stage.CURRENT, connection=name)
    agents = (one for one in kept_agents().readable if connection_of(one.spec.model, one.spec.connection) == name)
    return [*tools.order_by("slug").values_list("slug", flat=True), *(f"agent {one.name}" for one in agents)]


def _row(one: Connection, tools: list[Tool], listings: dict[UUID, Listing]) -> ConnectionRow:
    measured = [listings[tool.pk] for tool in tools if tool.pk in listings]
    return ConnectionRow(
        id=one.pk,
        shown_id=shown_id(one),
        name=one.name,
        url=one.url,
        allowed=tuple(one.allowed),
        credential=Credential(one.credential),
        header=one.header,
        protocol=one.protocol,
        changed_at=one.changed_at,
        tools=tuple(tool.slug for tool in tools),
        can_cancel=all(listing.can_cancel for listing in measured) if measured else None,
        can_report=all(listing.can_report for listing in measured) if measured else None,
        trouble=next((tool.down_reason for tool in tools if tool.down_reason), ""),
        standing=Standing(one.sign_in.standing) if hasattr(one, "sign_in") else Standing.OUT,
    )
