"""What the gateway answers: the tools of a token's agent, and its calls as steps of a job (RULES G4–G7)."""

import asyncio
import functools
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final
from uuid import UUID

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from base import canonical, db, ids
from catalog.rules.platform import CONTINUE, RESULT
from jobs.gateway import answers
from jobs.gateway.exchange import KEY, Exchange, request_name
from jobs.gateway.pages import listed_until, page_of
from jobs.gateway.rounds import asked_for, kept, known_to, resumed, wanted
from jobs.gateway.threads import Threads
from jobs.gateway.watch import Waiter, Watch
from jobs.operations import continuing, outside
from jobs.operations.outside import NotTaken
from jobs.queries import outside as queries
from jobs.rules import texts
from jobs.rules.states import CallState
from jobs.rules.turns import Wanted
from tenants.queries.tokens import bearer

log = logging.getLogger(__name__)

BEAT: Final = 10.0  # seconds between two notices of progress while nothing moves; 15 at most (RULES G5)
NUDGE: Final = 1e-6  # by which progress grows when only time has passed, since it must grow
JOB: Final = "oz0/job"
AFTER: Final = 60.0  # seconds past its patience for which a cancel without a session still finds its call
LOOK_AGAIN: Final = 5.0  # seconds after which a token is looked at again before a result is given to it
AWAY: Final = "The studio's database does not answer just now. Try again in a few seconds."
UNFORESEEN: Final = "An error in the studio, which its log has in full."

type Context = ServerRequestContext[Any, Any]
type Answer = types.CallToolResult | types.InputRequiredResult


