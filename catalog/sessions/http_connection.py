"""A remote server's connection over Streamable HTTP, both generations: every call on an exchange of its own.

A call's failure is judged from its own exchange and costs no other call. Exactly one request is sent per call:
nothing is sent again, resumed or followed (RULES B7). A legacy session that the server has forgotten is opened anew
for the next call.
"""

import asyncio
import json
import logging
import re
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from mcp.shared.inbound import encode_header_value, mcp_param_headers, x_mcp_header_map

from base import outbound
from base.addresses import Refused
from catalog.rules import answers, http
from catalog.rules.answers import Answer, AnswerKind
from catalog.rules.http import Heard, NoAnswer
from catalog.rules.wire import AnswerEnd
from catalog.sessions.calls import Broke, Call
from catalog.sessions.connection import FIRST_ID, INPUT_METHODS, ConnectionEnded, Json, RequestFailed
from catalog.sessions.http_exchange import MAX_MESSAGE, Exchange, spelled
from catalog.sessions.log import Log
from catalog.sessions.negotiation import Negotiated

log = logging.getLogger(__name__)

ASIDE: Final = 10.0  # seconds for a message that nobody waits for: a cancel, a refusal, the end of a session
LATE: Final = 60.0  # seconds that a call which has ended for its owner may still bring its late answer
LAST_WORD: Final = 1.0  # seconds to tell a server that its session is over
ACKNOWLEDGED: Final = frozenset({-32800, 0})
SESSION: Final = "mcp-session-id"
_SESSION_ID: Final = re.compile(r"[\x21-\x7e]{1,1000}\Z")


@dataclass(slots=True)
class _Running:
    call: Call
    task: "asyncio.Task[None]"
    cancelled: bool = False
    late: bool = False


