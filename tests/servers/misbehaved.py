"""A server written by hand, byte by byte, that does wrong in as many ways as it has functions.

It speaks 2025-11-25. Everything it receives is appended to the file that the environment calls LEDGER, a line each.
"""

import json
import os
import signal
import sys
import threading
import time

OUT = sys.stdout.buffer
LOCK = threading.Lock()
CANCELLED: dict[object, threading.Event] = {}
ANSWERED_PING = threading.Event()
VERSION = 1
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def ledger(line: str) -> None:
    with open(os.environ["LEDGER"], "a") as file:
        file.write(line + "\n")


def raw(data: bytes) -> None:
    with LOCK:
        OUT.write(data)
        OUT.flush()


def send(message: object) -> None:
    raw(json.dumps(message).encode() + b"\n")


def answer(id_: object, text: str = "done", **more: object) -> None:
    send({"jsonrpc": "2.0", "id": id_, "result": {"content": [{"type": "text", "text": text}], **more}})


def ok(id_, arguments, meta):
    answer(id_)


def says_meta(id_, arguments, meta):
    answer(id_, json.dumps(meta))


def never(id_, arguments, meta):
    pass


def error_when_cancelled(id_, arguments, meta):
    CANCELLED[id_].wait(30)
    send({"jsonrpc": "2.0", "id": id_, "error": {"code": 0, "message": "Request cancelled"}})


def stopped_when_cancelled(id_, arguments, meta):
    CANCELLED[id_].wait(30)
    send({"jsonrpc": "2.0", "method": "notifications/oz0/stopped", "params": {"requestId": id_}})


def stopped_before_it_is_cancelled(id_, arguments, meta):
    send({"jsonrpc": "2.0", "method": "notifications/oz0/stopped", "params": {"requestId": id_}})
    answer(id_, "not at all")


def success_when_cancelled(id_, arguments, meta):
    CANCELLED[id_].wait(30)
    time.sleep(0.05)
    answer(id_, "done all the same")


def success_long_after_cancelled(id_, arguments, meta):
    CANCELLED[id_].wait(30)
    time.sleep(arguments.get("seconds", 1.0))
    answer(id_, "the late truth")


def other_id_when_cancelled(id_, arguments, meta):
    CANCELLED[id_].wait(30)
    answer(987_654_321)
    answer("somebody-else")
    answer(None)


def twice(id_, arguments, meta):
    answer(id_, "first")
    answer(id_, "second")


def huge(id_, arguments, meta):
    filler = b"x" * 11 * 2**20
    raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"%s"}]}}\n' % (id_, filler))


def huge_id_last(id_, arguments, meta):
    filler = b"x" * 11 * 2**20
    raw(b'{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"%s"}]},"id":%d}\n' % (filler, id_))


def large(id_, arguments, meta):
    answer(id_, "y" * arguments["bytes"])


def half_line_then_dies(id_, arguments, meta):
    raw(b'{"jsonrpc":"2.0","id":%d,"result":{"cont' % id_)
    os._exit(3)


def effect_then_dies(id_, arguments, meta):
    ledger("effect")
    os._exit(0)


def effect_then_closes_output(id_, arguments, meta):
    ledger("effect")
    os.close(1)
    time.sleep(60)


def garbled(id_, arguments, meta):
    raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"te]}}\n' % id_)


def shapeless(id_, arguments, meta):
    send({"jsonrpc": "2.0", "id": id_, "result": {"hello": "there"}})


def fails(id_, arguments, meta):
    send({"jsonrpc": "2.0", "id": id_, "error": {"code": -32000, "message": "Connection closed"}})


def breaks_schema(id_, arguments, meta):
    answer(id_, structuredContent={"n": "seven"})


def exactly(id_, arguments, meta):
    """Answers with the result whose JSON it is given, NaN and all."""
    raw(b'{"jsonrpc":"2.0","id":%d,"result":%s}\n' % (id_, arguments["result"].encode()))


