"""The variables that a tool's program gets: named by its plugin, their values in the vault (RULES C7, A14)."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from base import db
from catalog.models import Stage, Tool
from catalog.rules.kept_manifests import kept_tools
from catalog.rules.mcp_secrets import is_ordinary
from catalog.rules.secret_names import OF_ALL, read_name, variables_of
from tenants.models import Secret
from tenants.operations import audit, vault
from tenants.rules.who import Actor

PAGE: Final = "/settings/secrets/"
MOST_VALUE: Final = 20_000
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")


class BadVariable(ValueError):
    """A variable that cannot be kept so. The message says what is wrong."""


def variables_of_tool(tool: Tool) -> tuple[dict[str, str], str, str]:
    """(what a tool's program gets, the version of it, what keeps it from being started). In an open read or write."""
    manifest = tool.plugin_version.manifest
    names = _names(manifest, tool.slug)
    if not names:
        return {}, "", ""
    there = {**_of_all_tools(), **_there(str(manifest.get("name", "")), tool.slug)}
    found = {}
    for name in names:
        kept = there.get(name)
        try:
            found[name] = vault.get(tool.tenant_id, kept.name if kept else OF_ALL + name)
        except vault.NoSecret as error:
            why = f"The vault has no usable value for the variable {name} ({error}): an admin enters it at {PAGE}."
            return {}, "", why
    told = ",".join(f"{name}:{there[name].version}" for name in names)
    return found, hashlib.sha256(told.encode()).hexdigest()[:16], ""


def unlike(tenant: UUID, *, plugin: str, tool: str, wanted: Mapping[str, str]) -> list[str]:
    """The names of variables that the vault has otherwise than `wanted`. In an open read or write of the tenant."""
    there = _there(plugin, tool)

    def same(name: str) -> bool:
        place = _place(plugin, tool, name, wanted[name])
        try:
            return name in there and there[name].name == place and vault.get(tenant, place) == wanted[name]
        except vault.NoSecret:
            return False

    return sorted((set(there) - set(wanted)) | {name for name in wanted if not same(name)})


def keep(*, plugin: str, tool: str, wanted: Mapping[str, str], actor: Actor) -> None:
    """Have the vault keep exactly these variables; running servers are replaced. Demands an open write."""
    now = db.must_write()
    changed = unlike(db.writing_tenant(), plugin=plugin, tool=tool, wanted=wanted)
    there = _there(plugin, tool)
    for name in changed:
        place = _place(plugin, tool, name, wanted[name]) if name in wanted else ""
        if name in there and there[name].name != place:
            vault.drop(there[name].name)
        if place:
            vault.put(place, wanted[name])
    if changed:
        audit.record(actor, "variables.entered", f"tool {tool}", after={"changed": changed})
        using = Tool.objects.filter(plugin_version__stage=Stage.CURRENT, plugin_version__plugin__name=plugin, slug=tool)
        using.update(measure_due_at=now, measure_failures=0)


def put(*, tenant: UUID, name: str, value: str, slug: str, actor: Actor) -> None:
    """Keep one variable: of the current tool `slug`, or with "" of every tool that has none of its own of this name.

    The servers that get it are replaced. Raises `BadVariable`.
    """
    if not _NAME.match(name):
        raise BadVariable("A variable's name has letters, digits and _, begins with no digit, and is at most 100 long.")
    if not value or len(value) > MOST_VALUE:
        raise BadVariable(f"A value has 1 to {MOST_VALUE} characters.")
    with db.write(tenant) as now:
        using = _using(name, slug)
        if slug and not using:
            raise BadVariable(
                f"The tool {slug} asks for no variable {name}: its plugin's file says under env: what it gets."
            )
        beginning = variables_of(using[0].plugin_version.plugin.name, slug) if slug else OF_ALL
        place = (vault.PLAIN if is_ordinary(name, value) else "") + beginning + name
        vault.drop((vault.PLAIN if not is_ordinary(name, value) else "") + beginning + name)
        version = vault.put(place, value)
        whose = f"tool {slug}" if slug else "every tool"
        audit.record(actor, "secret.put", f"secret {name}", after={"of": whose, "version": version})
        Tool.objects.filter(pk__in=[tool.pk for tool in using]).update(measure_due_at=now, measure_failures=0)


def remove(*, tenant: UUID, secret: UUID, actor: Actor) -> str | None:
    """Forget one variable; its name, or None when there is no such variable. Servers that need it start no more."""
    with db.write(tenant) as now:
        row = Secret.objects.select_for_update(no_key=True).filter(pk=secret).first()
        kept = read_name(row.name.removeprefix(vault.PLAIN)) if row else None
        if row is None or kept is None:
            return None
        row.delete()
        whose = f"tool {kept.tool}" if kept.tool else "every tool"
        audit.record(actor, "secret.removed", f"secret {kept.variable}", before={"of": whose})
        using = _using(kept.variable, kept.tool)
        Tool.objects.filter(pk__in=[tool.pk for tool in using]).update(measure_due_at=now, measure_failures=0)
        return kept.variable


def _using(name: str, slug: str) -> list[Tool]:
    """The current tools whose program gets this variable; only the one of this id when one is named."""
    current = Tool.objects.filter(plugin_version__stage=Stage.CURRENT).select_related("plugin_version__plugin")
    rows = current.filter(slug=slug) if slug else current
    return [tool for tool in rows if name in _names(tool.plugin_version.manifest, tool.slug)]


@dataclass(frozen=True, slots=True)
class _Kept:
    """Where the vault keeps a variable, and the version of it."""

    name: str
    version: str


def _there(plugin: str, tool: str) -> dict[str, _Kept]:
    """What the vault keeps of a tool's variables, by their names."""
    beginning = variables_of(plugin, tool)
    return {
        name.removeprefix(vault.PLAIN).removeprefix(beginning): _Kept(name, version)
        for place in (vault.PLAIN + beginning, beginning)
        for name, version in vault.having(place).items()
    }


def _of_all_tools() -> dict[str, _Kept]:
    """What the vault keeps for every tool that has none of its own, by the variables' names."""
    return {
        name.removeprefix(vault.PLAIN).removeprefix(OF_ALL): _Kept(name, version)
        for place in (vault.PLAIN + OF_ALL, OF_ALL)
        for name, version in vault.having(place).items()
    }


def _place(plugin: str, tool: str, name: str, value: str) -> str:
    """What the vault calls a variable of this value."""
    return (vault.PLAIN if is_ordinary(name, value) else "") + variables_of(plugin, tool) + name


def _names(manifest: Any, slug: str) -> Sequence[str]:
    return next((tool.env for tool in kept_tools(manifest) if tool.id == slug), ())
