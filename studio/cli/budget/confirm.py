"""`oz0 budget confirm`: what a request that was reserved for has used."""

from datetime import UTC, datetime
from pathlib import Path

import click

from studio.cli import _told
from studio.cli.budget import _asking


@click.command(
    cls=_told.Told,
    exits=_asking.EXITS,
    examples=[
        "oz0 budget confirm RESERVATION --model gpt-4o --provider openai --input-tokens 9 --output-tokens 7",
    ],
)
@click.argument("reservation_id")
@click.option("--call-id", help="Of the request; made of the reservation's when left out.")
@click.option("--model", required=True)
@click.option("--provider", required=True)
@click.option("--input-tokens", type=click.IntRange(0), required=True)
@click.option("--output-tokens", type=click.IntRange(0), required=True)
@click.option("--cached-input-tokens", type=click.IntRange(0), help="Of the input's: those read from a cache.")
@click.option("--modality", help="Such as text (when left out), image or audio.")
@click.option("--no-record", is_flag=True, help="Confirm without recording: so a confirmation is sent again.")
@_asking.journal_options
@_told.json_option
def confirm(
    reservation_id: str,
    call_id: str | None,
    model: str,
    provider: str,
    input_tokens: int,
    output_tokens: int,
    cached_input_tokens: int | None,
    modality: str | None,
    no_record: bool,
    studio: str | None,
    key_file: Path | None,
    project: str | None,
    as_json: bool,
) -> None:
    """Confirm what the request of RESERVATION_ID has used, and record it.

    Where the answer is lost, the same with --no-record may be sent again for an hour.
    """
    from base import ids
    from budgets.rules import identity
    from budgets.rules.attribution import call_id_of
    from budgets.sessions.settling import Confirmation
    from budgets.sessions.shapes import BadShape, Used, read

    if identity.parse(reservation_id) is None:
        raise click.BadParameter("RESERVATION_ID is a UUIDv7 in small letters, with hyphens: `check` printed it")
    used = {
        "call_id": call_id or call_id_of(reservation_id) or str(ids.new()),
        "model": model,
        "provider": provider,
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "cached_input_tokens": cached_input_tokens,
        "modality": modality,
    }
    try:
        whole = read(Used, used)
    except BadShape as error:
        raise click.BadParameter(str(error)) from error
    asked = _asking.journal(studio, key_file, project)
    call = Confirmation(reservation_id, whole, record=not no_record, now=datetime.now(UTC), instance=ids.new())
    trouble = _asking.done(call, asked)
    lines = [
        f"reservation {reservation_id}: {call.recovery.settlement}",
        f"call {whole.call_id}: recording {call.recovery.recording.value}",
    ]
    _asking.show(call, trouble, as_json=as_json, lines=lambda: lines)
    raise SystemExit(_asking.exit_of(trouble))
