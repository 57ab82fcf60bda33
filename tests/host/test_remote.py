"""A node in this process on the example archive, a real remote server that is really killed and started again."""

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from django.conf import LazySettings
from django.db import connection

from base import db, ids
from catalog.models import Connection, Credential, EntryApproval, Function, Listing
from catalog.operations import connections, plugins
from catalog.operations.connections import Given
from jobs.models import Attempt, Call, Job, Starter
from jobs.operations import intake
from jobs.queries.call_page import call_page
from jobs.queries.trace import trace
from jobs.rules.states import JOB_FINAL, CallState, JobState
from jobs.tasks.host import Host
from tenants.rules.who import SYSTEM
from tests.builders import a_person, a_tenant, an_approval
from tests.examples.archives import Archive, an_archive
from tests.waiting import until

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.faults]


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


def taken_in(archive: Archive, home: Path) -> tuple[UUID, int]:
    """A tenant with the archive's plugin, listed; its entries are approved but for `shred`."""
    tenant = a_tenant()
    person = a_person(tenant)
    place = f"127.0.0.1:{archive.port}"
    connections.make(
        tenant=tenant, name="archive", url=archive.url, allowed=[place], given=Given(Credential.NONE), actor=SYSTEM
    )
    plugins.register(tenant=tenant, folder=EXAMPLES / "archive", home=home, actor=SYSTEM)

    def listed() -> bool:
        with db.read(tenant):
            return Listing.objects.filter(current=True).exists()

    until(listed, "the archive was never listed", 60)
    with db.write(tenant):
        for function in Function.objects.filter(name__in=["search", "count"]):
            an_approval(person, function)
    return tenant, person


def ended(tenant: UUID, person: int, agent: str, **given: object) -> tuple[Job, Call, list[Attempt]]:
    """A job of the archive's one search, run to its end."""
    job = intake.start_job(tenant=tenant, agent=agent, given=given, starter=Starter.PERSON, person=person)

    def over() -> bool:
        with db.read(tenant):
            return Job.objects.get(pk=job).state in JOB_FINAL

    until(over, "the job never ended", 90)
    with db.read(tenant):
        call = Call.objects.get(job_id=job)
        return Job.objects.get(pk=job), call, list(Attempt.objects.filter(call=call).order_by("number"))


@pytest.mark.rule("P3")
@pytest.mark.rule("P4")
@pytest.mark.rule("P5")
@pytest.mark.rule("U1")
@pytest.mark.parametrize("older", [False, True], ids=["2026-07-28", "2025-11-25"])
def test_a_search_whose_server_was_killed_after_page_2_of_4_goes_on_from_there(
    home: Path, host: Host, older: bool, tmp_path: Path
) -> None:
    with an_archive(tmp_path / "archive", older=older) as archive:
        tenant, person = taken_in(archive, home)
        job, call, attempts = ended(tenant, person, "archivist")
        pages = archive.pages()
    assert (job.state, call.state) == (JobState.COMPLETED, CallState.SUCCEEDED), job.detail
    assert [page["page"] for page in pages] == [1, 2, 3, 4]
    assert [page["resumed"] for page in pages] == [None, None, "page-2", "page-2"]
    assert len({page["pid"] for page in pages}) == 2
    assert {page["key"] for page in pages} == {call.key}
    first, *_, last = attempts
    assert (first.resume_token, first.resume_progress, first.resume_total) == ("page-2", 2, 4)
    assert (last.resumed_from, last.resumed_of, last.started_over_because) == (2, 4, "")
    shown = call_page(tenant, call.pk)
    assert shown is not None
    assert shown.attempts[-1].began == "resumed from progress 2 of 4"
    whole = trace(tenant, job.pk)
    assert whole is not None
    (line,) = [line for group in whole.turns for line in group.calls]
    assert "resumed from progress 2 of 4" in line.says.text
    with db.read(tenant):
        assert Connection.objects.get().protocol == ("2025-11-25" if older else "2026-07-28")
    assert ids.show(ids.CALL, call.pk) == shown.shown_id


@pytest.mark.rule("U1")
def test_an_entry_that_nobody_approved_is_undeclared_and_waits_for_a_person(
    home: Path, host: Host, tmp_path: Path
) -> None:
    with an_archive(tmp_path / "archive") as archive:
        tenant, person = taken_in(archive, home)
        with db.write(tenant) as now:
            EntryApproval.objects.filter(function="search").update(withdrawn_at=now)
        job = intake.start_job(tenant=tenant, agent="archivist", given={}, starter=Starter.PERSON, person=person)

        def held() -> bool:
            with db.read(tenant):
                return Call.objects.filter(job_id=job, state=CallState.HELD).exists()

        until(held, "the call was never held", 30)
        with db.read(tenant):
            call = Call.objects.get(job_id=job)
        assert (call.kind, call.read_only, call.retry_safe) == ("undeclared", False, False)
        assert archive.pages() == []