def noisy(id_, arguments, meta):
    raw("Starting up… 🚀\n".encode() + b"\xff\xfe bad bytes\n" + b'{"level": "info", "id": 1}\n' + b"[1, 2]\n\n")
    raw(b'{"jsonrpc": "2.0", "id": 1e400}\n' + b"[" * 100_000 + b"\n")
    answer(id_, "answered through the noise")


def reports(id_, arguments, meta):
    """Sends each of the progress notifications whose JSON it is given, then answers, then reports once more."""
    token = json.dumps(meta.get("progressToken"))
    for item in arguments["items"]:
        raw(
            f'{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},{item}}}}}\n'.encode()
        )
    if arguments.get("hold"):
        CANCELLED[id_].wait(30)
    answer(id_)
    params = {"progressToken": meta.get("progressToken"), "progress": 1_000_000}
    send({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})


def reports_for_ever(id_, arguments, meta):
    done = 0
    while not CANCELLED[id_].wait(0.05):
        done += 1
        params = {"progressToken": meta.get("progressToken"), "progress": done, "message": "still going"}
        send({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})


def asks_the_person(id_, arguments, meta):
    replied = CANCELLED[f"ask-{id_}"] = threading.Event()  # before it asks: the reply may come at once
    send({"jsonrpc": "2.0", "id": f"ask-{id_}", "method": "elicitation/create", "params": {"message": "Sure?"}})
    replied.wait(30)
    answer(id_, "I was not told", isError=True)


def wants_input(id_, arguments, meta):
    send({"jsonrpc": "2.0", "id": id_, "result": {"resultType": "input_required", "requestState": "s"}})


def changes_its_listing(id_, arguments, meta):
    global VERSION
    VERSION += 1
    send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    answer(id_)


def stops_reading(id_, arguments, meta):
    answer(id_)
    os.kill(os.getpid(), signal.SIGSTOP)


FUNCTIONS = {
    name: function
    for name, function in list(globals().items())
    if callable(function)
    and getattr(function, "__code__", None)
    and function.__code__.co_varnames[:2] == ("id_", "arguments")
}


def listed(name: str) -> dict[str, object]:
    entry: dict[str, object] = {"name": name, "description": f"version {VERSION}", "inputSchema": {"type": "object"}}
    return entry | {"outputSchema": SCHEMA} if name == "breaks_schema" else entry


def pages(cursor: object) -> dict[str, object]:
    """Two pages, so that a client that reads one does not know the second half."""
    names = sorted(FUNCTIONS)
    half = len(names) // 2
    if cursor == "second":
        return {"tools": [listed(name) for name in names[half:]]}
    return {"tools": [listed(name) for name in names[:half]], "nextCursor": "second"}


def serve() -> None:
    for line in sys.stdin.buffer:
        ledger(line.decode().rstrip("\n"))
        message = json.loads(line)
        id_, method, params = message.get("id"), message.get("method"), message.get("params") or {}
        if method == "initialize":
            info = {"name": "misbehaved", "version": "1.2"}
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
            send({"jsonrpc": "2.0", "id": id_, "result": result})
        elif method == "tools/list":
            send({"jsonrpc": "2.0", "id": id_, "result": pages(params.get("cursor"))})
        elif method == "tools/call":
            CANCELLED[id_] = threading.Event()
            act = FUNCTIONS[params["name"]]
            args = (id_, params.get("arguments") or {}, params.get("_meta") or {})
            threading.Thread(target=act, args=args, daemon=True).start()
        elif method == "notifications/cancelled":
            CANCELLED.get(params.get("requestId"), threading.Event()).set()
        elif method is None and id_ in CANCELLED:
            CANCELLED[id_].set()
        elif method is not None and id_ is not None:
            send({"jsonrpc": "2.0", "id": id_, "error": {"code": -32601, "message": "Method not found"}})


if __name__ == "__main__":
    if os.environ.get("BANNER"):
        raw(b"Welcome to my server!\n")
    if os.environ.get("DIES_AT_START"):
        sys.stderr.write("cannot find my configuration\n")
        sys.exit(5)
    if os.environ.get("SILENT"):
        time.sleep(60)
    serve()
