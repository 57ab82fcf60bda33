"""Pages of tools, by name: one that comes or goes between two of them moves no other."""

import base64
from collections.abc import Iterable
from typing import Final

import mcp_types as types
from mcp.shared.exceptions import MCPError

from jobs.gateway import answers
from jobs.operations.outside import Offered

OURS: Final = "oz__"  # how names begin that no tool of a plugin can have
LISTED: Final = 500  # tools in one page: not every client asks for a second


def page_of(offered: Iterable[Offered], after: str) -> types.ListToolsResult:
    """The tools whose names come after this one, as many as a page has, and where the next one begins.

    The studio's own come first: without them what is held cannot be asked for again.
    """
    last = _place(after) if after else (False, "")
    rest = sorted(
        (one for one in offered if _place(one.definition.name) > last), key=lambda one: _place(one.definition.name)
    )
    page = rest[:LISTED]
    more = _cursor(page[-1].definition.name) if len(rest) > LISTED else None
    return types.ListToolsResult(tools=[answers.tool(one) for one in page], next_cursor=more)


def listed_until(cursor: str | None) -> str:
    """The last name of the page before, empty at the first. Nothing signs it, since it gives nothing away."""
    if cursor is None:
        return ""
    try:
        return base64.b64decode(cursor, altchars=b"-_", validate=True).decode()
    except ValueError as error:
        raise MCPError(types.INVALID_PARAMS, "This cursor is none of the studio's.") from error


def _place(name: str) -> tuple[bool, str]:
    return not name.startswith(OURS), name


def _cursor(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()