class Face:
    """The MCP server that clients see."""

    def __init__(self, *, threads: Threads, name: str, version: str, beat: float = BEAT) -> None:
        self._threads: Final = threads
        self._beat: Final = beat
        self._watch: Final = Watch(lambda calls: threads.run(lambda: queries.standings(calls)))
        self._open: Final[dict[tuple[UUID, str, str], set[Exchange]]] = {}
        self._aside: Final[set[asyncio.Task[Any]]] = set()
        self.server: Final[Server[Any]] = Server(
            name,
            version=version,
            instructions=INSTRUCTIONS,
            on_list_tools=_safely(self._list_tools),
            on_call_tool=_safely(self._call_tool),
            get_tool_input_schema=lambda _: None,  # else each call would run the whole listing first
        )

    async def stop(self) -> None:
        """Wait for no call any more."""
        await self._watch.stop()

    def cancel(self, exchange: Exchange, request: str) -> None:
        """Cancel what this client asked for with this request id, wherever it stands (RULES G6)."""
        client = exchange.client
        here = self._open.get((client.token_id, client.session, request), set())
        if len(here) == 1:
            (asked,) = here
            asked.cancelled = True
            if asked.call_id is not None:
                self._later(self._cancel_call(asked, asked.call_id))
        elif not here:
            self._later(self._cancel_elsewhere(exchange, request))

    async def _list_tools(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        """A page of them by name, from where the cursor says: one that came or went meanwhile moves no other."""
        client, after = _exchange(ctx).client, listed_until(params.cursor if params else None)
        try:
            offered = await self._threads.run(lambda: outside.offered(client))
        except NotTaken as error:
            raise MCPError(types.INVALID_REQUEST, str(error)) from error
        return page_of(offered, after)

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> Answer:
        exchange = _exchange(ctx)
        request = request_name(ctx.request_id) or ""
        exchange.whose = (exchange.client.token_id, exchange.client.session, request)
        exchange.wanted = wanted(params)
        self._open.setdefault(exchange.whose, set()).add(exchange)
        try:
            if params.name == CONTINUE.name and exchange.client.person is None:
                return await self._continued(exchange)
            if params.request_state is not None:
                call_id, rounds = resumed(params.request_state, exchange)
            elif params.name == RESULT.name:
                call_id, found = await self._made_before(exchange.client, params)
                if found.is_over:
                    self._closed(exchange)
                    return answers.result(call_id, found, ctx.protocol_version)
                rounds = asked_for(params)
            else:
                call_id, rounds = await self._take_in(exchange, params, request), asked_for(params)
        except NotTaken as error:
            self._closed(exchange)
            return answers.not_taken(str(error))
        except asyncio.CancelledError:
            if params.request_state is not None or params.name == RESULT.name:
                self._closed(exchange)  # of a call that is being taken in `_heard_late` does
            raise
        except BaseException:
            self._closed(exchange)
            raise
        exchange.call_id = call_id
        if exchange.cancelled:
            self._later(self._cancel_call(exchange, call_id))
        return await self._waited(exchange, ctx, call_id, rounds)

    async def _made_before(
        self, client: outside.Client, params: types.CallToolRequestParams
    ) -> tuple[UUID, queries.Answered]:
        """The call that `oz.result` names, when it is this token's: nobody else's is waited for, or stopped."""
        call_id = _named_call(params)
        found = await self._threads.run(lambda: queries.answered(client.tenant, client.token_id, call_id))
        if found is None:
            raise NotTaken(f"This token has made no call {ids.show(ids.CALL, call_id)}.")
        return call_id, found

    async def _continued(self, exchange: Exchange) -> Answer:
        """A harness's program asks that its job continues as new (RULES G3). It is no call, and waits for nothing."""
        ask = functools.partial(continuing.continue_as_new, client=exchange.client, arguments=_arguments(exchange))
        try:
            return answers.said(await self._threads.run(ask))
        finally:
            self._closed(exchange)

    async def _take_in(self, exchange: Exchange, params: types.CallToolRequestParams, request: str) -> UUID:
        """Submit the call. A client that goes or cancels meanwhile is heard when it is in."""
        want = Wanted(params.name, _arguments(exchange), request)
        submit = functools.partial(outside.submit, client=exchange.client, want=want, job_id=_named_job(params))
        task = asyncio.create_task(self._threads.run(submit))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._later(self._heard_late(exchange, task))
            raise
        except db.GONE as error:  # perhaps as it was committed
            raise NotTaken(texts.UNSEEN) from error

    async def _waited(self, exchange: Exchange, ctx: Context, call_id: UUID, rounds: int) -> Answer:
        client, began = exchange.client, time.monotonic()
        try:
            with self._watch.on(call_id, client.tenant) as waiter:
                exchange.on_gone = waiter.wake
                await self._until_over(exchange, ctx, waiter, began + exchange.patience)
                standing = waiter.standing
        except asyncio.CancelledError:
            if exchange.gone:
                self._later(self._cancel_call(exchange, call_id, closed=True))
            raise
        finally:
            self._closed(exchange)
        if exchange.gone and (standing is None or not standing.is_over):
            self._later(self._cancel_call(exchange, call_id, closed=True))
        try:
            if time.monotonic() - began > LOOK_AGAIN:
                await self._threads.run(lambda: _still(exchange.token_hash))
            found = await self._threads.run(lambda: queries.answered(client.tenant, client.token_id, call_id))
        except db.GONE:  # the call is in, and is not to be made again
            return answers.pending(call_id, standing.state if standing else CallState.QUEUED)
        if found is None:
            return answers.not_taken(f"This token has made no call {ids.show(ids.CALL, call_id)}.")
        if found.is_over:
            return answers.result(call_id, found, ctx.protocol_version)
        if rounds > 1 and known_to(ctx.protocol_version):
            return types.InputRequiredResult(request_state=kept(exchange, call_id, rounds - 1))
        return answers.pending(call_id, found.state)

    async def _until_over(self, exchange: Exchange, ctx: Context, waiter: Waiter, until: float) -> None:
        """Wait until the call is over, its client has gone, or its patience ends; tell of progress meanwhile."""
        said, beat_at = 0.0, time.monotonic() + self._beat
        while not exchange.gone:
            standing = waiter.standing
            now = time.monotonic()
            if now >= until or (standing is not None and standing.is_over):
                return
            if standing is not None and standing.progress is not None and standing.progress > said:
                said, beat_at = standing.progress, now + self._beat
                await ctx.session.report_progress(said, standing.total)
            elif now >= beat_at:
                said, beat_at = said + NUDGE, now + self._beat
                await ctx.session.report_progress(said, None, _says(standing))
            await waiter.changed(min(until, beat_at) - time.monotonic())

    async def _heard_late(self, exchange: Exchange, task: "asyncio.Task[UUID]") -> None:
        """Its client went, or cancelled, while the call was being taken in."""
        try:
            call_id = await task
        except (NotTaken, *db.GONE):
            return
        finally:
            self._closed(exchange)
        if exchange.cancelled:
            await self._cancel_call(exchange, call_id)
        elif exchange.gone:
            await self._cancel_call(exchange, call_id, closed=True)

    async def _cancel_call(self, exchange: Exchange, call_id: UUID, *, closed: bool = False) -> None:
        client = exchange.client
        await self._threads.run(lambda: outside.cancel_call(client=client, call_id=call_id, closed=closed))

    async def _cancel_elsewhere(self, exchange: Exchange, request: str) -> None:
        client = exchange.client
        call_id = await self._threads.run(
            lambda: outside.call_of_request(client=client, request=request, within=exchange.patience + AFTER)
        )
        if call_id is not None:
            await self._cancel_call(exchange, call_id)

    def _closed(self, exchange: Exchange) -> None:
        here = self._open.get(exchange.whose) if exchange.whose is not None else None
        if here is not None and exchange.whose is not None:
            here.discard(exchange)
            if not here:
                del self._open[exchange.whose]

    def _later(self, work: "Awaitable[None]") -> None:
        """Do something that outlives the request; what fails of it is logged."""

        async def done() -> None:
            try:
                await work
            except Exception:
                log.exception("a client's cancel could not be carried out")

        task = asyncio.get_running_loop().create_task(done())
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)