class HttpConnection:
    """Lives in one loop. `reopen` makes a new legacy session; it is given by who opened this one."""

    def __init__(
        self, client: outbound.Client, url: str, log_: Log, *, on_late: Callable[[object, Answer], None]
    ) -> None:
        self._client: Final = client
        self._url: Final = url
        self._log: Final = log_
        self._on_late: Final = on_late
        self._next_id = FIRST_ID
        self._running: Final[dict[int, _Running]] = {}
        self._by_token: Final[dict[str, Call]] = {}
        self._aside: Final[set[asyncio.Task[None]]] = set()
        self._opening: Final = asyncio.Lock()
        self._gone = False
        self.agreed = Negotiated("", "", "")
        self.modern = False
        self.session_id = ""
        self.acknowledges = False
        self.watched = False  # whether a stream would tell of a changed listing
        self.header_maps: Final[dict[str, Mapping[tuple[str, ...], str]]] = {}
        self.reopen: Callable[[], Coroutine[Any, Any, None]] = _cannot_reopen
        self.ended: Final[asyncio.Future[str]] = asyncio.get_running_loop().create_future()
        self.on_list_changed: Callable[[], None] = lambda: None

    # --- calls ---------------------------------------------------------------------------------------------------

    def call(self, call: Call, params: Json) -> None:
        """Send one `tools/call`. Raises `ValueError` when `params` cannot be written as JSON; then nothing is sent."""
        wire_id = self._new_id()
        message: Json = {"jsonrpc": "2.0", "id": wire_id, "method": "tools/call", "params": params}
        spelled(message)
        if self.ended.done():
            call.end(Broke(self.ended.result()))
            return
        call.sent_by(self, wire_id)
        if call.progress_token:
            self._by_token[call.progress_token] = call
        task = asyncio.get_running_loop().create_task(self._carry(call, wire_id, message))
        self._running[wire_id] = _Running(call, task)

    def cancel(self, wire_id: int, why: str) -> None:
        """Say that a call is no longer wanted: its stream is closed (2026-07-28) or a notification is sent (before).

        The notification travels aside, so a server that is slow to take it holds nothing up.
        """
        running = self._running.get(wire_id)
        if running is None:
            return
        running.cancelled = True
        if self.modern:
            running.task.cancel()
        else:
            self._later(self.say("notifications/cancelled", {"requestId": wire_id, "reason": why}))

    def forget(self, wire_id: int) -> None:
        """A call has ended for its owner: what still comes for it is a late answer, and its progress is ignored."""
        running = self._running.get(wire_id)
        if running is None:
            return
        self._by_token.pop(running.call.progress_token, None)
        if running.call.ended.done() or not running.call.went_out or self.modern:
            running.task.cancel()
        else:
            running.late = True
            asyncio.get_running_loop().call_later(LATE, running.task.cancel)

    async def _carry(self, call: Call, wire_id: int, message: Json) -> None:
        exchange = Exchange(wire_id, lambda other: self._route(other, call))
        call.heard = exchange.heard
        try:
            if self._gone:
                await self._open_anew()
            headers = self.headers("tools/call", message["params"])
            heard = await exchange.post(self._client, self._url, message, headers=headers, may_begin=call.begin)
            self._heard(call, wire_id, heard)
        except outbound.Withheld:
            return  # its owner took it back
        except (Refused, RequestFailed, ConnectionEnded) as error:
            call.end(Broke(str(error)))
        except outbound.Failed as error:
            if not error.went_out:
                call.never_left()
                call.end(Broke(str(error)))
            elif not self._running[wire_id].cancelled:
                call.end(NoAnswer(AnswerEnd.BROKEN, str(error)))
        except asyncio.CancelledError:
            if self.ended.done():
                call.end(Broke(self.ended.result()))
            raise
        except Exception as error:
            log.exception("an exchange ended by an error of ours")
            call.end(NoAnswer(AnswerEnd.UNREADABLE, f"The answer could not be read ({type(error).__name__})."))
        finally:
            self._running.pop(wire_id, None)
            self._by_token.pop(call.progress_token, None)

    def _heard(self, call: Call, wire_id: int, heard: Heard) -> None:
        running = self._running[wire_id]
        how = http.judge(heard, output_schema=call.output_schema, now=datetime.now(UTC), limit=MAX_MESSAGE)
        if heard.status == 404 and self.session_id:
            self._session_is_gone()
        if running.cancelled and isinstance(how, Answer) and _acknowledges(heard):
            self.acknowledges = True
        if isinstance(how, Answer) and call.asked_for_input and how.is_error and how.kind is not AnswerKind.TOO_LARGE:
            how = answers.asked_for_input(how.text)
        if running.late:
            if isinstance(how, Answer) and not _acknowledges(heard):
                self._log.add("oz0", f"a late answer to request {wire_id} was kept as evidence and not used")
                self._on_late(call.owner, how)
        elif running.cancelled and isinstance(how, NoAnswer):
            return  # that the stream broke does not say that the server stopped: the clean-up time is waited out
        else:
            call.end(how)

    # --- everything else ---------------------------------------------------------------------------------------------

    async def request(self, method: str, params: Json) -> Json:
        """The result of a request that is not a call. Wait with a limit.

        Raises `RequestFailed` or `ConnectionEnded`.
        """
        if self._gone:
            await self._open_anew()
        heard = await self.exchange(method, params)
        if heard.status == 404 and self.session_id:
            self._session_is_gone()
            await self._open_anew()
            heard = await self.exchange(method, params)
        return result_of(method, heard)

    async def exchange(self, method: str, params: Json, *, headers: Mapping[str, str] | None = None) -> Heard:
        """One request that is not a call, whatever its answer says. Raises `ConnectionEnded` when there is none."""
        wire_id = self._new_id()
        message: Json = {"jsonrpc": "2.0", "id": wire_id, "method": method, "params": params}
        every = {**self.headers(method, params), **(headers or {})}
        try:
            return await Exchange(wire_id, self._route).post(self._client, self._url, message, headers=every)
        except (Refused, outbound.Failed) as error:
            raise ConnectionEnded(str(error)) from error

    def headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        """The headers of the agreed generation for one request."""
        if not self.agreed.protocol:
            return {}
        found = {"MCP-Protocol-Version": self.agreed.protocol}
        if self.session_id:
            found["Mcp-Session-Id"] = self.session_id
        if self.modern:
            found["Mcp-Method"] = method
            name = params.get("name")
            if method == "tools/call" and isinstance(name, str):
                found["Mcp-Name"] = encode_header_value(name)
                found |= mcp_param_headers(self.header_maps.get(name, {}), params.get("arguments") or {})
        return found

    def learn(self, tools: list[object]) -> None:
        """Note which arguments of a listing's functions are repeated in headers (`x-mcp-header`, 2026-07-28)."""
        for tool in tools:
            if self.modern and isinstance(tool, dict) and isinstance(tool.get("name"), str):
                self.header_maps[tool["name"]] = x_mcp_header_map(tool.get("inputSchema"))

    def take_session(self, heard: Heard) -> None:
        """Keep the session id that an `initialize` was answered with, if any."""
        given = heard.headers.get(SESSION, "")
        if given and not _SESSION_ID.match(given):
            raise RequestFailed("The server's session id is not made of plain visible characters.")
        self.session_id, self._gone = given, False

    def _session_is_gone(self) -> None:
        """The server has forgotten the session, most likely by a restart: its listing may be another one now."""
        if not self._gone:
            self._gone = True
            self._log.add("oz0", "the server has forgotten the session; the next request opens a new one")
            self.on_list_changed()

    async def _open_anew(self) -> None:
        async with self._opening:
            if self._gone:
                await self.reopen()

    async def say(self, method: str, params: Json) -> None:
        """Send a notification, without caring how it fares."""
        await self._send({"jsonrpc": "2.0", "method": method, "params": params}, method, params)

    async def _send(self, message: Json, method: str, params: Mapping[str, Any]) -> None:
        """A message that nobody waits for; what goes wrong with it harms nothing else."""
        with suppress(Refused, outbound.Failed, TimeoutError):
            async with asyncio.timeout(ASIDE):
                headers = self.headers(method, params)
                await Exchange(None, lambda _other: None).post(self._client, self._url, message, headers=headers)

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)

    def _new_id(self) -> int:
        self._next_id += 1
        return self._next_id

    # --- what comes beside answers -----------------------------------------------------------------------------------

    def _route(self, message: Json, call: Call | None = None) -> None:
        method, params = str(message.get("method")), message.get("params")
        params = params if isinstance(params, dict) else {}
        if "id" in message:
            self._asked(message, method, call)
        elif method == "notifications/progress":
            waiting = self._by_token.get(str(params.get("progressToken")))
            if waiting is not None and not waiting.ended.done():
                waiting.on_progress(params)
        elif method == "notifications/message":
            data = params.get("data")
            said = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
            self._log.add("log", f"{str(params.get('level', 'info'))[:20]}: {said}")
        elif method == "notifications/tools/list_changed":
            self.on_list_changed()

    def _asked(self, message: Json, method: str, call: Call | None) -> None:
        """A request of the server: only a ping is granted."""
        reply: Json = {"jsonrpc": "2.0", "id": message["id"]}
        if method == "ping":
            reply["result"] = {}
        else:
            reply["error"] = {"code": -32601, "message": f"{method[:100]} is not offered by this client"}
            self._log.add("oz0", f"the server asked for {method[:100]}, which was refused")
            if method in INPUT_METHODS and call is not None:
                call.asked_for_input = True
        if len(self._aside) < 100:
            self._later(self._send(reply, "", {}))

    # --- the end -------------------------------------------------------------------------------------------------

    async def close(self, why: str) -> None:
        """End every exchange; open calls end as `Broke`. A legacy session is told that it is over."""
        if not self.ended.done():
            self.ended.set_result(why)
        tasks = [running.task for running in self._running.values()] + list(self._aside)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self.session_id and not self._gone:
            with suppress(Refused, outbound.Failed, TimeoutError):
                async with asyncio.timeout(LAST_WORD):
                    async with self._client.ask("DELETE", self._url, headers=self.headers("", {})):
                        pass

    def keep_watch(self, work: Coroutine[Any, Any, None]) -> None:
        """Run the stream that tells of changes until this connection is closed."""
        self._later(work)

    async def watch(self, method: str, params: Json | None, headers: Mapping[str, str]) -> int | None:
        """Hold one stream of notifications open until it ends; the HTTP status it began with."""
        body = b"" if params is None else spelled({"jsonrpc": "2.0", "id": self._new_id(), **params})
        exchange = Exchange(None, self._route)
        every = {**self.headers("" if params is None else params["method"], {}), **headers}
        with suppress(Refused, outbound.Failed):
            await exchange.read(self._client, self._url, method, body, every, on_open=self._watching)
        self.watched = False
        return exchange.heard.status

    def _watching(self) -> None:
        self.watched = True


def result_of(method: str, heard: Heard) -> Json:
    """The result in an answer. Raises `RequestFailed` that says what came instead."""
    message = heard.message
    result = message.get("result") if message is not None else None
    if isinstance(result, dict):
        return result
    error = (message or {}).get("error") or heard.error
    if isinstance(error, Mapping):
        raise RequestFailed(f"The server answered {method} with: {str(error.get('message'))[:200]}", heard.status)
    why = f"The server did not answer {method} (HTTP status {heard.status}). {heard.trouble}".rstrip()
    raise RequestFailed(why, heard.status)


def _acknowledges(heard: Heard) -> bool:
    """Whether an answer only says that the request was cancelled (as SDK servers of the older protocol do)."""
    error = heard.message.get("error") if heard.message is not None else None
    return isinstance(error, Mapping) and error.get("code") in ACKNOWLEDGED


async def _cannot_reopen() -> None:
    raise ConnectionEnded("The session is over.")
