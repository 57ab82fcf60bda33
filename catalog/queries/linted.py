"""Which plugin versions are linted as they are now."""

from collections import defaultdict
from uuid import UUID

from base import db
from catalog.models import Listing, PluginVersion, Stage
from catalog.rules.linting import key_of

UNREADABLE = ""  # the key of a report that says that the files cannot be read


def now_of(version: PluginVersion) -> tuple[str, dict[str, Listing]]:
    """The key of a report that would be made now, and the listings. Demands an open read or write."""
    current = Listing.objects.filter(tool__plugin_version=version, current=True).select_related("tool")
    listings = {one.tool.slug: one for one in current}
    return key_of(version.digest, {slug: one.digest for slug, one in listings.items()}), listings


def outdated() -> list[tuple[UUID, UUID]]:
    """(tenant, version) of the current versions whose report is of other listings, or of an earlier lint, or missing.

    What cannot be read is not among them: it is tried again when one of its tools is listed.
    """
    with db.sweep():
        current = PluginVersion.objects.filter(stage=Stage.CURRENT)
        versions = list(current.values_list("tenant_id", "pk", "digest", "lint_report__linted"))
        listed = Listing.objects.filter(current=True, tool__plugin_version__in=current)
        rows = list(listed.values_list("tool__plugin_version_id", "tool__slug", "digest"))
    listings: dict[UUID, dict[str, str]] = defaultdict(dict)
    for version, tool, digest in rows:
        listings[version][tool] = digest
    return [
        (tenant, version)
        for tenant, version, digest, linted in versions
        if linted != UNREADABLE and linted != key_of(digest, listings[version])
    ]
