"""A node in this process, on the example plugins' real servers and a real database; no broker at all."""

import json
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from django.conf import LazySettings
from django.db import connection

from base import db
from catalog.models import Listing
from catalog.operations import plugins
from jobs.models import Call, Job, Starter
from jobs.operations import intake
from jobs.rules.states import JOB_FINAL, CallState, JobState
from jobs.tasks.host import Host
from tenants.rules.who import SYSTEM
from tests.builders import a_person, a_tenant
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
