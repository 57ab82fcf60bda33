"""A server of small lies, one a function, each of which the drill has to find; and of writes that keep their word.

It is written by hand on the standard library, so that the many starts of a drill cost little. `drill.json` in the state
folder is obeyed as examples/billing does it; effects are the lines of `effects.jsonl`.
"""

import json
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

STATE = Path(sys.argv[1])
LOCK, WRITING = threading.Lock(), threading.RLock()
CANCELLED: dict[object, threading.Event] = {}
REMEMBERED: dict[str, str] = {}  # by those that forget at a restart
SAID = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
KEYED = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
READS = {"readOnlyHint": True, "destructiveHint": False}


class Stopped(Exception):
    """The call was cancelled."""


class Busy(Exception):
    """The service is busy."""


def send(message: object) -> None:
    with LOCK:
        sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        sys.stdout.buffer.flush()


def trouble(function: str) -> dict[str, Any]:
    try:
        wanted = json.loads((STATE / "drill.json").read_text())
    except FileNotFoundError:
        return {}
    return wanted if function in wanted.get("functions", [function]) else {}


def ask_the_service(function: str) -> None:
    """Raises `Busy` as often as it is told, counting down."""
    with WRITING:
        wanted = trouble(function)
        busy = wanted.get("busy") or {}
        if busy.get("calls", 0):
            busy["calls"] -= 1
            fresh = STATE / "drill.new"
            fresh.write_text(json.dumps(wanted))
            fresh.replace(STATE / "drill.json")
            raise Busy


def wait(call: "Call", what: str) -> None:
    """As long as it is told, or until the call is cancelled."""
    if call.cancelled.wait(trouble(call.function).get(what, 0)):
        raise Stopped


def act(call: "Call") -> str:
    """The effect: a line. Its answer."""
    with (STATE / "effects.jsonl").open("a") as file:
        file.write(json.dumps({"function": call.function, "text": call.text, "key": call.key}) + "\n")
    return f"made {os.getpid()} {time.monotonic()}"


def store() -> Any:
    db = sqlite3.connect(STATE / "keys.sqlite", timeout=10, isolation_level=None)
    db.execute("CREATE TABLE IF NOT EXISTS made (key PRIMARY KEY, answer, at)")
    return closing(db)


def once(call: "Call", key: str, *, kept: float = 1e9) -> str:
    """Act unless the key is known: looking, acting and keeping are one step."""
    with WRITING, store() as db:
        db.execute("BEGIN IMMEDIATE")
        own = f"{call.function} %"  # in one folder with the others, it forgets only what is its own
        db.execute("DELETE FROM made WHERE at < ? AND key LIKE ?", (time.time() - kept, own))
        known = db.execute("SELECT answer FROM made WHERE key = ?", (key,)).fetchone()
        if known is None:
            known = (act(call),)
            db.execute("INSERT INTO made VALUES (?, ?, ?)", (key, known[0], time.time()))
        db.execute("COMMIT")
    return str(known[0])


class Call:
    def __init__(self, id_: object, params: dict[str, Any]) -> None:
        self.id, self.function = id_, params["name"]
        self.text = params["arguments"].get("text", "")
        self.key = params["_meta"].get("oz0/idempotency_key", "")
        self.progress = params["_meta"].get("progressToken")
        self.cancelled = CANCELLED.setdefault(id_, threading.Event())

    @property
    def own_key(self) -> str:
        return f"{self.function} {self.text} {self.key}"


def honest(call: Call) -> str:
    wait(call, "wait_before")
    ask_the_service(call.function)
    made = once(call, call.own_key)
    wait(call, "wait_after")
    return made


def drops_the_key(call: Call) -> str:
    wait(call, "wait_before")
    ask_the_service(call.function)
    made = act(call)
    wait(call, "wait_after")
    return made


def forgets_soon(call: Call) -> str:
    wait(call, "wait_before")
    ask_the_service(call.function)
    made = once(call, call.own_key, kept=1.0)
    wait(call, "wait_after")
    return made


def forgets_at_restart(call: Call) -> str:
    wait(call, "wait_before")
    ask_the_service(call.function)
    with WRITING:
        if call.own_key not in REMEMBERED:
            REMEMBERED[call.own_key] = act(call)
    wait(call, "wait_after")
    return REMEMBERED[call.own_key]


def writes_while_reading(call: Call) -> str:
    return act(call)


