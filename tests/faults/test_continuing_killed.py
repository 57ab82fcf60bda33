"""Nodes are killed while a job continues as new: each run follows once, and each write has one effect (RULES G3).

Of an agent on a model: before its summary was kept, and right after, before the next run's first turn. Of a program:
after it had asked for its next run, and before it ended.
"""

import textwrap
from collections.abc import Iterator
from uuid import UUID

import pytest
from pytest_django import DjangoDbBlocker

from base import db
from catalog.models import Credential
from catalog.operations import connections
from catalog.operations.connections import Given
from jobs.models import Event, Hold, Session, Turn
from jobs.rules.limits import LEASE
from jobs.rules.states import JobState, TurnState
from tenants.rules.who import SYSTEM
from tests.faults.stand import RunningNode, Services, a_stand
from tests.gateway.conftest import Web, a_web
from tests.servers.providers import Provider, Says, provider
from tests.waiting import until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(400)]
PATIENCE = 90.0
MODEL = textwrap.dedent("""
    name: modelled
    model: openai-chat:some-model
    instructions: Charge.
    functions: [billing.*]
    continue_as_new: {turns: 1}
""")
PROGRAM = textwrap.dedent("""
    import asyncio, json, os, sys
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    CHARGE = {"account": "A-1", "order_id": "o-1", "amount": 5}

    async def main():
        given = json.load(sys.stdin)
        headers = {"Authorization": "Bearer " + os.environ["OZ0_TOKEN"]}
        async with httpx2.AsyncClient(headers=headers, timeout=120) as http:
            transport = streamable_http_client(os.environ["OZ0_MCP_URL"], http_client=http)
            async with Client(transport, mode="2026-07-28", cache=None) as client:
                charged = await client.call_tool("billing__charge", CHARGE)
                if given["input"]["left"]:
                    more = {"input": {"left": given["input"]["left"] - 1}, "note": "one is charged"}
                    print((await client.call_tool("oz__continue", more)).content[0].text)
                    await client.call_tool("billing__refund", {"order_id": "o-1", "amount": 1})  # a person is asked
                else:
                    print("told", given["note"], len(given["earlier"]), given["earlier"][0]["state"])
                return 1 if charged.is_error else 0

    sys.exit(asyncio.run(main()))
""")
HARNESS = textwrap.dedent("""
    name: program
    harness: [python, program.py]
    functions: [billing.*]
    input: {left: 1}
""")
CHARGE = ("billing__charge", {"account": "A-1", "order_id": "o-1", "amount": 5})
PLAN = (
    Says("I charge.", calls=(CHARGE,)),
    Says("The first summary."),
    Says("The second summary."),
    Says("I charge again.", calls=(CHARGE,)),
    Says("The third summary."),
    Says("Done."),
)


@pytest.fixture(scope="module")
def here() -> Iterator[Provider]:
    with provider(*PLAN) as found:
        yield found


@pytest.fixture(scope="module")
def stand(
    tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker, here: Provider
) -> Iterator[Services]:
    with django_db_blocker.unblock(), a_stand(tmp_path_factory.mktemp("stand")) as made:
        files = {"program.py": PROGRAM, "agents/program.yaml": HARNESS, "agents/modelled.yaml": MODEL}
        made.use_plugin(files=files)
        given = {"allowed": [here.place], "given": Given(Credential.BEARER, "the-key"), "actor": SYSTEM}
        connections.make(tenant=made.tenant, name="openai", url=f"{here.url}/v1", **given)
        yield made


@pytest.fixture(scope="module")
def web(stand: Services) -> Iterator[Web]:
    found = a_web(stand.postgres, stand.broker, stand.home)
    stand.address = found.url
    try:
        yield found
    finally:
        found.process.terminate()
        found.process.wait(15)


def until_dead(stand: Services, node: RunningNode) -> None:
    """Wait until a node was ended at its point, and let its lease run out: nobody is running."""
    until(lambda: not node.lives(), "the node never came to its point", PATIENCE)
    stand.move_clock(LEASE + 1)


def turns(stand: Services, job: UUID) -> list[Turn]:
    with db.read(stand.tenant):
        return list(Turn.objects.filter(job_id=job).order_by("number"))


