"""One server's stdio connection: whose answer is whose, and what each request left on the wire (MACHINES 5).

The MCP client SDK negotiates over it (`negotiation.py`); every other request is made here, exactly once, and its
answer is judged from the message itself. A line that is too long, not JSON or nobody's costs at most its own call.
"""

import asyncio
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final

from catalog.rules import answers
from catalog.rules.answers import Answer, AnswerKind
from catalog.sessions.calls import Broke, Call
from catalog.sessions.lines import Lines, Overlong, id_in_pieces
from catalog.sessions.log import Log
from catalog.sessions.outbox import WAITING, Letter, Outbox
from catalog.sessions.process import ServerProcess

MAX_LINE: Final = answers.LARGEST
FIRST_ID: Final = 1_000_000  # ours start here; the SDK counts its few from 1
REMEMBERED: Final = 10_000  # calls that ended without an answer, by whose id a late one is known
STOPPED: Final = "notifications/oz0/stopped"  # a server's word that a cancelled request has ended: {"requestId": 7}
INPUT_METHODS: Final = frozenset({"elicitation/create", "sampling/createMessage", "roots/list"})
Json = dict[str, Any]


class ConnectionEnded(Exception):
    """The connection is over; the message is one sentence that says how."""


class RequestFailed(Exception):
    """The server answered a request of ours with an error. `status` is the HTTP status, None on stdio."""

    def __init__(self, why: str, status: int | None = None) -> None:
        super().__init__(why)
        self.status: Final = status