def keeps_busy(call: Call) -> str:
    wait(call, "wait_before")
    with WRITING, store() as db:
        if db.execute("SELECT 1 FROM made WHERE key = ? AND answer = 'busy'", (call.own_key,)).fetchone():
            raise Busy
        try:
            ask_the_service(call.function)
        except Busy:
            db.execute("INSERT INTO made VALUES (?, 'busy', ?)", (call.own_key, time.time()))
            raise
    made = once(call, call.own_key)
    wait(call, "wait_after")
    return made


def retries_inside(call: Call) -> str:
    for _ in range(3):
        try:
            return honest(call)
        except Busy:
            time.sleep(0.05)
    raise Busy


def ignores_cancel(call: Call) -> str:
    call.cancelled = threading.Event()
    return honest(call)


def acknowledges_and_acts(call: Call) -> str:
    try:
        return honest(call)
    except Stopped:
        send({"id": call.id, "error": {"code": -32800, "message": "Request cancelled"}})
        time.sleep(3)
        once(call, call.own_key)
        raise


def shares_keys(call: Call) -> str:
    wait(call, "wait_before")
    ask_the_service(call.function)
    made = once(call, call.key)
    wait(call, "wait_after")
    return made


def keeps_the_key_first(call: Call) -> str:
    """The key is on the disk before the work is: killed in between, the work is never done."""
    with WRITING, store() as db:
        known = db.execute("SELECT answer FROM made WHERE key = ?", (call.own_key,)).fetchone()
        if known is not None:
            return str(known[0])
        ask_the_service(call.function)
        db.execute("INSERT INTO made VALUES (?, 'made', ?)", (call.own_key, time.time()))
    if call.progress:
        send({"method": "notifications/progress", "params": {"progressToken": call.progress, "progress": 1}})
    wait(call, "wait_before")
    act(call)
    wait(call, "wait_after")
    return "made"


def looks_then_acts(call: Call) -> str:
    """Between looking and keeping there is time for another call of the same key."""
    wait(call, "wait_before")
    ask_the_service(call.function)
    with store() as db:
        known = db.execute("SELECT answer FROM made WHERE key = ?", (call.own_key,)).fetchone()
    if known is not None:
        return str(known[0])
    time.sleep(0.2)
    with WRITING, store() as db:
        made = act(call)
        db.execute("INSERT OR REPLACE INTO made VALUES (?, ?, ?)", (call.own_key, made, time.time()))
    wait(call, "wait_after")
    return made


def looks(call: Call) -> str:
    ask_the_service(call.function)
    return "seen"


FUNCTIONS: dict[str, Callable[[Call], str]] = {
    one.__name__: one
    for one in (
        honest,
        drops_the_key,
        forgets_soon,
        forgets_at_restart,
        writes_while_reading,
        keeps_busy,
        retries_inside,
        ignores_cancel,
        acknowledges_and_acts,
        shares_keys,
        keeps_the_key_first,
        looks_then_acts,
        looks,
    )
} | {f"write_{n}": drops_the_key if n == 4 else honest for n in range(1, 6)}
READING = {"writes_while_reading", "looks"}


def made(call: Call) -> None:
    try:
        result = {"content": [{"type": "text", "text": FUNCTIONS[call.function](call)}]}
    except Busy:
        text = [{"type": "text", "text": "The service is busy."}]
        result = {"content": text, "isError": True, "_meta": {"oz0/retryable": True, "oz0/retry_after": 1}}
    except Stopped:
        return
    send({"id": call.id, "result": result})


def listed(name: str) -> dict[str, object]:
    annotations, meta = (READS, {}) if name in READING else (KEYED, {"oz0/idempotency_key": True})
    return {"name": name, "description": name, "inputSchema": SAID, "annotations": annotations, "_meta": meta}


for line in sys.stdin.buffer:
    message = json.loads(line)
    id_, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    if method == "initialize":
        info = {"name": "liars", "version": "1"}
        send(
            {"id": id_, "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}}
        )
    elif method == "tools/list":
        send({"id": id_, "result": {"tools": [listed(name) for name in FUNCTIONS]}})
    elif method == "tools/call":
        threading.Thread(target=made, args=(Call(id_, params),), daemon=True).start()
    elif method == "notifications/cancelled":
        CANCELLED.setdefault(params.get("requestId"), threading.Event()).set()
    elif id_ is not None and method is not None:
        send({"id": id_, "error": {"code": -32601, "message": "Method not found"}})
