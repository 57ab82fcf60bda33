"""The variables that a tool's program gets: named by its plugin, their values in the vault (RULES C7, A14)."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from base import db
from catalog.models import Stage, Tool
from catalog.rules.mcp_secrets import is_ordinary
from catalog.rules.secret_names import variables_of
from tenants.operations import audit, vault
from tenants.rules.who import Actor


def variables_of_tool(tool: Tool) -> tuple[dict[str, str], str, str]:
    """(what a tool's program gets, the version of it, what keeps it from being started). In an open read or write."""
    manifest = tool.plugin_version.manifest
    names = _names(manifest, tool.slug)
    if not names:
        return {}, "", ""
    there = _there(manifest["name"], tool.slug)
    found = {}
    for name in names:
        kept = there.get(name)
        try:
            found[name] = vault.get(tool.tenant_id, kept.name if kept else f"variable {name}")
        except vault.NoSecret as error:
            why = f"The vault has no usable value for the variable {name} ({error}): enter it with `oz0 import`."
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


def _place(plugin: str, tool: str, name: str, value: str) -> str:
    """What the vault calls a variable of this value."""
    return (vault.PLAIN if is_ordinary(name, value) else "") + variables_of(plugin, tool) + name


def _names(manifest: Mapping[str, Any], slug: str) -> Sequence[str]:
    tools = manifest.get("tools", ())
    return next((tool.get("env", ()) for tool in tools if tool.get("id") == slug), ())
