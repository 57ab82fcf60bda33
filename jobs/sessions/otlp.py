"""One POST of spans to a collector (OTLP over HTTP, as JSON), by the one factory of HTTP clients."""

import asyncio
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from base import outbound
from base.addresses import WHERE, Refused
from base.visible import visible
from catalog.rules.http import wait_of

LIMIT: Final = 10.0  # seconds for all of it
MOST: Final = 16 * 1024  # bytes of the answer that are read
AGAIN: Final = frozenset({429, 502, 503, 504})  # after which OTLP has the same be sent once more
HERE: Final = "for this collector"


@dataclass(frozen=True, slots=True)
class Sent:
    """How it ended. `again`: it may arrive another time. `wait` is what the collector asked for, in seconds."""

    arrived: bool
    trouble: str = ""
    again: bool = True
    wait: float | None = None


def post(url: str, *, headers: Mapping[str, str], body: Mapping[str, Any], allowed: Collection[str]) -> Sent:
    """Send it once; a redirect is not followed. Raises nothing of the network's."""
    try:
        return asyncio.run(_post(url, headers, json.dumps(body).encode(), allowed))
    except Refused as error:
        why = str(error).replace(WHERE.partition("{there} ")[2], HERE)
        return Sent(False, f"Its address may not be reached: {why}."[:500])
    except outbound.Failed as error:
        return Sent(False, str(error)[:500])
    except TimeoutError:
        return Sent(False, f"No answer within {LIMIT:g} s.")


async def _post(url: str, headers: Mapping[str, str], body: bytes, allowed: Collection[str]) -> Sent:
    client = outbound.Client(allowed=allowed, headers=headers)
    try:
        async with asyncio.timeout(LIMIT):
            told = {"Content-Type": "application/json", "Accept": "application/json"}
            async with client.ask("POST", url, headers=told, body=body) as reply:
                said = await _said(reply)
                if 200 <= reply.status < 300:
                    return Sent(True, _left_out(said))
                where = " It is not followed." if 300 <= reply.status < 400 else ""
                quoted = f" It said: {visible(said, 200)}" if said else ""
                wait = wait_of(reply.headers, datetime.now(UTC))
                return Sent(False, f"It answered {reply.status}.{where}{quoted}", reply.status in AGAIN, wait)
    finally:
        await client.close()


async def _said(reply: outbound.Reply) -> str:
    try:
        return (await reply.body(MOST)).decode("utf-8", "replace").strip()
    except (outbound.TooLong, outbound.Failed):
        return ""


def _left_out(said: str) -> str:
    """What a collector that took the request says of spans that it did not take."""
    try:
        partial = json.loads(said or "{}").get("partialSuccess", {})
        number = int(partial.get("rejectedSpans", 0))
        why = str(partial.get("errorMessage", ""))
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        return ""
    return f"It took all but {number} spans: {visible(why, 200)}" if number else ""
