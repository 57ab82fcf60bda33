"""`oz0 jobs`: start jobs, list and watch them: here, as whom this studio belongs to, or where one is logged in."""

import json
import time
from collections.abc import Mapping
from datetime import datetime
from typing import IO, TYPE_CHECKING, Any, Final
from uuid import UUID

import click

from studio.cli import Named, _far_jobs, _this_studio, _told

if TYPE_CHECKING:
    from jobs.queries.journal import Entry
    from studio.cli._logins import Login

POLL: Final = 0.3  # seconds between looks while nothing happens
CANCELED: Final = 3  # exit code
MOST: Final = 50  # jobs in a list, unless it is said how many
EXIT: Final = {"COMPLETED": _told.Exit.DONE, "FAILED": _told.Exit.FAILED, "CANCELED": CANCELED}


studio_option = click.option(
    "--studio", metavar="URL", help="A studio you are logged in to; else that of this folder, else the last one."
)


@click.group(cls=Named, examples=["oz0 jobs start note-taker --watch", "oz0 jobs list", "oz0 jobs watch job_01k8…"])
def jobs() -> None:
    """Start jobs, list and watch them: of this folder's studio, or of one you are logged in to (oz0 login)."""


@jobs.command(
    cls=_told.Told,
    exits={
        _told.Exit.DONE: "started; with --watch: completed",
        _told.Exit.FAILED: "not started; with --watch: failed",
        CANCELED: "with --watch: canceled",
    },
    examples=[
        'oz0 jobs start note-taker --input text="Buy milk"',
        "oz0 jobs start note-taker --watch",
        """oz0 jobs start note-taker --input '{"text": "Buy milk"}' --json""",
        "oz0 jobs start note-taker --json-file input.json --studio https://studio.example.org",
    ],
)
@click.argument("agent")
@click.option("--input", "given", multiple=True, metavar="NAME=VALUE | JSON", help="Input of the job; may be repeated.")
@click.option("--json-file", "file", type=click.File(), help="A file of JSON, or - for what comes in; an object.")
@click.option("--title", default="", help="What to call it; the agent's name when left out.")
@click.option("--watch", "then_watch", is_flag=True, help="Show the trace until the job has ended.")
@studio_option
@_told.lines_option
def start(
    agent: str,
    given: tuple[str, ...],
    file: IO[str] | None,
    title: str,
    then_watch: bool,
    studio: str | None,
    as_json: bool,
) -> None:
    """Start a job of AGENT."""
    value = {**(_whole(file.read()) if file else {}), **_input(given)}
    if login := _far_jobs.login_for(studio):
        job = str(_far_jobs.start(login, agent, value, title)["id"])
        click.echo(json.dumps({"job": job}) if as_json else f"started {job} at {login.url}/jobs/{job}/")
        if then_watch:
            raise SystemExit(_watch_far(login, job, as_json=as_json))
        return
    _this_studio.ready()
    from base import ids
    from jobs.models import Starter
    from jobs.operations.intake import CannotStart, start_job

    tenant, person = _this_studio.me()
    try:
        job_id = start_job(tenant=tenant, agent=agent, given=value, starter=Starter.PERSON, person=person, title=title)
    except CannotStart as error:
        raise click.ClickException(str(error)) from error
    shown = ids.show(ids.JOB, job_id)
    click.echo(json.dumps({"job": shown}) if as_json else f"started {shown}")
    if then_watch:
        raise SystemExit(_watch(tenant, job_id, as_json=as_json))


@jobs.command(
    cls=_told.Told,
    exits={
        _told.Exit.DONE: "it completed",
        _told.Exit.FAILED: "it failed, or is not there",
        CANCELED: "it was canceled",
    },
    examples=["oz0 jobs watch job_01k8…", "oz0 jobs watch job_01k8… --json"],
)
@click.argument("job")
@studio_option
@_told.lines_option
def watch(job: str, studio: str | None, as_json: bool) -> None:
    """Show the trace of JOB until it has ended. Ctrl-C leaves the job running."""
    if login := _far_jobs.login_for(studio):
        raise SystemExit(_watch_far(login, _shown(job), as_json=as_json))
    _this_studio.ready()
    from base import ids

    tenant, _ = _this_studio.me()
    try:
        job_id = ids.parse(ids.JOB, job)
    except ids.BadId as error:
        raise click.BadParameter(str(error)) from error
    raise SystemExit(_watch(tenant, job_id, as_json=as_json))


@jobs.command(
    cls=_told.Told,
    name="list",
    exits={_told.Exit.DONE: "listed", _told.Exit.FAILED: "the studio cannot be reached, or refuses"},
    examples=["oz0 jobs list --live", "oz0 jobs list --agent note-taker --json"],
)
@click.option("--live", is_flag=True, help="Only those that are not over.")
@click.option("--agent", default="", help="Only those of one agent.")
@click.option("--most", default=MOST, type=click.IntRange(1, 1_000), help="How many at most.")
@studio_option
@_told.lines_option
def list_(live: bool, agent: str, most: int, studio: str | None, as_json: bool) -> None:
    """List jobs, the newest first."""
    if login := _far_jobs.login_for(studio):
        wanted = ({"live": "true"} if live else {}) | ({"agent": agent} if agent else {})
        found = list(_far_jobs.listed(login, wanted, most))
    else:
        found = _listed_here(live, agent, most)
    for job in found:
        click.echo(_far_jobs.as_json(job) if as_json else _far_jobs.line_of(job))
    if not found and not as_json:
        click.echo("no job fits")


