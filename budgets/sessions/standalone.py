"""A call of the journal's client from a command: it blocks, and has no bound of pages or answers (RULES W6)."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from budgets.rules.words import MOST_CHECKS
from budgets.sessions.bounds import BOUNDS, Deadline, Stopped
from budgets.sessions.calls import Call, Failed
from budgets.sessions.credentials import Credentials, NoCredentials
from budgets.sessions.owner import Owner
from budgets.sessions.workers import Workers

# Each request has 30 s; how many there are, and how much comes back, is the person's own affair.
FREE: Final = replace(BOUNDS, pages=None, responses=None)
LONGEST_CURSOR: Final = 2**20
type Trouble = Stopped | Failed | NoCredentials | None


def done(call: Call, *, studio: str, credentials: Credentials) -> Trouble:
    """Do a call; what it came to is in the call itself, and in what went wrong."""
    workers = Workers()

    async def whole() -> None:
        owner = Owner(studio, credentials, deadline=Deadline(FREE.seconds), bounds=FREE, workers=workers)
        await owner.run(lambda: call.work(owner))

    try:
        asyncio.run(whole())
    except (Stopped, Failed, NoCredentials) as error:
        call.stopped()
        return error
    finally:
        workers.close()
    return None


def chunks[T](items: Sequence[T]) -> list[Sequence[T]]:
    """As many as one operation takes, each."""
    return [items[first : first + MOST_CHECKS] for first in range(0, len(items), MOST_CHECKS)]
