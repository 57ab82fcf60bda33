"""Reading a server's listing once, for a command that keeps no session."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from catalog.rules.servers import MeasuredListing, ServerSpec
from catalog.sessions.log import Log
from catalog.sessions.session import NotUp, open_session

SAID: Final = 5  # lines of what a server said before it failed


def list_once(spec: ServerSpec) -> MeasuredListing:
    """Start the server, read its whole listing and end it. Raises `NotUp`, with the last that it said on stderr."""
    return asyncio.run(_list(spec))


async def _list(spec: ServerSpec) -> MeasuredListing:
    log = Log(secrets=spec.secrets)
    try:
        async with listed(spec, log) as listing:
            return listing
    except NotUp as error:
        said = [line for line in log.tail(SAID) if line.startswith("stderr")]
        raise NotUp("\n    ".join([str(error), *said])) from error


@asynccontextmanager
async def listed(spec: ServerSpec, log: Log) -> AsyncIterator[MeasuredListing]:
    """The listing of a server that is started for it, and ended with the context. Raises `NotUp`."""
    session = await open_session(spec, log, on_late=lambda *_: None)
    try:
        yield session.listing
    finally:
        await session.close("its listing was read")
