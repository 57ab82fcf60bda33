"""`oz0 load-examples`: the example plugins in the first workspace, and their jobs running for real."""

import contextlib
import importlib
import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import UUID

import click

from studio import example_programs
from studio.cli import _told

if TYPE_CHECKING:
    from tenants.rules.who import Actor

PLUGINS: Final = ("bookshop", "billing", "repo", "archive", "clock", "helpdesk")
FETCHED: Final = "everything"  # npm may take its time: the others are not kept waiting
AGENTS: Final = (
    "slow-reader",
    "git-clerk",
    "billing-clerk",
    "archivist",
    "shopkeeper",
    "auditor",
    "refund-clerk",
    "git-reader",
    "timekeeper",
    "answerer",
    "know-it-all",
)
FETCHED_AGENT: Final = "patient-one"
PATIENCE: Final = 120.0  # seconds for a node to start and to read what the examples' servers list
POLL: Final = 0.2


@click.command(
    "load-examples",
    cls=_told.Told,
    short_help="Load the example plugins and start their jobs.",
    exits={_told.Exit.DONE: "they are there", _told.Exit.FAILED: "they could not be loaded"},
    examples=["oz0 load-examples", "oz0 load-examples --no-jobs"],
)
@click.option("--jobs/--no-jobs", default=True, show_default=True, help="Start their jobs in a workspace without any.")
@click.option("--archive", default="", metavar="HOST:PORT", help="Where the archive runs; left out without it.")
@_told.json_option
def load_examples(jobs: bool, archive: str, as_json: bool) -> None:
    """Register the example plugins and start a job of each kind. Doing it again changes nothing."""
    import django
    from django.core.exceptions import ImproperlyConfigured
    from django.db import OperationalError

    try:
        django.setup()
        with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
            _load(jobs, archive)
    except (ImproperlyConfigured, OperationalError) as error:
        raise click.ClickException(str(error).strip()) from error
    if as_json:
        click.echo(json.dumps({"plugins": [*PLUGINS, FETCHED]}))


def _load(jobs: bool, archive: str) -> None:
    from django.conf import settings

    from base import ids
    from tenants.operations.sign_in import first_tenant

    importlib.import_module("studio.celery")  # so that starting a job wakes a node
    tenant = first_tenant(ids.new())
    admin = _admin(tenant)
    home: Path = settings.OZ0_HOME
    examples: Path = settings.ROOT / "examples"
    fresh = jobs and not _has_jobs(tenant)
    if archive:
        _connect_archive(tenant, archive, admin)
    for name in PLUGINS:
        if name == "archive" and not archive:
            continue
        if name == "repo" and not _git_can_be_shown(examples, home):
            continue
        if why := example_programs.missing(name):
            click.echo(f"left out plugin {name}: {why}", err=True)
            continue
        _register(tenant, examples / name, home, admin)
    if jobs and _listed(tenant, PLUGINS, tell=fresh):
        _approve_archive(tenant, admin)
        if fresh:
            _start_jobs(tenant, AGENTS, admin)
    why = example_programs.fetch(FETCHED, examples=examples, home=home)
    _register(tenant, examples / FETCHED, home, admin)  # in any case: its page says what is wrong
    if why:
        click.echo(f"plugin {FETCHED} cannot run: {why}", err=True)
    elif fresh and _listed(tenant, (FETCHED,), tell=True):
        _start_jobs(tenant, (FETCHED_AGENT,), admin)


def _admin(tenant: UUID) -> "Actor":
    """The first admin of the workspace, who does all of this, as the log tells."""
    from base import db
    from tenants.models import Membership, Role
    from tenants.rules.who import SYSTEM, Actor

    with db.read(tenant):
        seat = Membership.objects.select_related("user").filter(role=Role.ADMIN).order_by("id").first()
        return SYSTEM if seat is None else Actor(seat.user.get_username(), "oz0 load-examples", seat.user_id)