class Connection:
    """Lives in one loop. `on_sdk` gets the messages that answer the SDK's own requests."""

    def __init__(
        self,
        process: ServerProcess,
        log: Log,
        *,
        on_late: Callable[[object, Answer], None],
        max_line: int = MAX_LINE,
    ) -> None:
        self._process: Final = process
        self._log: Final = log
        self._on_late: Final = on_late
        self._max_line: Final = max_line
        self._lines: Final = Lines(max_line)
        self._outbox: Final = Outbox(process.stdin)
        self._next_id = FIRST_ID
        self._calls: dict[int, Call] = {}
        self._by_token: dict[str, Call] = {}
        self._late: OrderedDict[int, Call] = OrderedDict()
        self._requests: dict[int, asyncio.Future[Json]] = {}
        self.ended: Final[asyncio.Future[str]] = asyncio.get_running_loop().create_future()
        self.on_sdk: Callable[[Json], None] = lambda _message: None
        self.on_list_changed: Callable[[], None] = lambda: None
        self.acknowledges = False  # until the server has said once that a cancelled call has ended
        self.watched = True
        process.listen(self._received, self._lost)

    # --- what goes out -------------------------------------------------------------------------------------------

    def call(self, call: Call, params: Json) -> None:
        """Send one `tools/call`. Raises `ValueError` when `params` cannot be written as JSON; then nothing is sent."""
        wire_id = self._new_id()
        data = _spelled({"jsonrpc": "2.0", "id": wire_id, "method": "tools/call", "params": params})
        if self.ended.done():
            call.end(Broke(self.ended.result()))
            return
        call.sent_by(self, wire_id)
        self._calls[wire_id] = call
        if call.progress_token:
            self._by_token[call.progress_token] = call
        self._outbox.put(Letter(data, call.begin, call.never_left))

    def cancel(self, wire_id: int, why: str) -> None:
        """Tell the server that a request of ours is no longer wanted."""
        self._tell("notifications/cancelled", {"requestId": wire_id, "reason": why})

    def forget(self, wire_id: int) -> None:
        """A call has ended for its owner: what still comes for it is a late answer, and its progress is ignored."""
        call = self._calls.pop(wire_id, None)
        if call is None:
            return
        self._by_token.pop(call.progress_token, None)
        if call.went_out and not call.ended.done():
            self._late[wire_id] = call
            while len(self._late) > REMEMBERED:
                self._late.popitem(last=False)

    async def request(self, method: str, params: Json) -> Json:
        """The result of a request that is not a call. Wait with a limit.

        Raises `RequestFailed` or `ConnectionEnded`.
        """
        if self.ended.done():
            raise ConnectionEnded(self.ended.result())
        wire_id = self._new_id()
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._requests[wire_id] = answer
        self._outbox.put(Letter(_spelled({"jsonrpc": "2.0", "id": wire_id, "method": method, "params": params})))
        try:
            message = await answer
        finally:
            self._requests.pop(wire_id, None)
        result = message.get("result")
        if not isinstance(result, dict):
            error = message.get("error")
            said = error.get("message") if isinstance(error, dict) else "a result that is no object"
            raise RequestFailed(f"The server answered {method} with: {str(said)[:200]}")
        return result

    def learn(self, tools: list[object]) -> None:
        """Nothing of a listing matters to stdio."""

    def send_as_is(self, message: Json) -> None:
        """Send a message the SDK made."""
        self._outbox.put(Letter(_spelled(message)))

    def send_line(self, line: bytes) -> None:
        """Send bytes that are no message of ours, line end and all: what a server is tried with."""
        self._outbox.put(Letter(line))

    def _tell(self, method: str, params: Json) -> None:
        if self._outbox.waiting < WAITING:
            self._outbox.put(Letter(_spelled({"jsonrpc": "2.0", "method": method, "params": params})))

    def _new_id(self) -> int:
        self._next_id += 1
        return self._next_id

    # --- what comes in -------------------------------------------------------------------------------------------

    def _received(self, chunk: bytes) -> None:
        for line in self._lines.feed(chunk):
            if isinstance(line, Overlong):
                self._unread(line.head, line.tail, answers.too_large(self._max_line), f"a line of {line.size} bytes")
            elif line.strip():
                self._line(line)

    def _line(self, line: bytes) -> None:
        try:
            message = json.loads(line.decode("utf-8", "replace"), parse_constant=_no_constant)
        except (ValueError, RecursionError):
            self._unread(line, line, answers.unreadable("The answer is not JSON."), "")
            return
        batch = message if isinstance(message, list) else [message]
        strange = [one for one in batch if not isinstance(one, dict) or not self._route(one)]
        if strange:
            self._log.add("stdout", line)

    def _unread(self, head: bytes, tail: bytes, answer: Answer, what: str) -> None:
        """A line nobody can parse: at most the call whose id it carries hears of it."""
        wire_id = id_in_pieces(head, tail)
        if isinstance(wire_id, int) and wire_id in self._calls:
            self._log.add("oz0", f"unreadable answer, {what or f'{len(head)} bytes'}")
            self._calls[wire_id].end(answer)
        elif isinstance(wire_id, int) and wire_id in self._late:
            self._came_late(wire_id, answer)
        elif isinstance(wire_id, int) and wire_id in self._requests:
            self._requests[wire_id].set_result({"error": {"message": answer.text}})
        else:
            self._log.add("stdout", f"{what}: {head[:200].decode('utf-8', 'replace')}" if what else head)

    def _route(self, message: Json) -> bool:
        """Hand a message to whom it is for; false when it is not the protocol's and belongs into the log."""
        wire_id, method = _as_id(message.get("id")), message.get("method")
        if message.get("jsonrpc") != "2.0":
            if isinstance(wire_id, int) and wire_id in self._calls and ("result" in message or "error" in message):
                self._calls[wire_id].end(answers.unreadable("The answer is not a JSON-RPC 2.0 message."))
            return False
        if isinstance(method, str):
            params = message.get("params")
            self._asked(message, method) if "id" in message else self._noticed(
                method, params if isinstance(params, dict) else {}
            )
        elif isinstance(wire_id, int) and wire_id >= FIRST_ID:
            self._answered(wire_id, message)
        elif wire_id is not None:
            self.on_sdk(message)
        else:
            return False
        return True

    def _answered(self, wire_id: int, message: Json) -> None:
        if (waiting := self._requests.get(wire_id)) is not None:
            if not waiting.done():
                waiting.set_result(message)
        elif (call := self._calls.get(wire_id)) is not None and not call.ended.done():
            call.end(self._read(call, message))
        elif wire_id in self._late:
            self._came_late(wire_id, self._read(self._late[wire_id], message))
        else:
            self._log.add("oz0", f"an answer to request {wire_id}, which waits for none, was dropped")

    def _read(self, call: Call, message: Json) -> Answer:
        answer = answers.read(message, call.output_schema)
        if call.asked_for_input and answer.is_error and answer.kind in (AnswerKind.RESULT, AnswerKind.ERROR):
            return answers.asked_for_input(answer.text)
        return answer

    def _came_late(self, wire_id: int, answer: Answer) -> None:
        call = self._late.pop(wire_id)
        self._log.add("oz0", f"a late answer to request {wire_id} was kept as evidence and not used")
        self._on_late(call.owner, answer)

    def _asked(self, message: Json, method: str) -> None:
        """A request of the server: only a ping is granted."""
        reply: Json = {"jsonrpc": "2.0", "id": message["id"]}
        if method == "ping":
            reply["result"] = {}
        else:
            reply["error"] = {"code": -32601, "message": f"{method[:100]} is not offered by this client"}
            self._log.add("oz0", f"the server asked for {method[:100]}, which was refused")
            if method in INPUT_METHODS and len(self._calls) == 1:
                next(iter(self._calls.values())).asked_for_input = True
        if self._outbox.waiting < WAITING:
            self._outbox.put(Letter(_spelled(reply)))

    def _noticed(self, method: str, params: Mapping[str, Any]) -> None:
        if method == "notifications/progress":
            call = self._by_token.get(str(params.get("progressToken")))
            if call is not None and not call.ended.done():
                call.on_progress(params)
        elif method == "notifications/message":
            data = params.get("data")
            said = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
            self._log.add("log", f"{str(params.get('level', 'info'))[:20]}: {said}")
        elif method == "notifications/tools/list_changed":
            self.on_list_changed()
        elif method == STOPPED:
            self._stopped(_as_id(params.get("requestId")))

    def _stopped(self, wire_id: int | str | None) -> None:
        """MCP has no answer to a cancelled request on stdio; a server that says when it ended is believed (RULES L2).

        Of a call that was not cancelled it says nothing: that call still waits for its answer.
        """
        call = self._calls.get(wire_id) if isinstance(wire_id, int) else None
        if call is not None and call.cancelled:
            self.acknowledges = True
            call.end(answers.acknowledged())

    # --- the end -------------------------------------------------------------------------------------------------

    def _lost(self, why: str) -> None:
        if self._lines.rest().strip():
            self._log.add("stdout", self._lines.rest()[:4096])
        self._finish(why)

    def _finish(self, why: str) -> None:
        if self.ended.done():
            return
        self.ended.set_result(why)
        for call in list(self._calls.values()):
            call.end(Broke(why))
        for answer in self._requests.values():
            if not answer.done():
                answer.set_exception(ConnectionEnded(why))

    async def close(self, why: str) -> None:
        """End the server; every open call then ends as `Broke`, once its process is gone."""
        await self._outbox.close()
        await self._process.close()
        self._finish(why)


def _as_id(value: object) -> int | str | None:
    """A response's id; a whole number spelled as text is that number."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    return value


def _spelled(message: Json) -> bytes:
    return json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
