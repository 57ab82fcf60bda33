"""A local server that speaks what model providers speak: Anthropic, OpenAI (both APIs) and Google, with faults.

It gives the answers of its plan, one a request, whatever provider's address was asked; and keeps what it was sent.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final


@dataclass(frozen=True)
class Says:
    """One answer. `status` other than 200 makes it an error with `error` for a message.

    `cut`: the connection ends after so many bytes of the body. `wait` holds the answer until the event is set, or what
    of its body comes after `hold_after` bytes.
    """

    text: str = ""
    calls: tuple[tuple[str, Any], ...] = ()
    status: int = 200
    error: str = "no"
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None
    stop: str = ""
    wait: threading.Event | None = None
    hold_after: int = 0
    raw: bytes | None = None


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    path: str
    headers: Mapping[str, str]
    body: Any


class Provider:
    """The server while it runs. `url` is its address, `place` how allow-lists spell it."""

    def __init__(self, port: int, plan: list[Says]) -> None:
        self.place: Final = f"127.0.0.1:{port}"
        self.url: Final = f"http://{self.place}"
        self.plan: Final = plan
        self.asked: Final[list[Asked]] = []
        self.arrived: Final = threading.Event()
        self.left: Final = threading.Event()
        """Set when whoever asked went away before it had the whole answer."""

    def answer(self, asked: Asked) -> Says:
        """The plan's next answer; the last one again and again."""
        self.asked.append(asked)
        self.arrived.set()
        return self.plan[min(len(self.asked), len(self.plan)) - 1]


