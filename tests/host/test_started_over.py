"""A call that broke off is made again: what the next attempt carries, and the sentence that the trace's page says."""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from base import db, ids
from catalog.models import Tool
from jobs.models import Call
from jobs.rules.states import CallState
from jobs.tasks.host import Host
from tests.builders import World, a_world
from tests.host.far import a_far_world, a_host, ended, listed_by
from tests.pages.visitors import job_url, text_of, visitor
from tests.servers.raw_http import LISTED, Peer, RawServer, Request

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.faults]
both = pytest.mark.parametrize("modern", [True, False], ids=["2026-07-28", "2025-11-25"])
OWN = """\
import os
from pathlib import Path
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import ProgressNotification, ProgressNotificationParams, ToolAnnotations

server = MCPServer("own", log_level="ERROR")
died = Path(__file__).with_suffix(".died")

@server.tool(name="look", annotations=ToolAnnotations(read_only_hint=True), meta={"oz0/resume": True})
async def look(ctx: Context) -> str:
    meta = ctx.request_context.meta or {}
    params = ProgressNotificationParams(
        progress_token=meta["progress_token"], progress=2, total=4, _meta={"oz0/resume": "page-2"}
    )
    await ctx.session.send_notification(ProgressNotification(params=params), related_request_id=ctx.request_id)
    if not died.exists():
        died.touch()
        os._exit(1)
    return f"resume: {meta.get('oz0/resume')}"

server.run()
"""


@pytest.fixture
def host(tmp_path: Path, settings: LazySettings) -> Iterator[Host]:
    with a_host(tmp_path, settings) as node:
        yield node


def breaking_off(server: RawServer, *told: dict[str, Any]) -> list[Any]:
    """Let the first call of `look` tell of its progress like this and break off; what each call is sent to resume."""
    sent: list[Any] = []

    async def step(peer: Peer, request: Request) -> None:
        meta = request.params["_meta"]
        sent.append(meta.get("oz0/resume"))
        if len(sent) > 1:
            await peer.status("200 OK", request.result("found"))
            return
        await peer.stream()
        for one in told:
            params = {"progressToken": meta["progressToken"], **one}
            await peer.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        peer.close()

    server.script["look"] = step
    return sent


def trace_of(world: World, call: Call) -> str:
    """The page of the call's job with the call opened."""
    answer = visitor(world).get(job_url(call.job_id, f"?call={ids.show(ids.CALL, call.pk)}"))
    return text_of(answer)


AT_2 = {"progress": 2, "total": 4}


def with_token(token: str) -> dict[str, Any]:
    return {**AT_2, "_meta": {"oz0/resume": token}}


@pytest.mark.rule("P3")
@pytest.mark.rule("P4")
@both
@pytest.mark.parametrize(
    ("told", "takes_part", "sentence"),
    [
        ((with_token("page-2"),), True, "resumed from progress 2 of 4"),
        ((AT_2,), True, "started over: no token was given"),
        ((with_token("page 2"),), True, "started over: a malformed token was given"),
        ((with_token("x" * 257),), True, "started over: a malformed token was given"),
        ((with_token("page-2"),), False, "started over: the function does not take part"),
        ((), True, "started over: nothing was reported"),
    ],
    ids=["resumed", "no token", "malformed", "too long", "takes no part", "nothing reported"],
)
def test_the_trace_says_where_a_remote_call_went_on_or_why_it_started_over(
    host: Host, modern: bool, told: tuple[dict[str, Any], ...], takes_part: bool, sentence: str
) -> None:
    """CASES P09."""
    listed = LISTED if takes_part else {**LISTED, "_meta": {}}
    with RawServer("look", modern=modern, listed=listed) as server:
        sent = breaking_off(server, *told)
        world = a_far_world(host, server)
        call = ended(world)
    assert call.state == CallState.SUCCEEDED
    resumed = {"token": "page-2", "progress": 2} if sentence.startswith("resumed") else None
    assert json.loads(json.dumps(sent)) == [None, resumed]
    page = trace_of(world, call)
    line, opened = page.split('class="inside"', 1)
    assert sentence in line
    assert sentence in opened
    assert ("started over" in page) == (resumed is None)


@pytest.mark.rule("P3")
@pytest.mark.rule("P4")
def test_a_plugins_own_server_starts_over_because_all_its_calls_share_one_session(host: Host, tmp_path: Path) -> None:
    """CASES P09."""
    script = tmp_path / "own.py"
    script.write_text(OWN)
    world = replace(a_world(), node=host.node_id)
    with db.write(world.tenant):
        Tool.objects.filter(slug="shop").update(argv=[sys.executable, str(script)])
    listed_by(world, host)
    call = ended(world)
    assert (call.state, call.result_text) == (CallState.SUCCEEDED, "resume: None")
    assert script.with_suffix(".died").exists()
    assert trace_of(world, call).count("started over: a plugin&#x27;s own server shares one session") >= 2


@pytest.mark.rule("P5")
@pytest.mark.rule("P1")
def test_of_two_hundred_reports_in_a_moment_the_next_attempt_is_sent_the_last(host: Host) -> None:
    """CASES P05, its part on the wire; a killed node's is in tests/faults."""
    told = [{"progress": n, "total": 200, "_meta": {"oz0/resume": f"page-{n}"}} for n in range(1, 201)]
    with RawServer("look") as server:
        sent = breaking_off(server, *told)
        world = a_far_world(host, server)
        call = ended(world)
    assert sent == [None, {"token": "page-200", "progress": 200}]
    assert "resumed from progress 200 of 200" in trace_of(world, call)
