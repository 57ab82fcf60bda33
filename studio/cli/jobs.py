"""`oz0 jobs`: start a job and watch it, as the person this studio belongs to."""

import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import click

from studio.cli import Named, _this_studio, _told

if TYPE_CHECKING:
    from jobs.queries.journal import Entry

POLL: Final = 0.3  # seconds between looks while nothing happens
CANCELED: Final = 3  # exit code
EXIT: Final = {"COMPLETED": _told.Exit.DONE, "FAILED": _told.Exit.FAILED, "CANCELED": CANCELED}


@click.group(cls=Named, examples=["oz0 jobs start note-taker --watch", "oz0 jobs watch job_01k8…"])
def jobs() -> None:
    """Start jobs and watch them."""


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
    ],
)
@click.argument("agent")
@click.option("--input", "given", multiple=True, metavar="NAME=VALUE | JSON", help="Input of the job; may be repeated.")
@click.option("--title", default="", help="What to call it; the agent's name when left out.")
@click.option("--watch", "then_watch", is_flag=True, help="Show the trace until the job has ended.")
@_told.lines_option
def start(agent: str, given: tuple[str, ...], title: str, then_watch: bool, as_json: bool) -> None:
    """Start a job of AGENT."""
    _this_studio.ready()
    from base import ids
    from jobs.models import Starter
    from jobs.operations.intake import CannotStart, start_job

    tenant, person = _this_studio.me()
    try:
        job = start_job(
            tenant=tenant, agent=agent, given=_input(given), starter=Starter.PERSON, person=person, title=title
        )
    except CannotStart as error:
        raise click.ClickException(str(error)) from error
    shown = ids.show(ids.JOB, job)
    click.echo(json.dumps({"job": shown}) if as_json else f"started {shown}")
    if then_watch:
        raise SystemExit(_watch(tenant, job, as_json=as_json))


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
@_told.lines_option
def watch(job: str, as_json: bool) -> None:
    """Show the trace of JOB until it has ended. Ctrl-C leaves the job running."""
    _this_studio.ready()
    from base import ids

    tenant, _ = _this_studio.me()
    try:
        job_id = ids.parse(ids.JOB, job)
    except ids.BadId as error:
        raise click.BadParameter(str(error)) from error
    raise SystemExit(_watch(tenant, job_id, as_json=as_json))


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

    seq, names = 0, dict[UUID, str]()
    while True:
        with db.read(tenant):
            row = Job.objects.filter(pk=job_id).values_list("state", "output", "detail").first()
            entries = journal.after(job_id, seq)
        if row is None:
            raise click.ClickException("there is no such job")
        for entry in entries:
            seq = entry.seq
            line = _as_json(entry) if as_json else _as_line(entry, names)
            if line:
                click.echo(line)
        if row[0] in JOB_FINAL and not entries:
            _last_words(*row, as_json=as_json)
            return EXIT[row[0]]
        if not entries:
            time.sleep(POLL)


def _last_words(state: str, output: str, detail: str, *, as_json: bool) -> None:
    from base.text import visible

    if as_json:
        click.echo(json.dumps({"state": state, "output": output, "detail": detail}, ensure_ascii=False))
    elif output or detail:
        click.echo(visible(output or detail, 4_000))


def _as_json(entry: "Entry") -> str:
    from base import ids

    call = ids.show(ids.CALL, entry.call) if entry.call else None
    whole = {"seq": entry.seq, "at": entry.at.isoformat(), "kind": entry.kind, "call": call, **entry.data}
    return json.dumps(whole, ensure_ascii=False)


def _as_line(entry: "Entry", names: dict[UUID, str]) -> str:
    """One event in words; nothing for what only a program wants to know."""
    from base.text import visible
    from jobs.rules import why

    data = entry.data
    if entry.kind == "call.submitted" and entry.call:
        names[entry.call] = f"{data['activity']:>3} {visible(str(data['function']), 80)}"
    what = _words(entry.kind, data, names.get(entry.call, "") if entry.call else "")
    reason = why.sentence(str(data["reason"])) if what and data.get("reason") else ""
    return f"{entry.at:%H:%M:%S}  {what}{'  ' + reason if reason else ''}" if what else ""


def _words(kind: str, data: Mapping[str, Any], call: str) -> str:
    match kind:
        case "job.started":
            return f"job of {data['agent']} {data['to']}"
        case "job.continued":
            return f"job continues as new: run {data['run'] + 1}"
        case "job.moved":
            return f"job {data['to']}"
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
