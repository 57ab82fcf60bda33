"""A node is killed while a call reports: the next attempt goes on from what was told just before (RULES P5)."""

import asyncio
import time

import pytest

from base import db
from catalog.models import Credential, Function
from catalog.operations import connections, plugins
from catalog.operations.approving import approve
from catalog.operations.connections import Given
from jobs.queries.call_page import call_page
from jobs.rules.limits import LEASE
from jobs.rules.reasons import Reason
from jobs.rules.states import CallState
from tenants.rules.who import SYSTEM, Actor
from tests.faults.stand import PATIENCE, ROOT, Services
from tests.servers.raw_http import Peer, RawServer, Request
from tests.waiting import until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]
NOTES = 400
EVERY = 0.005  # seconds: two hundred reports in one
LAG = 1.0  # seconds in which a token is durable after its arrival
ON_THE_WAY = 0.5  # seconds from the server's hand into the node's, on a busy machine
TIMEOUT = 60.0  # of the archive


class Reporting:
    """A server whose `search` reports without end; what it sent, when, and what each call was sent to resume."""

    def __init__(self, server: RawServer) -> None:
        self.sent: list[float] = []
        self.resumed: list[object] = []
        server.script["search"] = self._search

    async def _search(self, peer: Peer, request: Request) -> None:
        meta = request.params["_meta"]
        self.resumed.append(meta.get("oz0/resume"))
        if len(self.resumed) > 1:
            await peer.status("200 OK", request.result("found"))
            return
        await peer.stream()
        for number in range(1, NOTES + 1):
            said = {"progress": number, "total": NOTES, "_meta": {"oz0/resume": f"page-{number}"}}
            params = {"progressToken": meta["progressToken"], **said}
            await peer.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
            self.sent.append(time.monotonic())
            await asyncio.sleep(EVERY)
        await peer.reader.read(1)

    def sent_until(self, moment: float) -> int:
        return sum(at <= moment for at in self.sent)


def use_archive(stand: Services, server: RawServer) -> None:
    """The archive's plugin on this server, listed by a node and approved."""
    given = {"allowed": [f"127.0.0.1:{server.port}"], "given": Given(Credential.NONE), "actor": SYSTEM}
    connections.make(tenant=stand.tenant, name="archive", url=server.url, **given)
    plugins.register(tenant=stand.tenant, folder=ROOT / "examples" / "archive", home=stand.home, actor=SYSTEM)

    def listed() -> dict[str, str]:
        with db.read(stand.tenant):
            rows = Function.objects.filter(tool__slug="archive", listing__current=True)
            return dict(rows.values_list("name", "entry_digest"))

    until(lambda: bool(listed()), "the archive was never listed", PATIENCE)
    approve(tenant=stand.tenant, tool="archive", shown=listed(), actor=Actor("pat", "link", stand.person))


@pytest.mark.rule("P2")
@pytest.mark.rule("P5")
def test_after_two_hundred_reports_a_second_the_next_attempt_is_sent_one_of_the_last_second(stand: Services) -> None:
    """CASES P05."""
    with RawServer("search") as server:
        reporting = Reporting(server)
        node = stand.node()
        use_archive(stand, server)
        job = stand.start("archivist")
        until(lambda: len(reporting.sent) >= NOTES // 2, "it never reported", PATIENCE)
        killed = time.monotonic()
        node.kill()
        stand.move_clock(LEASE + TIMEOUT + 1)
        stand.node()
        stand.until_over(job)
    (call,) = stand.calls(job)
    first, second = stand.attempts(call)
    assert (call.state, first.reason) == (CallState.SUCCEEDED, Reason.NODE_LOST)
    at = int(second.resumed_from or 0)
    assert reporting.resumed == [None, {"token": f"page-{at}", "progress": at}]
    assert reporting.sent_until(killed - LAG - ON_THE_WAY) <= at <= len(reporting.sent)
    assert at > 1, "the first report of all is not the last one"
    shown = call_page(stand.tenant, call.pk)
    assert shown is not None
    assert shown.attempts[-1].began == f"resumed from progress {at} of {NOTES}"
