"""Keeping the last of what a tool's servers said, bounded and without secrets (RULES C8, A14)."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from base import db
from base.masking import Mask
from catalog.models import ServerLog
from tenants.operations import vault

MOST_LINES: Final = 200
MOST_BYTES: Final = 32 * 1024
MOST_KEPT: Final = 4  # nodes whose log of one tool is kept, the latest
NOT_KEPT: Final = "oz0: what it said was not kept: a secret of the vault does not open, so it could not be taken out"


def keep(*, tenant: UUID, tool_id: UUID, node: UUID, node_name: str, lines: Sequence[str]) -> None:
    """Keep the end of these lines as what the tool's servers on this node said last, in place of what was there.

    Every secret of the tenant's vault is taken out first; when one of them cannot be read, a line that says so is kept
    instead of all.
    """
    with db.write(tenant) as now:
        try:
            mask = Mask(vault.every(tenant))
        except vault.NoSecret:
            kept = [NOT_KEPT]
        else:
            kept = _end([_storable(mask(line)) for line in lines[-MOST_LINES:]])
        fields = {"node_name": node_name[:200], "lines": kept, "written_at": now}
        row, _ = ServerLog.objects.update_or_create(tenant_id=tenant, tool_id=tool_id, node=node, defaults=fields)
        latest = ServerLog.objects.filter(tool_id=tool_id).order_by("-written_at", "-pk").values_list("pk", flat=True)
        ServerLog.objects.filter(tool_id=tool_id).exclude(pk__in=[row.pk, *latest[:MOST_KEPT]]).delete()


def _end(lines: Sequence[str]) -> list[str]:
    """The last whole lines that come to at most `MOST_BYTES`."""
    kept: list[str] = []
    room = MOST_BYTES
    for line in reversed(lines):
        room -= len(line.encode()) + 1
        if room < 0:
            break
        kept.append(line)
    return kept[::-1]


def _storable(line: str) -> str:
    """What PostgreSQL cannot hold in JSON, shown as its code."""
    return "".join(f"⟨U+{ord(c):04X}⟩" if c == "\0" or "\ud800" <= c <= "\udfff" else c for c in line)
