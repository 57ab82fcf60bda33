"""How often one token may ask this web process: kept in its memory, so that it costs a call nothing."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any, Final
from uuid import UUID

from catalog.rules.platform import RESULT
from jobs.rules import texts
from tenants.rules.pace import pace

FORGOTTEN: Final = 10_000  # tokens; past that many, those that may ask as often as any are let go
TOO_OFTEN: Final = -32000  # of JSON-RPC's own range for servers
_START: Final = datetime(2000, 1, 1, tzinfo=UTC)


class Paces:
    """The pace of each token that asks; `limit` is how many requests a minute has room for, 0 for any number."""

    def __init__(self, limit: int) -> None:
        self.limit: Final = limit
        self._until: Final[dict[UUID, datetime]] = {}

    def wait(self, token_id: UUID) -> int:
        """Count one request. 0 when it is answered, else for how many seconds to wait."""
        if not self.limit:
            return 0
        now = _START + timedelta(seconds=time.monotonic())
        found = pace(self._until.get(token_id), now, limit=self.limit)
        if len(self._until) >= FORGOTTEN:
            for one in [one for one, until in self._until.items() if until <= now]:
                del self._until[one]
        self._until[token_id] = found.until
        return 0 if found.allowed else ceil(found.wait)


def _looks_up(params: Any) -> bool:
    """Whether a call asks for one that is made already: by `oz.result`, or going on with it."""
    if not isinstance(params, Mapping):
        return False
    return params.get("requestState") is not None or params.get("name") == RESULT.name


def too_often(message: Mapping[str, Any], *, limit: int, wait: int, modern: bool) -> tuple[int, dict[str, Any]] | None:
    """The HTTP status and the body that a request is answered which came too soon; None for what is no request.

    A call is told so that its model reads it, in a result; anything else by an error. Notices, such as a cancel, are
    answered by nobody and cost little. What asks for a call that is made already says nothing of that call.
    """
    number = message.get("id")
    if not isinstance(number, int | str) or isinstance(number, bool):
        return None
    whole: dict[str, Any] = {"jsonrpc": "2.0", "id": number}
    if message.get("method") != "tools/call":
        return 429, whole | {
            "error": {"code": TOO_OFTEN, "message": texts.asks_too_often(limit, wait), "data": {"retryAfter": wait}}
        }
    text = texts.too_often(limit, wait, looks_up=_looks_up(message.get("params")))
    meta = {"oz0/retryable": True, "oz0/retry_after": wait}
    result = {"content": [{"type": "text", "text": text}], "isError": True, "_meta": meta}
    return 200, whole | {"result": result | ({"resultType": "complete"} if modern else {})}
