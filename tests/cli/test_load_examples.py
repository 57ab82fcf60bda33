"""`oz0 load-examples`, in this process, on the test's own database."""

import importlib.util
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from django.conf import settings

from base import db, ids
from base.canonical import digest_of_any
from catalog.models import Connection, EntryApproval, Plugin, Tool
from catalog.operations import listings
from catalog.rules.servers import MeasuredListing
from jobs.models import Job, Starter
from studio import example_programs
from studio.cli import load_examples
from tenants.models import AuditEntry, Membership
from tenants.operations.sign_in import first_tenant
from tests.builders import FUNCTIONS

EVERYWHERE = [*(name for name in load_examples.PLUGINS if name != "archive"), "everything"]
# the archive runs only with the demo
pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of the test's own, and no patience with nodes that are not there."""
    monkeypatch.setattr(settings, "OZ0_HOME", tmp_path)
    monkeypatch.setattr(load_examples, "PATIENCE", 20.0)
    monkeypatch.setattr(example_programs, "_fetched", lambda *_: "")  # no test fetches but its own
    return tmp_path


def load(*words: str) -> Result:
    done = CliRunner().invoke(load_examples.load_examples, words, catch_exceptions=False)
    assert done.exit_code == 0
    return done


def list_every_tool() -> None:
    """As a node would."""
    tenant = first_tenant(ids.new())
    with db.read(tenant):
        tools = list(Tool.objects.values_list("pk", flat=True))
    measured = MeasuredListing(digest_of_any([f.digest for f in FUNCTIONS]), "2026-07-28", "s", "1", FUNCTIONS)
    for tool in tools:
        listings.store(tenant=tenant, tool_id=tool, measured=measured)


def test_the_examples_are_registered_once_with_the_demos_repository(home: Path) -> None:
    first = load("--no-jobs")
    again = load("--no-jobs")
    assert [line.split()[:3] for line in first.output.splitlines()] == [
        ["registered", "plugin", name] for name in EVERYWHERE
    ]
    assert all(line.startswith("kept") for line in again.output.splitlines())
    assert (home / "demo" / "repo" / ".git").is_dir()
    with db.read(first_tenant(ids.new())):
        assert Plugin.objects.count() == len(EVERYWHERE)
        assert not Job.objects.exists()


def test_a_job_of_each_kind_is_started_once_as_the_first_person(home: Path) -> None:
    load("--no-jobs")
    list_every_tool()
    load()
    load()
    with db.read(first_tenant(ids.new())):
        jobs = list(Job.objects.order_by("id").values_list("agent_name", "starter", "started_by"))
        person = Membership.objects.get().user_id
    of_the_archive = {"archivist", "slow-reader"}  # it runs only with the demo
    started = [agent for agent in (*load_examples.AGENTS, "patient-one") if agent not in of_the_archive]
    assert jobs == [(agent, Starter.PERSON, person) for agent in started]


@pytest.mark.rule("A12")
def test_the_archive_is_connected_and_what_it_says_of_itself_approved_by_the_first_person_and_audited(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(load_examples, "_git_can_be_shown", lambda *_: False)
    load("--no-jobs", "--archive", "127.0.0.1:8801")
    load("--no-jobs", "--archive", "127.0.0.1:8802")
    list_every_tool()
    load("--archive", "127.0.0.1:8802")
    with db.read(first_tenant(ids.new())):
        row = Connection.objects.get()
        approved = set(EntryApproval.objects.filter(withdrawn_at__isnull=True).values_list("function", flat=True))
        log = list(AuditEntry.objects.order_by("seq").values_list("verb", "object", "actor"))
        agents = set(Job.objects.values_list("agent_name", flat=True))
    assert (row.url, row.allowed) == ("http://127.0.0.1:8802/mcp", ["127.0.0.1:8802"])
    assert approved == {"look"}
    assert ("listing.approved", "tool archive", "admin") in log
    assert {"connection.made", "connection.changed"} <= {verb for verb, _, _ in log}
    assert {actor for _, _, actor in log} == {"admin"}
    assert {"archivist", "slow-reader"} <= agents


@pytest.mark.rule("C3")
def test_at_a_new_address_the_archive_is_approved_anew_but_for_what_a_person_took_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(load_examples, "_git_can_be_shown", lambda *_: False)
    tenant = None
    standing = []
    for place, takes_back in (("127.0.0.1:8801", False), ("127.0.0.1:8802", True), ("127.0.0.1:8803", False)):
        load("--no-jobs", "--archive", place)
        list_every_tool()
        load("--archive", place)
        tenant = first_tenant(ids.new())
        with db.write(tenant) as now:
            here = EntryApproval.objects.filter(withdrawn_at=None, address__contains=place)
            standing.append(set(here.values_list("function", flat=True)))
            if takes_back:
                here.update(withdrawn_at=now)
    assert standing == [{"look"}, {"look"}, set()]
    with db.read(tenant):
        assert Job.objects.filter(agent_name="archivist").count() == 1


def test_without_a_node_no_job_is_started_and_it_says_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_examples, "_git_can_be_shown", lambda *_: True)
    monkeypatch.setattr(load_examples, "PATIENCE", 0.0)
    said = load().output
    assert "no node has listed billing, bookshop, clock, repo" in said
    assert "no node has listed everything" in said
    with db.read(first_tenant(ids.new())):
        assert not Job.objects.exists()


def test_without_the_git_server_the_other_examples_are_there(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    said = load("--no-jobs").output
    assert "left out plugin repo: install mcp-server-git" in said
    assert "left out plugin clock: install mcp-server-time" in said
    with db.read(first_tenant(ids.new())):
        there = list(Plugin.objects.order_by("name").values_list("name", flat=True))
    assert there == ["billing", "bookshop", "everything", "helpdesk"]


def test_an_example_whose_program_cannot_be_fetched_is_in_the_catalog_starts_no_job_and_keeps_no_other_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    load("--no-jobs")
    list_every_tool()
    seen = []

    def fetched(*_: object) -> str:
        with db.read(first_tenant(ids.new())):
            seen.append(Job.objects.count())
        return "install Node.js with npm to see it"

    monkeypatch.setattr(example_programs, "_fetched", fetched)
    told = load().output.splitlines()
    assert "plugin everything cannot run: install Node.js with npm to see it" in told
    assert not [line for line in told if "patient-one" in line]
    with db.read(first_tenant(ids.new())):
        assert Plugin.objects.filter(name="everything").exists()
        assert seen == [Job.objects.count()] != [0]
