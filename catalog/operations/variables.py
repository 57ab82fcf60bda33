"""The variables that a tool's program gets: named by its plugin, their values in the vault (RULES C7, A14)."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from base import db
from catalog.models import Stage, Tool
from catalog.rules.secret_names import variables_of
from tenants.operations import audit, vault
from tenants.rules.who import Actor


def variables_of_tool(tool: Tool) -> tuple[dict[str, str], str, str]:
    """(what a tool's program gets, the version of it, what keeps it from being started). In an open read or write."""
    manifest = tool.plugin_version.manifest
    names = _names(manifest, tool.slug)
    if not names:
        return {}, "", ""
    beginning = variables_of(manifest["name"], tool.slug)
    versions = vault.having(beginning)
    found = {}
    for name in names:
        try:
            found[name] = vault.get(tool.tenant_id, beginning + name)
        except vault.NoSecret as error:
            why = f"The vault has no usable value for the variable {name} ({error}): enter it with `oz0 import`."
            return {}, "", why
    told = ",".join(f"{name}:{versions.get(beginning + name, '')}" for name in names)
    return found, hashlib.sha256(told.encode()).hexdigest()[:16], ""


def unlike(tenant: UUID, *, plugin: str, tool: str, wanted: Mapping[str, str]) -> list[str]:
    """The names of variables that the vault has otherwise than `wanted`. In an open read or write of the tenant."""
    beginning = variables_of(plugin, tool)
    there = {name.removeprefix(beginning) for name in vault.having(beginning)}

    def same(name: str) -> bool:
        try:
            return vault.get(tenant, beginning + name) == wanted[name]
        except vault.NoSecret:
            return False

    return sorted((there - set(wanted)) | {name for name in wanted if not same(name)})


def keep(*, plugin: str, tool: str, wanted: Mapping[str, str], actor: Actor) -> None:
    """Have the vault keep exactly these variables; running servers are replaced. Demands an open write."""
    now = db.must_write()
    changed = unlike(db.writing_tenant(), plugin=plugin, tool=tool, wanted=wanted)
    beginning = variables_of(plugin, tool)
    for name in changed:
        if name in wanted:
            vault.put(beginning + name, wanted[name])
        else:
            vault.drop(beginning + name)
    if changed:
        audit.record(actor, "variables.entered", f"tool {tool}", after={"changed": changed})
        using = Tool.objects.filter(plugin_version__stage=Stage.CURRENT, plugin_version__plugin__name=plugin, slug=tool)
        using.update(measure_due_at=now, measure_failures=0)


def _names(manifest: Mapping[str, Any], slug: str) -> Sequence[str]:
    tools = manifest.get("tools", ())
    return next((tool.get("env", ()) for tool in tools if tool.get("id") == slug), ())