def _register(tenant: UUID, folder: Path, home: Path, admin: "Actor") -> None:
    from base import db
    from catalog.models import Plugin
    from catalog.operations.plugins import register

    with db.read(tenant):
        removed = Plugin.objects.filter(name=folder.name, removed_at__isnull=False).exists()
    if removed:  # by a person, who can import it again
        click.echo(f"left out plugin {folder.name}: it was removed")
        return
    found = register(tenant=tenant, folder=folder, home=home, actor=admin)
    click.echo(f"{'registered' if found.fresh else 'kept'} plugin {found.name} {found.digest[:12]}")


def _connect_archive(tenant: UUID, place: str, admin: "Actor") -> None:
    """The connection of the archive, allowed on this machine by its exact port; the port is another one each time."""
    from base import db
    from catalog.operations import connections
    from catalog.queries.connections import named

    with db.read(tenant):
        there = named("archive")
    save = connections.make if there is None else connections.change
    url = f"http://{place}/mcp"
    if there is None or there.url != url:
        save(tenant=tenant, name="archive", url=url, allowed=[place], given=connections.Given(), actor=admin)


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


def _has_jobs(tenant: UUID) -> bool:
    from base import db
    from jobs.models import Job

    with db.read(tenant):
        return Job.objects.exists()


def _start_jobs(tenant: UUID, agents: Sequence[str], admin: "Actor") -> None:
    """Start a job of each of these agents that is there, as the workspace's first admin."""
    from base import db, ids
    from catalog.models import Agent, Stage
    from jobs.models import Starter
    from jobs.operations.intake import start_job

    with db.read(tenant):
        there = set(Agent.objects.filter(plugin_version__stage=Stage.CURRENT).values_list("name", flat=True))
    for agent in agents:
        if agent in there and admin.user_id is not None:
            job = start_job(tenant=tenant, agent=agent, given={}, starter=Starter.PERSON, person=admin.user_id)
            click.echo(f"started a job of {agent}: {ids.show(ids.JOB, job)}")


def _approve_archive(tenant: UUID, admin: "Actor") -> None:
    """Approve what the archive says of itself, as the workspace's admin, but for the entry that says nothing.

    At a new address what stood at the last one is approved; what a person took back there stays taken back.
    """
    from base import db
    from catalog.models import EntryApproval, Function, Stage, Tool
    from catalog.operations.approving import approve
    from catalog.queries.trust import approvals_of

    with db.read(tenant):
        tool = Tool.objects.filter(slug="archive", plugin_version__stage=Stage.CURRENT).first()
        if tool is None or approvals_of(tool).exists():
            return
        listed = Function.objects.filter(listing__current=True, tool=tool, annotations__readOnlyHint=True)
        last = EntryApproval.objects.filter(tool_slug="archive").order_by("approved_at", "pk")
        gone = {one.function for one in {one.function: one for one in last}.values() if one.withdrawn_at is not None}
        shown = {name: digest for name, digest in listed.values_list("name", "entry_digest") if name not in gone}
    if shown and admin.user_id is not None:
        names = approve(tenant=tenant, tool="archive", shown=shown, actor=admin)
        click.echo(f"approved {', '.join(names)} of the archive's listing")


def _listed(tenant: UUID, plugins: Sequence[str], *, tell: bool) -> bool:
    """Whether every tool of these plugins has a listing from where it is now, once a node had its time to read them."""
    from django.db.models import F, OuterRef, Q, Subquery

    from base import db
    from catalog.models import Connection, Listing, Stage, Tool

    ends = time.monotonic() + PATIENCE
    while True:
        with db.read(tenant):
            moved = Connection.objects.filter(name=OuterRef("tool__connection")).values("changed_at")
            asked = Listing.objects.filter(current=True).annotate(moved_at=Subquery(moved))
            listed = asked.filter(Q(moved_at=None) | Q(moved_at__lte=F("measured_at"))).values("tool")
            tools = Tool.objects.filter(plugin_version__stage=Stage.CURRENT, plugin_version__plugin__name__in=plugins)
            slugs = list(tools.exclude(pk__in=listed).order_by("slug").values_list("slug", flat=True))
        if not slugs:
            return True
        if time.monotonic() > ends:
            if tell:
                names = ", ".join(slugs)
                click.echo(f"no job was started: no node has listed {names}; is `oz0 up` running?", err=True)
            return False
        time.sleep(POLL)
