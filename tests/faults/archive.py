"""The archive's plugin on a server of the test's own, whose search reports without end."""

import asyncio
import shutil
import time

from base import db
from catalog.models import Credential, Function
from catalog.operations import connections, plugins
from catalog.operations.approving import approve
from catalog.operations.connections import Given
from tenants.rules.who import SYSTEM, Actor
from tests.faults.stand import DAY, PATIENCE, ROOT, Services
from tests.servers.raw_http import Peer, RawServer, Request
from tests.waiting import until

NOTES = 400
EVERY = 0.005  # seconds: two hundred reports in one


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


def use_archive(stand: Services, server: RawServer, *, minutes: int = DAY) -> None:
    """The archive's plugin on this server, listed by a node and approved; a job of it may take so many minutes."""
    folder = shutil.copytree(ROOT / "examples" / "archive", stand.home / "archive")
    for agent in folder.glob("agents/*.yaml"):
        agent.write_text(agent.read_text().replace("calls: 6}", f"calls: 6, minutes: {minutes}}}"))
    given = {"allowed": [f"127.0.0.1:{server.port}"], "given": Given(Credential.NONE), "actor": SYSTEM}
    connections.make(tenant=stand.tenant, name="archive", url=server.url, **given)
    plugins.register(tenant=stand.tenant, folder=folder, home=stand.home, actor=SYSTEM)

    def listed() -> dict[str, str]:
        with db.read(stand.tenant):
            rows = Function.objects.filter(tool__slug="archive", listing__current=True)
            return dict(rows.values_list("name", "entry_digest"))

    until(lambda: bool(listed()), "the archive was never listed", PATIENCE)
    approve(tenant=stand.tenant, tool="archive", shown=listed(), actor=Actor("pat", "link", stand.person))
