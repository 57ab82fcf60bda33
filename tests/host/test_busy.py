"""A service that is busy for everybody at once, then is not: nobody is dropped, and nobody waits in a node's slot."""

import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import LazySettings

from base import db
from jobs.models import Attempt, Call
from jobs.rules.states import AttemptState, CallState
from jobs.tasks.host import Host
from tests.builders import a_job, a_turn
from tests.host.far import a_far_world, a_host, over
from tests.servers.raw_http import Peer, RawServer, Request

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.faults]
JOBS, EACH = 4, 50


@pytest.fixture
def host(tmp_path: Path, settings: LazySettings) -> Iterator[Host]:
    with a_host(tmp_path, settings) as node:
        yield node


@pytest.mark.rule("B2")
@pytest.mark.rule("B4")
@pytest.mark.rule("B5")
def test_two_hundred_calls_that_were_busy_at_once_wait_outside_the_node_and_all_succeed(host: Host) -> None:
    """CASES B03."""
    came: dict[str, list[float]] = defaultdict(list)

    async def look(peer: Peer, request: Request) -> None:
        key = request.params["_meta"]["oz0/idempotency_key"]
        came[key].append(time.monotonic())
        if len(came[key]) == 1:
            await peer.status("429 Too Many Requests", Retry_After="1")
        else:
            await peer.status("200 OK", request.result("found"))

    with RawServer("look") as server:
        server.script["look"] = look
        world = a_far_world(host, server)
        calls = [call for _ in range(JOBS) for call in a_turn(world, a_job(world), *["look"] * EACH)]
        last = [over(world, call, 60) for call in calls][-1]
    assert last.state == CallState.SUCCEEDED
    with db.read(world.tenant):
        assert set(Call.objects.values_list("state", "attempts_made")) == {(CallState.SUCCEEDED, 2)}
        assert set(Attempt.objects.filter(number=1).values_list("state", flat=True)) == {AttemptState.BUSY}
        waits = [
            second.started_at - first.ended_at
            for first, second in zip(
                Attempt.objects.filter(number=1).order_by("call_id"),
                Attempt.objects.filter(number=2).order_by("call_id"),
                strict=True,
            )
            if first.ended_at is not None
        ]
    assert min(waits).total_seconds() >= 1
    assert all(len(times) == 2 for times in came.values())
    second_round = sorted(times[1] for times in came.values())
    assert second_round[-1] - second_round[0] > 0.3, "they all came back at once"
