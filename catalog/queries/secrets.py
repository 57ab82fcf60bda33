"""What the vault holds, and what uses each of it. Never a value."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from base import db, ids
from catalog.models import Connection, Stage, Tool
from catalog.rules.kept_manifests import kept_tools
from catalog.rules.secret_names import read_connection, read_name
from tenants.models import Secret
from tenants.operations.vault import OF_CALLS, OF_CHANNELS, OF_HOOKS, PLAIN

MOST = 2000
KINDS = {"": "what calls carry", "refresh": "refresh token", "client": "client secret"}


@dataclass(frozen=True, slots=True)
class SecretRow:
    """One secret as the page lists it. `connection` is the page that keeps it, for those that are not entered here."""

    shown_id: str
    name: str
    tool: str
    users: tuple[str, ...]
    connection: str
    connection_name: str
    plain: bool
    changed_at: datetime
    version: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """A variable that a current tool asks for and the vault does not hold."""

    name: str
    tool: str


@dataclass(frozen=True, slots=True)
class Vault:
    """Everything of the page, and the time. `tools` are those that ask for variables, with their names."""

    rows: Sequence[SecretRow]
    missing: Sequence[Wanted]
    tools: dict[str, tuple[str, ...]]
    now: datetime


def secrets_page(tenant: UUID) -> Vault:
    """All secrets of a tenant by name."""
    with db.read(tenant) as now:
        current = Tool.objects.filter(plugin_version__stage=Stage.CURRENT).select_related("plugin_version__plugin")
        tools = list(current.order_by("slug"))
        asked = {tool.slug: tuple(_asked(tool)) for tool in tools if _asked(tool)}
        plugins = {tool.slug: tool.plugin_version.plugin.name for tool in tools}
        connections = {one.pk: one.name for one in Connection.objects.all()}
        # what belongs to one call, channel or hook is kept by that, and is nobody's to enter or remove here
        shown = Secret.objects.exclude(name__startswith=OF_CALLS).exclude(name__startswith=OF_CHANNELS)
        shown = shown.exclude(name__startswith=OF_HOOKS)
        secrets = list(shown.order_by("name").defer("ciphertext")[:MOST])
    own = {(kept.tool, kept.variable) for one in secrets if (kept := read_name(one.name.removeprefix(PLAIN)))}
    rows = [row for one in secrets if (row := _row(one, asked, plugins, connections, own))]
    missing = [
        Wanted(name, slug)
        for slug, names in asked.items()
        for name in names
        if (slug, name) not in own and ("", name) not in own
    ]
    return Vault(sorted(rows, key=lambda row: (bool(row.connection), row.name, row.tool)), missing, asked, now)


def _asked(tool: Tool) -> Sequence[str]:
    return next((one.env for one in kept_tools(tool.plugin_version.manifest) if one.id == tool.slug), ())


def _row(
    one: Secret,
    asked: dict[str, tuple[str, ...]],
    plugins: dict[str, str],
    connections: dict[UUID, str],
    own: set[tuple[str, str]],
) -> SecretRow | None:
    name, tool, connection, connection_name = one.name, "", "", ""
    users: tuple[str, ...] = ()
    if kept := read_name(one.name.removeprefix(PLAIN)):
        name, tool = kept.variable, kept.tool
        users = tuple(
            slug
            for slug, names in asked.items()
            if name in names and (slug == tool and plugins[slug] == kept.plugin if tool else (slug, name) not in own)
        )
    elif held := read_connection(one.name):
        pk, what = held
        if what == "begun":  # of a sign-in that somebody is in the middle of
            return None
        name, connection = KINDS[what], ids.show(ids.CONNECTION, pk)
        connection_name = connections.get(pk, "")
    return SecretRow(
        shown_id=ids.show(ids.SECRET, one.pk),
        name=name,
        tool=tool,
        users=users,
        connection=connection if connection_name else "",
        connection_name=connection_name,
        plain=one.name.startswith(PLAIN),
        changed_at=one.changed_at,
        version=one.version,
    )