INSTRUCTIONS: Final = (
    "These tools are governed by oz0 studio. A call may wait for a person: its result then says so, with a call id. "
    "Do not make such a call again; ask for its result later with oz__result."
)


def _safely[Params, Found](
    handler: Callable[[Context, Params], Awaitable[Found]],
) -> Callable[[Context, Params], Awaitable[Found]]:
    """The handler, whose unforeseen errors are logged and told without a word of theirs."""

    async def safe(ctx: Context, params: Params) -> Found:
        try:
            return await handler(ctx, params)
        except MCPError:
            raise
        except db.GONE as error:
            raise MCPError(types.INTERNAL_ERROR, AWAY) from error
        except Exception as error:
            log.exception("a client's request could not be answered")
            raise MCPError(types.INTERNAL_ERROR, UNFORESEEN) from error

    return safe


def _exchange(ctx: Context) -> Exchange:
    request: Any = ctx.request
    found: Exchange = request.scope[KEY]
    return found


def _arguments(exchange: Exchange) -> Any:
    """The arguments exactly as they were sent; none are an empty object."""
    try:
        params = exchange.message().get("params")
    except canonical.NotCanonical as error:
        raise NotTaken(f"This call was not made: it cannot be sent exactly as written: {error}") from error
    exchange.read()
    given = params.get("arguments") if isinstance(params, dict) else None
    return {} if given is None else given


def _named_job(params: types.CallToolRequestParams) -> UUID | None:
    named = (params.meta or {}).get(JOB)
    if named is None:
        return None
    try:
        return ids.parse(ids.JOB, str(named))
    except ids.BadId as error:
        raise NotTaken(f"This call was not made: _meta {JOB} names no job: {error}") from error


def _named_call(params: types.CallToolRequestParams) -> UUID:
    named = (params.arguments or {}).get("call")
    try:
        return ids.parse(ids.CALL, str(named))
    except ids.BadId as error:
        raise NotTaken(f"{RESULT.name} takes a call id as `call`, such as you were told: {error}") from error


def _says(standing: queries.Standing | None) -> str:
    """What a notice of progress says while nothing moves."""
    match standing.state if standing else None:
        case CallState.HELD:
            return "waiting for a person to approve it"
        case CallState.UNKNOWN:
            return "waiting for a person to say whether it happened"
        case None:
            return "waiting"
        case state:
            return state.value


def _still(token_hash: str) -> None:
    """Refuse a result to a token that was revoked while its call was waited for."""
    if bearer(token_hash) is None:
        raise MCPError(types.INVALID_REQUEST, "This token counts no more.")
