"""One tool as a page: what its server lists, what its connection can do, and how its listing changed."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from base import db
from catalog.models import ServerLog, Stage, Standing, Tool, Transport
from catalog.queries.connections import named, standing_of
from catalog.queries.finding_list import findings_of_tool
from catalog.queries.function_index import functions_of
from catalog.queries.listing_review import ListingRow, history
from catalog.queries.pages import ToolRow, tool_row
from catalog.queries.sign_ins import shown_id
from catalog.queries.switch_rows import SwitchRow, on_over
from catalog.queries.trust import approvals_of
from catalog.rules.manifest import TIMEOUT
from catalog.rules.switching import Scope

LONG: Final = 30.0  # seconds of a tool's limit from which on a person misses cancel and progress
SAID: Final = "as timeout: in its plugin’s manifest says"
DEFAULT: Final = "the default, which timeout: in its plugin’s manifest changes"
SHARED: Final = "One server is shared by this workspace's calls."
ALONE: Final = "A server of its own for each job."
REMOTE: Final = "A remote server, reached over a connection."


@dataclass(frozen=True, slots=True)
class ApprovedRow:
    """One entry of a remote server whose word counts, because a person approved exactly this."""

    function: str
    digest: str
    by: str
    at: datetime


@dataclass(frozen=True, slots=True)
class ServerSaid:
    """The last that the tool's servers on one node said beside the protocol, newest line first."""

    node: str
    written_at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class ToolPage:
    """One tool of a current plugin version. `warning` says what a long call of it cannot have."""

    tool_id: UUID
    plugin: str
    version: str
    row: ToolRow
    runs: str
    command_line: str
    connection: str
    connection_id: str  # as its page shows it; empty when there is no such connection
    standing: Standing | None  # of a connection that is signed in to
    limit_from: str
    cleanup: float
    startup: float
    warning: str
    approved: tuple[ApprovedRow, ...]
    said: tuple[ServerSaid, ...]
    history: tuple[ListingRow, ...]
    findings: tuple[int, int]  # errors, warnings
    switches: tuple[SwitchRow, ...]
    now: datetime


def tool_page(tenant: UUID, slug: str, *, log: bool = False, page: int = 1) -> ToolPage | None:
    """The tool's page; None when there is no such tool. `log` is for people who may read what the server said."""
    listed = [one for one in functions_of(tenant) if one.tool == slug]
    with db.read(tenant) as now:
        current = Tool.objects.filter(slug=slug, plugin_version__stage=Stage.CURRENT)
        tool = current.select_related("plugin_version__plugin").first()
        if tool is None:
            return None
        row = tool_row(tool, listed, page)
        reached = named(tool.connection) if tool.connection else None
        return ToolPage(
            tool_id=tool.pk,
            plugin=tool.plugin_version.plugin.name,
            version=tool.plugin_version.version,
            row=row,
            runs={Transport.STDIO: SHARED, Transport.SANDBOX: ALONE, Transport.URL: REMOTE}[Transport(tool.transport)],
            command_line=" ".join(str(word) for word in tool.argv),
            connection=tool.connection,
            connection_id=shown_id(reached) if reached else "",
            standing=standing_of(reached) if reached else None,
            limit_from=SAID if tool.timeout != TIMEOUT else DEFAULT,
            cleanup=tool.cleanup,
            startup=tool.startup,
            warning=_warning(row),
            approved=_approved(tool),
            said=_said(tool) if log else (),
            history=history(tool),
            findings=findings_of_tool(slug),
            switches=on_over((Scope.TOOL, slug), inside=[one.label for one in listed]),
            now=now,
        )


def _warning(row: ToolRow) -> str:
    """What a call that takes long misses on this connection (RULES C5)."""
    if row.measured_at is None or row.timeout <= LONG:
        return ""
    missing = [
        *([] if row.can_cancel else ["cannot be cancelled (a stop is only waited out)"]),
        *([] if row.can_report else ["shows no progress and cannot resume"]),
    ]
    return f"A call may take {row.timeout:g} s and {', and '.join(missing)}." if missing else ""


def _approved(tool: Tool) -> tuple[ApprovedRow, ...]:
    if tool.transport != Transport.URL:
        return ()
    standing = approvals_of(tool).filter(withdrawn_at__isnull=True).select_related("approved_by").order_by("function")
    return tuple(
        ApprovedRow(one.function, one.entry_digest, one.approved_by.get_username(), one.approved_at) for one in standing
    )


def _said(tool: Tool) -> tuple[ServerSaid, ...]:
    rows = ServerLog.objects.filter(tool=tool).order_by("-written_at")
    return tuple(ServerSaid(row.node_name, row.written_at, "\n".join(reversed(row.lines))) for row in rows)
