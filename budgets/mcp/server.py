"""The MCP server: each call of a tool is one owner's work within one deadline (RULES W1–W5)."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, Literal
from uuid import UUID

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    ToolAnnotations,
)
from mcp.types import Tool as Listed

from base import ids
from budgets.mcp import results
from budgets.mcp.offers import PROFILES, TOOLS, BadArguments, Edge, Tool
from budgets.sessions.bounds import BOUNDS, Bounds, Deadline, Stopped
from budgets.sessions.calls import Call, Failed, Recovery
from budgets.sessions.credentials import Credentials, NoCredentials
from budgets.sessions.owner import Owner
from budgets.sessions.workers import Workers

log = logging.getLogger(__name__)

NAME: Final = "oz0-budget"
BAD: Final = "invalid_arguments"
INSTRUCTIONS: Final = (
    "Every call is over within 30 s and says in `recovery` how to go on. Keep the operation_id, every reservation_id "
    "and every recording_retry object: they are what a lost answer is recovered by."
)
type Profile = Literal["read", "full"]
type Context = ServerRequestContext[Any, Any]


class BudgetServer:
    """The tools of one profile for one studio. `bounds` is what tests make smaller; nothing that a client says does."""

    def __init__(
        self,
        *,
        studio: str,
        profile: Profile,
        credentials: Credentials,
        version: str,
        bounds: Bounds = BOUNDS,
        workers: Workers | None = None,
        new_id: Callable[[], UUID] = ids.new,
    ) -> None:
        self._studio: Final = studio
        self._credentials: Final = credentials
        self._bounds: Final = bounds
        self._workers: Final = workers or Workers()
        self._edge: Final = Edge(new_id, lambda: datetime.now(UTC), bounds)
        self._tools: Final = {name: one for name, one in TOOLS.items() if name in PROFILES[profile]}
        self.server: Final[Server[Any]] = Server(
            NAME,
            version=version,
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            get_tool_input_schema=lambda _: None,
        )

    async def _list_tools(self, _ctx: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_listed(one) for one in self._tools.values()])

    async def _call_tool(self, _ctx: Context, params: CallToolRequestParams) -> CallToolResult:
        deadline = Deadline(self._bounds.seconds)
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name[:64]}")
        given = params.arguments or {}
        try:
            call = tool.call(given, self._edge)
        except BadArguments as error:
            return results.refused(BAD, f"{error}.", self._nothing_done(tool, given), self._bounds)
        except Stopped as error:
            return results.refused(results.code_of(error), str(error), self._nothing_done(tool, given), self._bounds)
        return await self._done(call, deadline)

    async def _done(self, call: Call, deadline: Deadline) -> CallToolResult:
        owner = Owner(self._studio, self._credentials, deadline=deadline, bounds=self._bounds, workers=self._workers)
        trouble: results.Trouble = None
        try:
            await owner.run(lambda: call.work(owner))
        except (Stopped, Failed, NoCredentials) as error:
            trouble = error
        except Exception:  # what nobody foresaw: what is known is told all the same, and nothing of it is made up
            log.exception("a call of %s could not be done", type(call).__name__)
            trouble = Failed("internal_error", "An error in this server, which its standard error has in full.")
        if trouble is not None:
            call.stopped()
        built = results.result(call, trouble, bounds=self._bounds, stuck=owner.stuck)
        if trouble is None and deadline.over:  # building it took the rest
            return results.result(call, deadline.passed(), bounds=self._bounds, stuck=owner.stuck)
        return built

    def _nothing_done(self, tool: Tool, given: dict[str, Any]) -> Recovery:
        """The identities of a call that was not made; an id that nobody gave is drawn, so that there is one to keep."""
        said = {name: value for name, value in given.items() if isinstance(value, str) and len(value) <= 256}
        recovery = Recovery(operation_id=said.get("operation_id"), reservation_id=said.get("reservation_id"))
        recovery.call_id = said.get("call_id")
        cursor = given.get("cursor")
        recovery.cursor = cursor if isinstance(cursor, str) and len(cursor) <= self._bounds.cursor else None
        if tool.name == "budget_check_batch" and "checks" in given and given.get("operation_id") is None:
            recovery.operation_id = str(self._edge.new_id())
        return recovery


def _listed(tool: Tool) -> Listed:
    """A tool as it is listed. A write can spend and cannot be taken back: destructive, and another call is another."""
    return Listed(
        name=tool.name,
        description=tool.description,
        input_schema=tool.arguments.model_json_schema(),
        annotations=ToolAnnotations(
            read_only_hint=not tool.writes,
            destructive_hint=tool.writes,
            idempotent_hint=not tool.writes,
            open_world_hint=True,
        ),
    )