def continued(stand: Services, job: UUID) -> list[int]:
    with db.read(stand.tenant):
        found = Event.objects.filter(job_id=job, kind="job.continued").order_by("seq")
        return [one.data["run"] for one in found]


@pytest.mark.usefixtures("web")
@pytest.mark.rule("G3")
def test_a_node_killed_on_either_side_of_a_summarys_commit_leaves_exactly_one_next_run(
    stand: Services, here: Provider
) -> None:
    first = stand.young_node(OZ0_CRASH_AT="submit.before_commit:2").ready()
    stand.until_listed()
    job = stand.start("modelled")
    until_dead(stand, first)
    assert (stand.job(job).run_number, len(here.asked)) == (0, 2), "the control: the summary was answered, and not kept"
    assert [one.state for one in turns(stand, job)] == [TurnState.ANSWERED, TurnState.ASKED]
    until_dead(stand, stand.young_node(OZ0_CRASH_AT="submit.after_commit:1"))
    assert (stand.job(job).run_number, len(here.asked)) == (1, 3), "the control: kept, and nothing asked since"
    node = stand.node()
    stand.until_over(job, seconds=PATIENCE)
    over = stand.job(job)
    assert (over.state, over.output, over.run_number, continued(stand, job)) == (JobState.COMPLETED, "Done.", 2, [1, 2])
    assert len(here.asked) == 6
    found = turns(stand, job)
    assert [(one.run_number, one.sums_up, one.asked) for one in found] == [
        (0, False, 1),
        (0, True, 2),
        (1, False, 1),
        (1, True, 1),
        (2, False, 1),
    ]
    assert found[1].usage["lost_input_tokens"] == 120, "what the lost one may have cost is counted"
    told = str(here.asked[3].body)
    assert "The second summary." in told and "The first summary." not in told
    assert "billing__charge" in told and "conversation 1, call 1" in told
    keys = [call.key for call in stand.calls(job)]
    assert len(set(keys)) == 2 and keys[1].endswith("/anr1/1")
    assert [(stand.begun()[key], stand.ledger()[key]) for key in keys] == [(1, 1), (1, 1)]
    node.kill()


@pytest.mark.usefixtures("web")
@pytest.mark.rule("G3")
def test_a_node_killed_after_its_program_asked_to_continue_leaves_exactly_one_next_run(stand: Services) -> None:
    first = stand.node()
    stand.until_listed()
    job = stand.start("program")
    asked(stand, job, incarnation=1)
    first.kill()
    assert (stand.job(job).run_number, continued(stand, job)) == (0, [])
    node = stand.node()
    stand.answer(asked(stand, job, incarnation=2), "approve")
    stand.until_over(job, seconds=PATIENCE)
    over = stand.job(job)
    assert (over.state, over.run_number, continued(stand, job)) == (JobState.COMPLETED, 1, [1]), over.detail
    assert over.output == "told one is charged 3 SUCCEEDED"
    with db.read(stand.tenant):
        rows = list(Session.objects.filter(job_id=job).order_by("run_number").values_list("run_number", "incarnation"))
    assert rows == [(0, 2), (1, 1)]
    keys = [call.key for call in stand.calls(job) if call.function_name == "charge"]
    lost, again, next_run = sorted(keys, key=lambda key: "/r1/" in key)
    assert lost == again != next_run
    assert next_run == again.replace("/s1/", "/r1/s1/")
    assert [stand.ledger()[key] for key in (again, next_run)] == [1, 1]
    assert stand.begun()[again] == 2, "asked twice under one key, and done once"
    node.kill()


def asked(stand: Services, job: UUID, *, incarnation: int) -> Hold:
    """The question that the program's incarnation comes to; waits for it."""

    def found() -> Hold | None:
        with db.read(stand.tenant):
            mine = Hold.objects.filter(job_id=job, closed_at__isnull=True, call__incarnation=incarnation)
            return mine.select_related("call").first()

    until(lambda: found() is not None or stand.job(job).ended_at is not None, "nobody was asked", PATIENCE)
    hold = found()
    assert hold is not None, stand.job(job).detail
    with db.read(stand.tenant):
        assert Session.objects.get(job_id=job).continues is not None, "the control: it has asked to continue"
    return hold
