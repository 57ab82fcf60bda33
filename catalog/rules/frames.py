"""Lines that no client should send, and that a server has to bear: to live on, and to answer the next request.

None of them asks for a function that a server could have, so nothing is done by them.
"""

import json
from dataclasses import dataclass
from typing import Any, Final

NOBODY: Final = "oz0_nobody_has_this_function"
DEEP: Final = 2_000  # brackets in one another
LONG: Final = 2**20  # bytes


@dataclass(frozen=True, slots=True)
class Frame:
    """One line, by a name that never changes its meaning. `data` ends with a line end."""

    name: str
    data: bytes


def _raw() -> dict[str, bytes]:
    deep, whole = b"[" * DEEP, b'{"jsonrpc":"2.0","id":9001,"method":"tools/list"'
    return {
        "empty line": b"",
        "spaces": b" \t ",
        "carriage return": b"\r",
        "words": b"hello, server",
        "http request": b"GET / HTTP/1.1",
        "html": b"<html><body>401</body></html>",
        "byte 0xff": b"\xff",
        "bytes that are no text": bytes(range(128, 256)),
        "cut utf-8 letter": b'{"jsonrpc":"2.0","method":"caf\xc3"}',
        "overlong utf-8": b'{"jsonrpc":"2.0","method":"\xc0\xaf"}',
        "encoded surrogate": b'{"jsonrpc":"2.0","method":"\xed\xa0\x80"}',
        "utf-16": '{"jsonrpc":"2.0"}'.encode("utf-16-le"),
        "byte order mark": b"\xef\xbb\xbf" + whole + b"}",
        "zero byte": b"\x00",
        "zero byte in json": b'{"jsonrpc":"2.0\x00"}',
        "control characters": b"\x01\x02\x03\x1b[2J",
        "content-length header": b"Content-Length: 17",
        "cut json": whole,
        "cut string": b'{"jsonrpc":"2.0","method":"tools',
        "two objects": whole + b"}" + whole + b"}",
        "trailing comma": whole + b",}",
        "trailing garbage": whole + b"} and more",
        "single quotes": b"{'jsonrpc':'2.0'}",
        "not a number": b'{"jsonrpc":"2.0","id":NaN,"method":"tools/list"}',
        "infinity": b'{"jsonrpc":"2.0","id":Infinity,"method":"tools/list"}',
        "number of 5,000 digits": b'{"jsonrpc":"2.0","id":' + b"9" * 5_000 + b',"method":"tools/list"}',
        "number with exponent": b'{"jsonrpc":"2.0","id":1e999,"method":"tools/list"}',
        "same key twice": b'{"jsonrpc":"2.0","id":9002,"id":9003,"method":"tools/list"}',
        "lone surrogate": b'{"jsonrpc":"2.0","id":9004,"method":"\\ud800"}',
        "deep array": deep + b"]" * DEEP,
        "deep array, never closed": deep,
        "deep object": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
        "line of 1 MiB": b"x" * LONG,
        "json of 1 MiB": b'{"jsonrpc":"2.0","method":"' + b"x" * LONG + b'"}',
    }


def _json() -> dict[str, Any]:
    def asks(**more: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": 9100, "method": "tools/list"} | more

    def calls(**params: Any) -> dict[str, Any]:
        return asks(method="tools/call", params=params)

    def tells(method: Any, **more: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "method": method} | more

    return {
        "null": None,
        "true": True,
        "a number": 7,
        "a string": "tools/list",
        "an empty array": [],
        "an empty object": {},
        "an array of numbers": [1, 2],
        "a batch": [asks(), asks(id=9101)],
        "no version": {"id": 9102, "method": "tools/list"},
        "version 1.0": asks(jsonrpc="1.0"),
        "version as a number": asks(jsonrpc=2.0),
        "no method": {"jsonrpc": "2.0", "id": 9103},
        "method null": asks(method=None),
        "method as a number": asks(method=1),
        "method as an object": asks(method={}),
        "empty method": asks(method=""),
        "unknown method": asks(method="oz0/nothing/of/that/name"),
        "id null": asks(id=None),
        "id as a fraction": asks(id=1.5),
        "id as an object": asks(id={}),
        "id as true": asks(id=True),
        "params as a string": asks(params="all"),
        "params as an array": asks(params=[1]),
        "params null": asks(params=None),
        "cursor as an object": asks(params={"cursor": {}}),
        "call without params": asks(method="tools/call"),
        "call without a name": calls(arguments={}),
        "call of a number": calls(name=7, arguments={}),
        "call of nobody's function": calls(name=NOBODY, arguments={}),
        "call with arguments as an array": calls(name=NOBODY, arguments=[1]),
        "call with _meta as a string": calls(name=NOBODY, arguments={}, _meta="x"),
        "answer to nobody": {"jsonrpc": "2.0", "id": 9104, "result": {}},
        "error to nobody": {"jsonrpc": "2.0", "id": 9105, "error": {"code": -1, "message": "no"}},
        "answer and error": {"jsonrpc": "2.0", "id": 9106, "result": {}, "error": {"code": 1, "message": "both"}},
        "error without a code": {"jsonrpc": "2.0", "id": 9107, "error": {}},
        "unknown notification": tells("notifications/oz0/nothing"),
        "cancel of nobody": tells("notifications/cancelled", params={"requestId": 9999}),
        "cancel without an id": tells("notifications/cancelled", params={}),
        "progress of nobody": tells("notifications/progress", params={"progressToken": "x", "progress": "much"}),
    }


FRAMES: Final[tuple[Frame, ...]] = (
    *(Frame(name, data + b"\n") for name, data in _raw().items()),
    *(Frame(name, json.dumps(value).encode() + b"\n") for name, value in _json().items()),
)