def _listed_here(live: bool, agent: str, most: int) -> list[Mapping[str, Any]]:
    _this_studio.ready(wakes=False)
    from jobs.queries.lists import JobFilter, jobs_page

    tenant, _ = _this_studio.me()
    found: list[Mapping[str, Any]] = []
    before: UUID | None = None
    while len(found) < most:
        page = jobs_page(tenant, JobFilter(view="live" if live else "all", agent=agent, before=before))
        found += [
            {
                "id": row.shown_id,
                "state": row.state,
                "title": row.title,
                "agent": row.agent,
                "asks": row.asks,
                "starter": row.starter,
                "started_by": row.started_by,
                "created_at": row.created_at.isoformat(),
            }
            for row in page.rows
        ]
        if page.next_before is None:
            break
        before = page.rows[-1].id
    return found[:most]


def _watch_far(login: "Login", job: str, *, as_json: bool) -> int:
    """Print the journal of a job elsewhere until it has ended; returns the exit code."""
    names = dict[object, str]()

    def show(event: Mapping[str, Any]) -> None:
        if as_json:
            line = _far_jobs.as_json({name: event[name] for name in ("seq", "at", "kind", "call")} | event["data"])
        else:
            at = datetime.fromisoformat(event["at"])
            line = _as_line(event["kind"], at, event["call"], event["data"], names)
        if line:
            click.echo(line)

    ended = _far_jobs.watch(login, job, show)
    _last_words(ended["state"], ended["output"], ended["why"], as_json=as_json)
    return _far_jobs.exit_of(ended["state"], CANCELED)


def _shown(job: str) -> str:
    from base import ids

    try:
        return ids.show(ids.JOB, ids.parse(ids.JOB, job))
    except ids.BadId as error:
        raise click.BadParameter(str(error)) from error


def _input(given: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for text in given:
        found |= _whole(text) if text.lstrip().startswith("{") else _pair(text)
    return found


def _whole(text: str) -> dict[str, Any]:
    from base import canonical

    try:
        value = canonical.parse(text)
    except (canonical.NotCanonical, ValueError) as error:
        raise click.BadParameter(f"--input is not a JSON object: {error}") from error
    if not isinstance(value, dict):
        raise click.BadParameter("--input is JSON, but not an object: write NAME=VALUE or {…}")
    return value


def _pair(text: str) -> dict[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"--input {text!r} is neither NAME=VALUE nor a JSON object")
    try:
        return {name: json.loads(value)}
    except ValueError:
        return {name: value}  # plain words need no quotes


def _watch(tenant: UUID, job_id: UUID, *, as_json: bool) -> int:
    """Print the job's journal until it has ended; returns the exit code. Ctrl-C leaves the job running."""
    from base import db
    from jobs.models import Job
    from jobs.queries import journal
    from jobs.rules.states import JOB_FINAL

    seq, names = 0, dict[object, str]()
    while True:
        with db.read(tenant):
            row = Job.objects.filter(pk=job_id).values_list("state", "output", "detail").first()
            entries = journal.after(job_id, seq)
        if row is None:
            raise click.ClickException("there is no such job")
        for entry in entries:
            seq = entry.seq
            line = _as_json(entry) if as_json else _as_line(entry.kind, entry.at, entry.call, entry.data, names)
            if line:
                click.echo(line)
        if row[0] in JOB_FINAL and not entries:
            _last_words(*row, as_json=as_json)
            return EXIT[row[0]]
        if not entries:
            time.sleep(POLL)


def _last_words(state: str, output: str, detail: str, *, as_json: bool) -> None:
    from base.visible import visible

    if as_json:
        click.echo(json.dumps({"state": state, "output": output, "detail": detail}, ensure_ascii=False))
    elif output or detail:
        click.echo(visible(output or detail, 4_000))


def _as_json(entry: "Entry") -> str:
    from base import ids

    call = ids.show(ids.CALL, entry.call) if entry.call else None
    whole = {"seq": entry.seq, "at": entry.at.isoformat(), "kind": entry.kind, "call": call, **entry.data}
    return json.dumps(whole, ensure_ascii=False)


def _as_line(kind: str, at: datetime, call: object, data: Mapping[str, Any], names: dict[object, str]) -> str:
    """One event in words; nothing for what only a program wants to know. `names` are those of calls so far."""
    from base.visible import visible
    from jobs.rules import why

    if kind == "call.submitted" and call:
        names[call] = f"{data['activity']:>3} {visible(str(data['function']), 80)}"
    what = _words(kind, data, names.get(call, ""))
    reason = why.sentence(str(data["reason"])) if what and data.get("reason") else ""
    return f"{at:%H:%M:%S}  {what}{'  ' + reason if reason else ''}" if what else ""


def _words(kind: str, data: Mapping[str, Any], call: str) -> str:
    match kind:
        case "job.started":
            return f"job of {data['agent']} {data['to']}"
        case "job.continued":
            return f"job continues as new: run {data['run'] + 1}"
        case "job.moved":
            return f"job {data['to']}"
        case "session.continues":
            return "its program asks that the job continues as new"
        case "turn.asked" if data.get("summary"):
            return f"turn {data['turn']} asked, for a summary of the run"
        case "turn.asked":
            return f"turn {data['turn']} asked"
        case "turn.moved":
            return f"turn {data['turn']} {data['to']}"
        case "call.submitted" | "call.moved":
            return f"{call} {data['to']}"
        case "attempt.started" if data.get("how"):
            return f"{call} attempt {data['number']}: {data['how']}"
        case "hold.opened":
            return f"{call} waits for a person ({data['hold_kind']})"
        case _:
            return ""
