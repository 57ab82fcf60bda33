"""A lazy agent on a real node: it reads manuals, finds a function and calls it on its plugin's real server."""

import json
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from django.conf import LazySettings
from django.db import connection

from base import db, ids
from catalog.models import Listing
from catalog.operations.plugins import register
from catalog.queries.agent_pages import agent_page
from jobs.models import Call, Job, Starter, Turn
from jobs.operations import intake
from jobs.queries.history import past_turns
from jobs.rules.states import JOB_FINAL, CallState, JobState
from jobs.tasks.host import Host
from tenants.rules.who import SYSTEM
from tests.builders import World, a_person, a_policy, a_rule, a_tenant
from tests.pages.visitors import text_of, visitor
from tests.waiting import until

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def world(tmp_path: Path, settings: LazySettings) -> Iterator[World]:
    """The examples `billing` and `helpdesk` in a workspace with a running node."""
    settings.OZ0_HOME = tmp_path
    tenant = a_tenant()
    person = a_person(tenant)
    for name in ("billing", "helpdesk"):
        register(tenant=tenant, folder=EXAMPLES / name, home=tmp_path, actor=SYSTEM)
    host = Host(name="here")
    host.start()
    until(lambda: listed(tenant), "billing was never listed", 60)
    yield World(tenant, person, host.node_id)
    host.stop(grace=2)
    connection.close()


def listed(tenant: UUID) -> bool:
    with db.read(tenant):
        return Listing.objects.filter(current=True).exists()


def ended(world: World, job: UUID) -> Job:
    def over() -> bool:
        with db.read(world.tenant):
            return Job.objects.get(pk=job).state in JOB_FINAL

    until(over, "the job never ended", 60)
    with db.read(world.tenant):
        return Job.objects.get(pk=job)


@pytest.mark.rule("M2")
@pytest.mark.rule("M3")
@pytest.mark.rule("T4")
def test_a_lazy_agent_reads_another_plugins_manual_finds_a_function_and_calls_it(world: World) -> None:
    page = agent_page(world.tenant, "answerer")
    assert page is not None
    assert [row.cost.label for row in page.own] == ["oz.find", "oz.call", "oz.skill"]
    assert page.cost.tokens == sum(row.cost.tokens for row in page.own)
    a_policy(world, a_rule("watched", "allow", tainted=True, kind="read", title="Reads of tainted jobs"))
    job = intake.start_job(tenant=world.tenant, agent="answerer", given={}, starter=Starter.PERSON, person=world.person)
    row = ended(world, job)
    assert row.state == JobState.COMPLETED, row.detail
    with db.read(world.tenant):
        calls = list(Call.objects.filter(job_id=job).order_by("activity"))
        past = past_turns(row)
        assert Turn.objects.filter(job_id=job).count() == 4
    own, manual, find, balance = calls
    assert [call.state for call in calls] == [CallState.SUCCEEDED] * 4
    assert [call.attempts_made for call in calls] == [0, 0, 0, 1]
    assert "Charge an order once" in past[0].calls[1].text
    assert (row.tainted_at, row.tainted_by) == (manual.created_at, "billing/bill-with-care")
    assert own.created_at <= row.tainted_at
    assert [one["name"] for one in json.loads(find.result_text)["functions"]] == ["billing__balance"]
    assert (balance.tool_slug, balance.function_name, balance.asked_through) == ("billing", "balance", "oz__call")
    assert balance.rule_id == "watched", "it was judged as a tainted job's"
    assert row.output == f"Account A-77: {past[2].calls[0].text}"
    words = text_of(visitor(world).get(f"/jobs/{ids.show(ids.JOB, job)}/?call={ids.show(ids.CALL, balance.pk)}"))
    assert "Tainted since" in words
    assert "billing/bill-with-care" in words
    assert "asked for through <code>oz.call</code>" in words
    assert "read billing/bill-with-care, another plugin&#x27;s manual: answered by the studio itself" in words
