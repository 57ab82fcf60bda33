"""A node in this process, on the example plugins' real servers and a real database; no broker at all."""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from django.conf import LazySettings
from django.db import connection

from base import db
from catalog.models import Agent, Function, Listing, ServerLog, Tool
from catalog.operations import listings, plugins
from catalog.operations.server_logs import MOST_LINES
from catalog.rules.agents import AgentSpec, RehearsalCall, RehearsalTurn
from catalog.rules.kept_agents import as_json
from jobs.models import Call, Job, Starter
from jobs.operations import intake
from jobs.rules.states import JOB_FINAL, CallState, JobState
from jobs.tasks.host import Host
from tenants.rules.who import SYSTEM
from tests.builders import a_job, a_person, a_tenant, a_world, see
from tests.waiting import until

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def home(tmp_path: Path, settings: LazySettings) -> Path:
    """A state folder of the test's own."""
    settings.OZ0_HOME = tmp_path
    return tmp_path


@pytest.fixture
def host(home: Path) -> Iterator[Host]:
    """A running node."""
    node = Host(name="here")
    node.start()
    yield node
    node.stop(grace=2)
    connection.close()


def start(tenant: UUID, person: int, agent: str, **given: object) -> UUID:
    """A job a person started."""
    return intake.start_job(tenant=tenant, agent=agent, given=given, starter=Starter.PERSON, person=person)


def job_state(tenant: UUID, job: UUID) -> str:
    with db.read(tenant):
        return Job.objects.get(pk=job).state


def listed(tenant: UUID) -> bool:
    with db.read(tenant):
        return Listing.objects.filter(current=True).exists()


@pytest.mark.rule("G2")
@pytest.mark.rule("K1")
def test_a_job_of_an_example_runs_to_its_end_with_no_broker(host: Host, home: Path) -> None:
    tenant = a_tenant()
    person = a_person(tenant)
    plugins.register(tenant=tenant, folder=EXAMPLES / "billing", home=home, actor=SYSTEM)
    until(lambda: listed(tenant), "the tool was never listed", 60)
    job = start(tenant, person, "bookkeeper")
    until(lambda: job_state(tenant, job) in JOB_FINAL, "the job never ended", 60)
    with db.read(tenant):
        row = Job.objects.get(pk=job)
        calls = list(Call.objects.filter(job_id=job).order_by("activity"))
    assert row.state == JobState.COMPLETED, row.detail
    assert [call.state for call in calls] == [CallState.SUCCEEDED, CallState.SUCCEEDED]
    ledger = next((home / "demo" / "billing").glob("*.jsonl"))
    lines = [json.loads(line) for line in ledger.read_text().splitlines()]
    assert next(line["key"] for line in lines if "key" in line) == calls[0].key


SHELF = """
from mcp.server import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("shelf")


@server.tool(annotations=ToolAnnotations(ANNOTATIONS))
def look() -> str:
    return "SAYS"


server.run()
"""


@pytest.mark.rule("C2")
def test_a_server_whose_code_was_changed_is_started_anew_when_its_tool_is_listed_again(
    host: Host, tmp_path: Path
) -> None:
    world, script = a_world(), tmp_path / "shelf.py"
    script.write_text(SHELF.replace("ANNOTATIONS", "").replace("SAYS", "before"))

    def kind() -> str:
        with db.read(world.tenant):
            return Function.objects.filter(listing__current=True, name="look").values_list("kind", flat=True).get()

    with db.write(world.tenant):
        Tool.objects.update(argv=[sys.executable, str(script)])
        listings.measure_soon(Tool.objects.get().pk)
    until(lambda: kind() == "undeclared", "it was never listed", 60)
    script.write_text(SHELF.replace("ANNOTATIONS", "read_only_hint=True").replace("SAYS", "after"))
    listings.list_anew(tenant=world.tenant, tool="shop", actor=SYSTEM)
    until(lambda: kind() == "read", "it was never listed anew", 60)
    look = RehearsalTurn("", (RehearsalCall("shop", "look"),))
    spec = AgentSpec("clerk", model="rehearsal", functions=("shop.*",), rehearsal=(look, RehearsalTurn("{{ last }}")))
    with db.write(world.tenant):
        Agent.objects.update(definition=as_json(spec))
    job = a_job(world)
    until(lambda: job_state(world.tenant, job) in JOB_FINAL, "the job never ended", 60)
    assert see(world, Job, job).output == "after"


@pytest.mark.rule("C8")
def test_what_a_server_says_to_its_stderr_is_kept_for_the_tools_page_while_it_runs(
    host: Host, home: Path, tmp_path: Path
) -> None:
    talkative = tmp_path / "billing"
    shutil.copytree(EXAMPLES / "billing", talkative)
    server = talkative / "billing_server.py"
    loud = "import sys\nfor n in range(2000):\n    print(f'ledger {n} opened', file=sys.stderr, flush=True)\n"
    whole = server.read_text()
    head = whole.index('"""', 3) + 3
    server.write_text(f"{whole[:head]}\n{loud}{whole[head:]}")
    tenant = a_tenant()
    a_person(tenant)
    plugins.register(tenant=tenant, folder=talkative, home=home, actor=SYSTEM)

    def last() -> str:
        with db.read(tenant):
            row = ServerLog.objects.first()
            return row.lines[-1] if row is not None and row.lines else ""

    until(lambda: "ledger 1999 opened" in last(), "its last line was never kept", 60)
    with db.read(tenant):
        (row,) = ServerLog.objects.all()
    assert (row.node, row.node_name) == (host.node_id, "here")
    assert len(row.lines) <= MOST_LINES
