"""Linting what the studio runs: once for each state of a plugin's files and listings, kept for the pages to read.

It takes seconds for thousands of functions, so no page does it: a node does, when it has listed a tool, and whoever
registers a plugin.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from uuid import UUID

from base import db, folders
from catalog import wake
from catalog.models import Function, LintFinding, LintReport, Listing, PluginVersion, Stage, Tool
from catalog.queries import linted
from catalog.rules.findings import Finding, Severity
from catalog.rules.lint import FILES
from catalog.rules.linting import Placed, lint_listed
from catalog.rules.manifest import MANIFEST
from catalog.rules.servers import ListedFunction

_log: Final = logging.getLogger(__name__)
_ENTRY: Final = ("name", "title", "description", "input_schema", "output_schema", "annotations", "meta", "entry_digest")
_UNREADABLE: Final = Placed(
    Finding(
        Severity.ERROR,
        FILES,
        MANIFEST,
        0,
        "",
        "its files, as they were registered, cannot be read here",
        "register the plugin again, then list one of its tools again",
    )
)


def lint_tool(*, tenant: UUID, tool_id: UUID) -> bool:
    """Lint the plugin version that a tool is of."""
    with db.read(tenant):
        version = Tool.objects.values_list("plugin_version_id", flat=True).get(pk=tool_id)
    return lint_version(tenant=tenant, version_id=version)


def lint_version(*, tenant: UUID, version_id: UUID) -> bool:
    """Lint a plugin version with the listings of now. False when that was done before, or it is not current.

    What changes while it is linted is linted by whoever changed it, or by `lint_outdated` where they are gone. Files
    that cannot be read are a finding, and are tried again each time.
    """
    with db.read(tenant):
        version = PluginVersion.objects.get(pk=version_id)
        key, listings = linted.now_of(version)
        if version.stage != Stage.CURRENT or LintReport.objects.filter(plugin_version=version, linted=key).exists():
            return False
        listed = {slug: tuple(_entries(listing)) for slug, listing in listings.items()}
    files = _files(version)
    found = (_UNREADABLE,) if files is None else lint_listed(files, listed)
    with db.write(tenant) as now:
        version = PluginVersion.objects.select_for_update(no_key=True).get(pk=version_id)
        if linted.now_of(version)[0] != key:
            return False
        LintFinding.objects.filter(plugin_version=version).delete()
        LintFinding.objects.bulk_create(_row(version, place, one) for place, one in enumerate(found))
        errors = sum(one.finding.severity is Severity.ERROR for one in found)
        of = linted.UNREADABLE if files is None else key
        counted = {"linted": of, "errors": errors, "warnings": len(found) - errors, "made_at": now}
        LintReport.objects.update_or_create(
            plugin_version=version, defaults=counted, create_defaults=counted | {"tenant_id": tenant}
        )
        wake.changed()
    return True


def lint_outdated() -> None:
    """Lint what is not linted as it is now, of every tenant.

    Whoever kept a listing may have been gone before it was linted, and an upgrade of the studio may look for more. One
    that cannot be linted, by an error of ours, does not keep the others from it.
    """
    for tenant, version in linted.outdated():
        try:
            lint_version(tenant=tenant, version_id=version)
        except db.GONE:
            raise
        except Exception:
            _log.exception("plugin version %s is left as it was linted before, by an error of ours", version)


def _files(version: PluginVersion) -> Mapping[str, bytes] | None:
    """Its files as they were registered; None where they cannot be read."""
    try:
        return folders.files_of(Path(version.folder))
    except (folders.BadFolder, OSError) as error:
        _log.warning("plugin version %s cannot be linted: %s", version.pk, error)
        return None


def _entries(listing: Listing) -> list[ListedFunction]:
    rows = Function.objects.filter(listing=listing).order_by("name").values_list(*_ENTRY)
    return [ListedFunction(*row) for row in rows]


def _row(version: PluginVersion, place: int, one: Placed) -> LintFinding:
    found = one.finding
    return LintFinding(
        tenant_id=version.tenant_id,
        plugin_version=version,
        place=place,
        severity=found.severity,
        code=found.code,
        tool=one.tool,
        function=one.function,
        file=found.file,
        line=found.line,
        key=found.key,
        message=found.message,
        fix=found.fix,
    )
