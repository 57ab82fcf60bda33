"""One POST to a webhook's receiver, by the one factory of HTTP clients: checked addresses, no redirect, no repeat."""

import asyncio
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from approvals.sessions.sent import Sent
from base import outbound
from base.addresses import WHERE, Refused
from base.visible import visible
from catalog.rules.http import wait_of

LIMIT: Final = 10.0  # seconds for all of it
MOST: Final = 4 * 1024  # bytes of the answer that are read, to let the connection end in order


def post(url: str, *, headers: Mapping[str, str], body: bytes, allowed: Collection[str]) -> Sent:
    """Send the body once. Anything but a 2xx answer is a failure; a redirect is one too."""
    began = time.monotonic()
    try:
        found = asyncio.run(_post(url, headers, body, allowed))
    except Refused as error:
        why = str(error).replace(WHERE.partition("{there} ")[2], "for this channel")
        found = Sent(False, f"Its address may not be reached: {why}."[:500])
    except outbound.Failed as error:
        found = Sent(False, str(error)[:500])
    except TimeoutError:
        found = Sent(False, f"No answer within {LIMIT:g} s.")
    return replace(found, took=time.monotonic() - began)


async def _post(url: str, headers: Mapping[str, str], body: bytes, allowed: Collection[str]) -> Sent:
    client = outbound.Client(allowed=allowed)
    try:
        async with asyncio.timeout(LIMIT):
            async with client.ask("POST", url, headers=headers, body=body) as reply:
                if 200 <= reply.status < 300:
                    return Sent(True, status=reply.status)
                said = await _said(reply)
                wait = wait_of(reply.headers, datetime.now(UTC))
                where = " It is not followed." if 300 <= reply.status < 400 else ""
                return Sent(False, f"Its receiver answered {reply.status}.{where}{said}", reply.status, wait)
    finally:
        await client.close()


async def _said(reply: outbound.Reply) -> str:
    """The beginning of an answer that is no success, for the log."""
    try:
        text = (await reply.body(MOST)).decode("utf-8", "replace").strip()
    except (outbound.TooLong, outbound.Failed):
        return ""
    return f" It said: {visible(text, 200)}" if text else ""