@contextmanager
def provider(*plan: Says) -> Iterator[Provider]:
    """A provider with this plan."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.provider = Provider(server.server_address[1], list(plan))  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server.provider  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        body = json.loads(self.rfile.read(length) or b"null")
        here: Provider = self.server.provider  # type: ignore[attr-defined]
        said = here.answer(Asked(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        if said.wait is not None and not said.hold_after:
            said.wait.wait(30)
        if said.status != 200:
            self._send(said, json.dumps(_error(self.path, said)).encode(), "application/json")
            return
        self._send(said, said.raw if said.raw is not None else _events(self.path, said), "text/event-stream")

    def _send(self, said: Says, body: bytes, kind: str) -> None:
        self.close_connection = True
        try:
            self.send_response(said.status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            for name, value in said.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body[: said.hold_after or said.cut])
            if said.wait is not None and said.hold_after:
                self._hold(said.wait)
                self.wfile.write(body[said.hold_after :])
        except OSError:
            self.server.provider.left.set()  # type: ignore[attr-defined]

    def _hold(self, event: threading.Event) -> None:
        """Wait for the event, or for whoever asked to go away."""
        self.connection.settimeout(0.05)
        for _ in range(600):
            if event.is_set():
                break
            with suppress(TimeoutError):
                if not self.connection.recv(1):
                    raise ConnectionResetError
        self.connection.settimeout(30)

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""


def _events(path: str, said: Says) -> bytes:
    if path.startswith("/v1/messages"):
        return b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in _anthropic(said))
    if path.endswith("/responses"):
        return b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in _responses(said))
    if path.endswith("/chat/completions"):
        lines = [f"data: {json.dumps(one)}\n\n" for one in _chat(said)]
        return "".join([*lines, "data: [DONE]\n\n"]).encode()
    return b"".join(f"data: {json.dumps(one)}\r\n\r\n".encode() for one in _google(said))


def _words(text: str) -> list[str]:
    """A text in pieces, as a stream brings it."""
    middle = len(text) // 2
    return [piece for piece in (text[:middle], text[middle:]) if piece]


def _anthropic(said: Says) -> Iterator[dict[str, Any]]:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-fake", "content": []}
    usage = {"input_tokens": 120, "output_tokens": 1}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    at = 0
    if said.text:
        yield {"type": "content_block_start", "index": at, "content_block": {"type": "text", "text": ""}}
        for piece in _words(said.text):
            yield {"type": "content_block_delta", "index": at, "delta": {"type": "text_delta", "text": piece}}
        yield {"type": "content_block_stop", "index": at}
        at += 1
    for number, (name, arguments) in enumerate(said.calls, start=1):
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}}
        yield {"type": "content_block_start", "index": at, "content_block": block}
        delta = {"type": "input_json_delta", "partial_json": _json(arguments)}
        yield {"type": "content_block_delta", "index": at, "delta": delta}
        yield {"type": "content_block_stop", "index": at}
        at += 1
    stop = said.stop or ("tool_use" if said.calls else "end_turn")
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": stop, "stop_sequence": None},
        "usage": {"output_tokens": 30},
    }
    yield {"type": "message_stop"}


def _chat(said: Says) -> Iterator[dict[str, Any]]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return {
            "id": "chat_1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "gpt-fake",
            "choices": [choice],
        }

    yield chunk({"role": "assistant", "content": ""})
    for piece in _words(said.text):
        yield chunk({"content": piece})
    for at, (name, arguments) in enumerate(said.calls):
        function = {"name": name, "arguments": _json(arguments)}
        yield chunk({"tool_calls": [{"index": at, "id": f"call_{at + 1}", "type": "function", "function": function}]})
    yield chunk({}, said.stop or ("tool_calls" if said.calls else "stop"))
    usage = {"prompt_tokens": 120, "completion_tokens": 30, "total_tokens": 150}
    yield {**chunk({}), "choices": [], "usage": usage}


def _responses(said: Says) -> Iterator[dict[str, Any]]:
    base = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-fake",
        "status": "in_progress",
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "temperature": 1.0,
        "top_p": 1.0,
    }
    number = 0

    def event(kind: str, **more: Any) -> dict[str, Any]:
        nonlocal number
        number += 1
        return {"type": kind, "sequence_number": number, **more}

    yield event("response.created", response=base)
    output: list[dict[str, Any]] = []
    if said.text:
        item: dict[str, Any] = {
            "type": "message",
            "id": "m_1",
            "status": "in_progress",
            "role": "assistant",
            "content": [],
        }
        yield event("response.output_item.added", output_index=0, item=item)
        part = {"type": "output_text", "text": "", "annotations": []}
        yield event("response.content_part.added", item_id="m_1", output_index=0, content_index=0, part=part)
        for piece in _words(said.text):
            yield event(
                "response.output_text.delta",
                item_id="m_1",
                output_index=0,
                content_index=0,
                delta=piece,
                logprobs=[],
            )
        done = {"type": "output_text", "text": said.text, "annotations": []}
        yield event(
            "response.output_text.done",
            item_id="m_1",
            output_index=0,
            content_index=0,
            text=said.text,
            logprobs=[],
        )
        item = {**item, "status": "completed", "content": [done]}
        yield event("response.output_item.done", output_index=0, item=item)
        output.append(item)
    for at, (name, arguments) in enumerate(said.calls, start=1):
        item = {
            "type": "function_call",
            "id": f"fc_{at}",
            "call_id": f"call_{at}",
            "name": name,
            "arguments": "",
            "status": "in_progress",
        }
        place = len(output)
        yield event("response.output_item.added", output_index=place, item=item)
        yield event(
            "response.function_call_arguments.delta",
            item_id=f"fc_{at}",
            output_index=place,
            delta=_json(arguments),
        )
        item = {**item, "arguments": _json(arguments), "status": "completed"}
        yield event("response.output_item.done", output_index=place, item=item)
        output.append(item)
    usage = {
        "input_tokens": 120,
        "output_tokens": 30,
        "total_tokens": 150,
        "input_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    status = {"status": "completed"}
    kind = "response.completed"
    if said.stop == "length":
        kind, status = "response.incomplete", {"status": "incomplete"}
        base = {**base, "incomplete_details": {"reason": "max_output_tokens"}}
    yield event(kind, response={**base, **status, "output": output, "usage": usage})


def _google(said: Says) -> Iterator[dict[str, Any]]:
    def chunk(parts: list[dict[str, Any]], finish: str | None = None) -> dict[str, Any]:
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
        if finish:
            candidate["finishReason"] = finish
        usage = {"promptTokenCount": 120, "candidatesTokenCount": 30, "totalTokenCount": 150}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-fake", "responseId": "r1"}

    for piece in _words(said.text):
        yield chunk([{"text": piece}])
    calls = [{"functionCall": {"name": name, "args": arguments}} for name, arguments in said.calls]
    yield chunk(calls, said.stop or "STOP")


def _error(path: str, said: Says) -> dict[str, Any]:
    if path.startswith("/v1/messages"):
        return {"type": "error", "error": {"type": "some_error", "message": said.error}}
    if "/models/" in path:
        return {"error": {"code": said.status, "message": said.error, "status": "SOME"}}
    return {"error": {"message": said.error, "type": "some_error", "param": None, "code": None}}


def _json(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)
