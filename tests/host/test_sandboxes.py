"""Sandboxed tools from a plugin's files to a job's end: a real node, real servers, a real database."""

import shutil
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from uuid import UUID

import psutil
import pytest
from django.conf import LazySettings
from django.db import connection

from base import db, sandbox
from catalog.models import Function, Listing, Tool
from catalog.operations import plugins
from catalog.queries.tool_page import tool_page
from jobs.models import Attempt, Call, Job, Starter
from jobs.operations import cancel, intake
from jobs.rules.states import JOB_FINAL, CallState, Effect, JobState
from jobs.tasks.host import Host
from tenants.rules.who import SYSTEM, Actor
from tests.builders import World, a_person, a_policy, a_rule, a_tenant
from tests.waiting import until

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
SERVERS = Path(__file__).parent.parent / "servers"
pytestmark = pytest.mark.usefixtures("database")

MANIFEST = """\
name: boxed
version: "1"
tools:
  - id: boxed
    mcp: ["python", "boxed_server.py"]
    sandbox: {memory: 256}
    timeout: 30
    cleanup: 1
agents: [agents]
"""
AGENT = """\
name: NAME
model: rehearsal
functions: [boxed.*]
rehearsal:
  - call: [{function: boxed.CALL, arguments: ARGUMENTS}]
  - say: "{{ last }}"
"""
AGENTS = {"glutton": ("eats", "{mebibytes: 600}"), "modest": ("eats", "{mebibytes: 1}"), "stuck": ("hangs", "{}")}


@pytest.fixture
def host(tmp_path: Path, settings: LazySettings) -> Iterator[Host]:
    """A running node with a state folder of the test's own."""
    settings.OZ0_HOME = tmp_path / "home"
    node = Host(name="here")
    node.start()
    yield node
    node.stop(grace=2)
    connection.close()


@pytest.fixture
def world(host: Host, tmp_path: Path) -> World:
    """The plugin of the server that eats and hangs, listed by the node."""
    folder = tmp_path / "plugin"
    (folder / "agents").mkdir(parents=True)
    (folder / "oz0-plugin.yaml").write_text(MANIFEST)
    shutil.copy(SERVERS / "boxed.py", folder / "boxed_server.py")
    for name, (call, arguments) in AGENTS.items():
        text = AGENT.replace("NAME", name).replace("CALL", call).replace("ARGUMENTS", arguments)
        (folder / "agents" / f"{name}.yaml").write_text(text)
    return _registered(folder, tmp_path / "home", host)


def _registered(folder: Path, home: Path, host: Host) -> World:
    tenant = a_tenant()
    world = World(tenant, a_person(tenant), host.node_id)
    plugins.register(tenant=tenant, folder=folder, home=home, actor=SYSTEM)
    until(lambda: _there(tenant, Listing.objects.filter(current=True).exists), "no listing came", 60)
    a_policy(world, a_rule("all", "allow"))
    return world


def _there(tenant: UUID, look: Callable[[], bool]) -> bool:
    with db.read(tenant):
        return look()


def started(world: World, agent: str) -> UUID:
    return intake.start_job(
        tenant=world.tenant, agent=agent, given={}, starter=Starter.PERSON, person=world.person, title=agent
    )


def over(world: World, job: UUID, seconds: float = 60) -> Job:
    """The job once it has ended."""
    until(lambda: _there(world.tenant, Job.objects.filter(pk=job, state__in=JOB_FINAL).exists), "no end", seconds)
    with db.read(world.tenant):
        return Job.objects.get(pk=job)


def the_call(world: World, job: UUID) -> Call:
    with db.read(world.tenant):
        return Call.objects.get(job_id=job)


def servers() -> list[int]:
    """The live servers below this process, guardians and their like left out."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            line = process.cmdline()
        except psutil.NoSuchProcess:
            continue
        if "boxed_server.py" in line and not any("guardian" in word or "jail" in word for word in line):
            found.append(process.pid)
    return found


@pytest.mark.rule("C5")
def test_a_tools_page_says_what_keeps_its_servers_apart_as_the_node_measured_it(world: World) -> None:
    page = tool_page(world.tenant, "boxed")
    assert page is not None
    assert page.row.kept_apart.startswith("in a sandbox (") and page.row.kept_apart.endswith(", no network")
    with db.write(world.tenant):
        Tool.objects.update(isolation="process_group")
    page = tool_page(world.tenant, "boxed")
    assert page is not None
    assert page.row.kept_apart == "process group only, network open"


def test_a_node_measures_anew_what_was_listed_under_another_isolation(world: World) -> None:
    with db.write(world.tenant):
        Tool.objects.update(isolation="process_group")
    other = Host(name="another")
    other.start()
    try:
        alike = Tool.objects.filter(isolation=sandbox.measured())
        until(lambda: _there(world.tenant, alike.exists), "it was not measured anew", 60)
    finally:
        other.stop(grace=0)


@pytest.mark.rule("U2")
def test_a_call_that_runs_out_of_memory_ends_after_four_attempts_and_takes_nobody_with_it(world: World) -> None:
    """CASES R05."""
    glutton = started(world, "glutton")
    until(lambda: _there(world.tenant, Attempt.objects.exists), "no attempt", 60)
    modest = over(world, started(world, "modest"))
    assert (modest.state, the_call(world, modest.pk).state) == (JobState.COMPLETED, CallState.SUCCEEDED)
    over(world, glutton, 100)
    call = the_call(world, glutton)
    assert (call.state, call.attempts_made, call.effect) == (CallState.FAILED, 4, Effect.NONE)
    with db.read(world.tenant):
        ends = set(Attempt.objects.filter(call=call).values_list("state", flat=True))
    assert ends == {"broken"}
    until(lambda: not servers(), "a server outlived its job")


@pytest.mark.rule("L1")
@pytest.mark.rule("L2")
def test_a_cancelled_job_is_canceled_once_its_server_is_gone(world: World) -> None:
    job = started(world, "stuck")
    until(lambda: _there(world.tenant, Attempt.objects.exists) and bool(servers()), "the call did not run", 60)
    cancel.cancel_job(tenant=world.tenant, job_id=job, by=Actor("pat", "link", world.person))
    with db.read(world.tenant):
        assert Job.objects.get(pk=job).state == JobState.CANCELLING
    assert servers()
    assert over(world, job).state == JobState.CANCELED
    assert not servers()
    call = the_call(world, job)
    assert (call.state, call.effect) == (CallState.CANCELED, Effect.MAYBE)


def test_the_clock_answers_from_its_sandbox_one_call_at_a_time(host: Host, tmp_path: Path) -> None:
    world = _registered(EXAMPLES / "clock", tmp_path / "home", host)
    with db.read(world.tenant):
        assert set(Function.objects.values_list("kind", flat=True)) == {"read"}
    job = started(world, "timekeeper")
    assert over(world, job).state == JobState.COMPLETED
    with db.read(world.tenant):
        assert {call.state for call in Call.objects.all()} == {CallState.SUCCEEDED}
        times = list(Attempt.objects.order_by("started_at").values_list("started_at", "ended_at"))
    assert len(times) == 3
    assert all(before[1] <= after[0] for before, after in pairwise(times))
