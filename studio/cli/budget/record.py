"""`oz0 budget record`: send events again, exactly as they were."""

from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from studio.cli import _told
from studio.cli.budget import _asking

if TYPE_CHECKING:
    from budgets.sessions.batches import DenialsAgain
    from budgets.sessions.settling import EventAgain


@click.command(
    cls=_told.Told,
    exits={**_asking.EXITS, _asking.DONE: "the journal has them"},
    examples=["oz0 budget record --file retry.json --operation-id 01a22e93-…", "oz0 budget record --file event.json"],
)
@click.option("--file", type=click.File(), required=True, help="`recording_retry` of an earlier answer, or -.")
@click.option("--operation-id", help="Of the denials; left out for the event of a confirmation.")
@_asking.journal_options
@_told.json_option
def record(
    file: IO[str],
    operation_id: str | None,
    studio: str | None,
    key_file: Path | None,
    project: str | None,
    as_json: bool,
) -> None:
    """Send recording_retry objects again, unchanged. Nothing is reserved or confirmed."""
    value = _asking.read_json(file, "--file")
    call = _denials(operation_id, value) if operation_id is not None else _event(value)
    trouble = _asking.done(call, _asking.journal(studio, key_file, project))
    lines = [f"call {one['call_id']}: {one['status']}" for one in call.recording.as_json()]
    _asking.show(call, trouble, as_json=as_json, lines=lambda: lines)
    raise SystemExit(_asking.exit_of(trouble))


def _denials(operation_id: str, value: Any) -> "DenialsAgain":
    from budgets.rules import identity
    from budgets.sessions.batches import DenialsAgain, why_not_again

    if identity.parse(operation_id) is None:
        raise click.BadParameter("--operation-id is a UUIDv7 in small letters, with hyphens")
    rows = value if isinstance(value, list) else [value]
    if not rows or not all(_is_kept(row) for row in rows):
        raise click.BadParameter("--file holds a list of recording_retry objects, each with index and event")
    events = [(row["index"], row["event"]) for row in rows]
    if why := why_not_again(operation_id, events):
        raise click.BadParameter(f"--file: {why}")
    return DenialsAgain(operation_id, events)


def _event(value: Any) -> "EventAgain":
    from budgets.rules.attribution import why_not_event
    from budgets.sessions.settling import EventAgain

    if not isinstance(value, dict) or (why_not_event(value)):
        why = why_not_event(value) if isinstance(value, dict) else "it is no object"
        raise click.BadParameter(f"--file holds the recording_retry of a confirmation: {why}")
    return EventAgain(value)


def _is_kept(row: Any) -> bool:
    return isinstance(row, dict) and type(row.get("index")) is int and isinstance(row.get("event"), dict)
