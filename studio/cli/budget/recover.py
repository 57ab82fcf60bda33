"""`oz0 budget recover`: what became of an operation. Nothing is started, resumed or recorded."""

from pathlib import Path

import click

from studio.cli import _told
from studio.cli.budget import _asking
from studio.cli.budget.check import told_of


@click.command(
    cls=_told.Told,
    exits={**_asking.EXITS, _asking.DONE: "all are allowed", _asking.DENIED: "at least one is denied"},
    examples=["oz0 budget recover 01a22e93-7b6d-7554-ad9f-74b078da5299"],
)
@click.argument("operation_id")
@_asking.journal_options
@_told.json_option
def recover(operation_id: str, studio: str | None, key_file: Path | None, project: str | None, as_json: bool) -> None:
    """Look OPERATION_ID up. An allowance that is read later is not given anew."""
    from budgets.rules import identity
    from budgets.sessions.batches import Lookup

    if identity.parse(operation_id) is None:
        raise click.BadParameter("OPERATION_ID is a UUIDv7 in small letters, with hyphens")
    call = Lookup(operation_id)
    trouble = _asking.done(call, _asking.journal(studio, key_file, project))
    found = call.data() or {"items": [], "results": []}
    lines = [f"operation {operation_id}: {call.recovery.standing}"]
    lines += [f"  {one['index']:>4}  {told_of(one)}" for one in found["items"]]
    _asking.show(call, trouble, as_json=as_json, lines=lambda: lines)
    denied = any(not one.get("allowed", True) for one in found["results"])
    raise SystemExit(_asking.DENIED if trouble is None and denied else _asking.exit_of(trouble))
