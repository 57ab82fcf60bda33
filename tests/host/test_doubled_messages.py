"""Messages that come early, late and again and again: each is an offer, and the database decides what is made."""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from django.conf import LazySettings

from base import db
from jobs import wake
from jobs.models import Attempt, Call
from jobs.rules.states import CallState
from jobs.tasks.host import Host
from tests.builders import World, a_job, a_turn
from tests.host.far import a_far_world, a_host, over
from tests.races import Side
from tests.servers.raw_http import Peer, RawServer, Request

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.faults]
MANY = 30
WAIT = 2  # seconds that the busy ones are told to wait


@pytest.fixture
def host(tmp_path: Path, settings: LazySettings) -> Iterator[Host]:
    with a_host(tmp_path, settings, call_slots=1) as node:
        yield node


class Messages:
    """Somebody tells a node of these calls, one after the other and over and over, until it is left."""

    def __init__(self, host: Host, world: World, calls: list[UUID]) -> None:
        self.taken = 0  # offers that the node took up
        self._host, self._world, self._calls = host, world, calls
        self._enough = threading.Event()
        self._side = Side(self._tell)

    def __enter__(self) -> "Messages":
        self._side.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._side.join()

    def _tell(self) -> None:
        while not self._enough.is_set():
            for call in self._calls:
                self.taken += self._host.offer(wake.RUN_CALL, self._world.tenant, call)
                self._enough.wait(0.005)


@pytest.mark.rule("L5")
@pytest.mark.rule("B2")
@pytest.mark.rule("B5")
def test_thirty_calls_that_wait_for_one_slot_are_made_as_often_as_they_are_due_and_no_more(host: Host) -> None:
    """CASES R02, R03: each was busy once, so that messages come for queued, running, waiting and ended calls."""
    came: Counter[str] = Counter()

    async def look(peer: Peer, request: Request) -> None:
        key = request.params["_meta"]["oz0/idempotency_key"]
        came[key] += 1
        await asyncio.sleep(0.02)
        if came[key] == 1:
            await peer.status("429 Too Many Requests", Retry_After=str(WAIT))
        else:
            await peer.status("200 OK", request.result("found"))

    with RawServer("look") as server:
        server.script["look"] = look
        world = a_far_world(host, server)
        calls = a_turn(world, a_job(world), *["look"] * MANY)
        with Messages(host, world, calls) as messages:
            for call in calls:
                over(world, call, 90)
    assert messages.taken > 3 * MANY, "hardly a message came that was not needed"
    assert sorted(came.values()) == [2] * MANY
    with db.read(world.tenant):
        assert set(Call.objects.values_list("state", "attempts_made")) == {(CallState.SUCCEEDED, 2)}
        tries = list(Attempt.objects.order_by("call_id", "number"))
    for first, second in zip(tries[::2], tries[1::2], strict=True):
        assert first.ended_at is not None
        assert (second.started_at - first.ended_at).total_seconds() >= WAIT
