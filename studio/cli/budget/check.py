"""`oz0 budget check`: may these requests be made? Each 32 are one operation, whose id is printed first."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import click

from studio.cli import _told
from studio.cli.budget import _asking

if TYPE_CHECKING:
    from budgets.sessions.batches import Submission
    from budgets.sessions.shapes import Check

ONE: Final = ("model", "provider", "estimated_input_tokens")


@click.command(
    cls=_told.Told,
    exits={**_asking.EXITS, _asking.DONE: "all are allowed", _asking.DENIED: "at least one is denied"},
    examples=[
        "oz0 budget check --model gpt-4o --provider openai --input-tokens 900 --output-tokens 300",
        "oz0 budget check --file checks.json --json",
        "oz0 budget check --file - --key-file key --studio https://studio.example.org",
    ],
)
@click.option("--model", help="Of one request.")
@click.option("--provider", help="Of one request.")
@click.option("--input-tokens", type=click.IntRange(0), help="About how many it sends.")
@click.option("--output-tokens", type=click.IntRange(0), help="About how many come back.")
@click.option("--file", type=click.File(), help="Many: a file with a JSON list of checks, or - for what comes in.")
@click.option("--operation-id", help="A UUIDv7 that you have kept, for up to 32; made when left out.")
@click.option("--no-record", is_flag=True, help="Do not record denials.")
@_asking.journal_options
@_told.lines_option
def check(
    model: str | None,
    provider: str | None,
    input_tokens: int | None,
    output_tokens: int | None,
    file: IO[str] | None,
    operation_id: str | None,
    no_record: bool,
    studio: str | None,
    key_file: Path | None,
    project: str | None,
    as_json: bool,
) -> None:
    """Ask whether requests to models may be made, and reserve for them.

    An operation is submitted once. What is not answered is looked up by `oz0 budget recover` and its id. When one
    of several operations does not complete, those after it are not submitted.
    """
    from base import ids
    from budgets.rules import identity
    from budgets.sessions import standalone
    from budgets.sessions.batches import Submission

    given = {"model": model, "provider": provider, "estimated_input_tokens": input_tokens}
    given["estimated_output_tokens"] = output_tokens
    checks = _checks({name: value for name, value in given.items() if value is not None}, file)
    parts = standalone.chunks(checks)
    if operation_id is not None and (len(parts) > 1 or identity.parse(operation_id) is None):
        raise click.BadParameter("--operation-id is a UUIDv7 in small letters, for at most 32 checks")
    asked = _asking.journal(studio, key_file, project)
    ended, first = _asking.DONE, 0
    for part in parts:
        call = Submission(operation_id or str(ids.new()), part, record=not no_record)
        _announce(call, first, len(part), as_json=as_json)
        trouble = _asking.done(call, asked)
        _asking.show(call, trouble, as_json=as_json, lines=partial(_lines, call, first))
        if trouble is not None:
            if left := len(checks) - first - len(part):
                click.echo(f"The last {left} checks were not submitted.", err=True)
            raise SystemExit(_asking.exit_of(trouble))
        if any(not one["allowed"] for one in (call.data() or {})["results"]):
            ended = _asking.DENIED
        first += len(part)
    raise SystemExit(ended)


def _announce(call: "Submission", first: int, count: int, *, as_json: bool) -> None:
    """Say the id before anything is sent: it is what finds a reply that is lost."""
    told = {"operation_id": call.operation_id, "first": first, "checks": count}
    click.echo(json.dumps(told) if as_json else f"operation {call.operation_id}: checks {first} to {first + count - 1}")


def _lines(call: "Submission", first: int) -> list[str]:
    found = call.data()
    return [] if found is None else [_line(first, one) for one in found["items"]]


def _line(first: int, item: Mapping[str, Any]) -> str:
    return f"  {first + item['index']:>4}  {told_of(item)}"


def told_of(item: Mapping[str, Any]) -> str:
    """What an item came to, in words."""
    result = item["result"]
    if result is None:
        return str(item["state"])
    if not result["allowed"]:
        return f"denied by the limit of the {result['denied_by_period']}"
    if result["reservation_id"] is None:
        return "allowed, nothing reserved"
    return f"allowed until {item['reservation_expires_at']}, reservation {result['reservation_id']}"


def _checks(one: Mapping[str, Any], file: IO[str] | None) -> "Sequence[Check]":
    from budgets.sessions.shapes import BadShape, Check, read

    if (file is None) == (not one):
        raise click.UsageError("give either --file, or --model, --provider and --input-tokens")
    if file is None and not set(ONE) <= set(one):
        raise click.UsageError("one check needs --model, --provider and --input-tokens")
    every = [dict(one)] if file is None else _asking.read_json(file, "--file")
    if not isinstance(every, list) or not every:
        raise click.BadParameter("--file holds a JSON list of checks")
    found = []
    for number, value in enumerate(every):
        try:
            found.append(read(Check, value))
        except BadShape as error:
            raise click.BadParameter(f"check {number}: {error}") from error
    return found
