"""`oz0 load-examples`: the example plugins in the first workspace, and their jobs running for real."""

import importlib
import importlib.util
import subprocess
import sys
import time
from pathlib import Path
from typing import Final
from uuid import UUID

import click

from studio import example_programs

PLUGINS: Final = ("bookshop", "billing", "repo", "archive", "clock", "everything")
AGENTS: Final = (
    "git-clerk",
    "billing-clerk",
    "shopkeeper",
    "auditor",
    "refund-clerk",
    "git-reader",
    "archivist",
    "slow-reader",
    "timekeeper",
    "patient-one",
)
PATIENCE: Final = 60.0  # seconds for a node to read what the examples' servers list
POLL: Final = 0.2


@click.command("load-examples")
@click.option("--jobs/--no-jobs", default=True, show_default=True, help="Start their jobs in a workspace without any.")
@click.option("--archive", default="", metavar="HOST:PORT", help="Where the archive runs; left out without it.")
def load_examples(jobs: bool, archive: str) -> None:
    """Register the example plugins and start a job of each kind. Doing it again changes nothing."""
    import django
    from django.core.exceptions import ImproperlyConfigured
    from django.db import OperationalError

    try:
        django.setup()
        _load(jobs, archive)
    except (ImproperlyConfigured, OperationalError) as error:
        raise click.ClickException(str(error).strip()) from error


def _load(jobs: bool, archive: str) -> None:
    from django.conf import settings

    from base import ids
    from catalog.operations.plugins import register
    from tenants.operations.sign_in import first_tenant
    from tenants.rules.who import SYSTEM

    importlib.import_module("studio.celery")  # so that starting a job wakes a node
    tenant = first_tenant(ids.new())
    home: Path = settings.OZ0_HOME
    examples: Path = settings.ROOT / "examples"
    if archive:
        _connect_archive(tenant, archive)
    for name in PLUGINS:
        if name == "archive" and not archive:
            continue
        if name == "repo" and not _git_can_be_shown(examples, home):
            continue
        if why := example_programs.missing(name, examples=examples, home=home):
            click.echo(f"left out plugin {name}: {why}", err=True)
            continue
        found = register(tenant=tenant, folder=examples / name, home=home, actor=SYSTEM)
        click.echo(f"{'registered' if found.fresh else 'kept'} plugin {found.name} {found.digest[:12]}")
    if jobs:
        _start_jobs(tenant)


def _connect_archive(tenant: UUID, place: str) -> None:
    """The connection of the archive, allowed on this machine by its exact port; the port is another one each time."""
    from base import db
    from catalog.operations import connections
    from catalog.queries.connections import named
    from tenants.rules.who import SYSTEM

    with db.read(tenant):
        there = named("archive")
    save = connections.make if there is None else connections.change
    url = f"http://{place}/mcp"
    if there is None or there.url != url:
        save(tenant=tenant, name="archive", url=url, allowed=[place], given=connections.Given(), actor=SYSTEM)


def _git_can_be_shown(examples: Path, home: Path) -> bool:
    """Make the demo's repository. False, saying why, where there is no git or no git server."""
    if importlib.util.find_spec("mcp_server_git") is None:
        click.echo("left out plugin repo: install mcp-server-git beside the studio to see it", err=True)
        return False
    try:
        script = [sys.executable, str(examples / "repo" / "make_demo_repo.py"), str(home / "demo" / "repo")]
        subprocess.run(script, check=True, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().splitlines()
        click.echo(f"left out plugin repo: its repository cannot be made: {said[-1] if said else error}", err=True)
        return False
    return True


def _start_jobs(tenant: UUID) -> None:
    """Start a job of each agent that is there, as the workspace's first person; none when there are jobs already.

    The archive is approved each time it is met at a new address: an approval counts for one server only.
    """
    from base import db, ids
    from catalog.models import Agent, Stage
    from jobs.models import Job, Starter
    from jobs.operations.intake import start_job
    from tenants.models import Membership, Role

    with db.read(tenant):
        fresh = not Job.objects.exists()
        person = Membership.objects.filter(role=Role.ADMIN).order_by("id").values_list("user_id", flat=True).first()
        there = set(Agent.objects.filter(plugin_version__stage=Stage.CURRENT).values_list("name", flat=True))
    waited_for = _unlisted(tenant)
    if waited_for and fresh:
        click.echo(f"no job was started: no node has listed {', '.join(waited_for)}; is `oz0 up` running?", err=True)
    if waited_for:
        return
    if person is not None:
        _approve_archive(tenant, person)
    for agent in AGENTS:
        if fresh and agent in there:
            job = start_job(tenant=tenant, agent=agent, given={}, starter=Starter.PERSON, person=person)
            click.echo(f"started a job of {agent}: {ids.show(ids.JOB, job)}")


def _approve_archive(tenant: UUID, person: int) -> None:
    """Approve what the archive says of itself, as the demo's admin, but for the entry that says nothing.

    At a new address what stood at the last one is approved; what a person took back there stays taken back.
    """
    from base import db
    from catalog.models import EntryApproval, Function, Stage, Tool
    from catalog.operations.approving import approve
    from catalog.queries.trust import approvals_of
    from tenants.models import User
    from tenants.rules.who import Actor

    actor = Actor(User.objects.get(pk=person).get_username(), "the demo's start", person)
    with db.read(tenant):
        tool = Tool.objects.filter(slug="archive", plugin_version__stage=Stage.CURRENT).first()
        if tool is None or approvals_of(tool).exists():
            return
        listed = Function.objects.filter(listing__current=True, tool=tool, annotations__readOnlyHint=True)
        last = EntryApproval.objects.filter(tool_slug="archive").order_by("approved_at", "pk")
        gone = {one.function for one in {one.function: one for one in last}.values() if one.withdrawn_at is not None}
        shown = {name: digest for name, digest in listed.values_list("name", "entry_digest") if name not in gone}
    if shown:
        names = approve(tenant=tenant, tool="archive", shown=shown, actor=actor)
        click.echo(f"approved {', '.join(names)} of the archive's listing")


def _unlisted(tenant: UUID) -> list[str]:
    """The current tools without a listing from where they are now, once a node had its time to read them."""
    from django.db.models import F, OuterRef, Q, Subquery

    from base import db
    from catalog.models import Connection, Listing, Stage, Tool

    ends = time.monotonic() + PATIENCE
    while True:
        with db.read(tenant):
            moved = Connection.objects.filter(name=OuterRef("tool__connection")).values("changed_at")
            asked = Listing.objects.filter(current=True).annotate(moved_at=Subquery(moved))
            listed = asked.filter(Q(moved_at=None) | Q(moved_at__lte=F("measured_at"))).values("tool")
            missing = Tool.objects.filter(plugin_version__stage=Stage.CURRENT).exclude(pk__in=listed)
            slugs = list(missing.order_by("slug").values_list("slug", flat=True))
        if not slugs or time.monotonic() > ends:
            return slugs
        time.sleep(POLL)
