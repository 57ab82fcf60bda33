"""A server written by hand, without an SDK: it ends at whatever it cannot read.

`--careful` lets it go on, `--stuck` say nothing more; `--strict` lets it refuse names in `_meta`.
"""

import json
import sys
from typing import Any

LOOK = {"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}


def answered(message: Any) -> dict[str, Any] | None:
    """Its answer, None to a notification."""
    match message["method"]:
        case "initialize":
            agreed = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
            return {"result": agreed | {"serverInfo": {"name": "brittle", "version": "1"}}}
        case "tools/list":
            return {"result": {"tools": [LOOK]}}
        case "tools/call" if "--strict" in sys.argv and "_meta" in message["params"]:
            names = ", ".join(message["params"]["_meta"])
            return {"error": {"code": -32602, "message": f"Unrecognized key(s) in object: {names}"}}
        case "tools/call":
            return {"error": {"code": -32602, "message": "Unknown tool"}}
        case _:
            return {"error": {"code": -32601, "message": "Method not found"}} if "id" in message else None


def serve() -> None:
    """Read until the end, or the first line that cannot be read."""
    for line in sys.stdin.buffer:
        try:
            message = json.loads(line)
            answer = answered(message)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            if "--stuck" in sys.argv:
                sys.stdin.read()
            if "--careful" not in sys.argv:
                raise
            continue
        if answer is not None:
            print(json.dumps({"jsonrpc": "2.0", "id": message.get("id"), **answer}), flush=True)  # noqa: T201  the protocol


serve()
