"""`oz0 budget usage`: every recorded call, to the end of the list."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from studio.cli import _told
from studio.cli.budget import _asking

if TYPE_CHECKING:
    from budgets.sessions.credentials import Credentials


@click.command(
    cls=_told.Told,
    exits=_asking.EXITS,
    examples=["oz0 budget usage --status budget_denied", "oz0 budget usage --run nightly --json > usage.jsonl"],
)
@click.option("--run", help="Only of the run of this name.")
@click.option("--status", type=click.Choice(["success", "error", "budget_denied"]), help="Only these.")
@_asking.journal_options
@_told.lines_option
def usage(
    run: str | None, status: str | None, studio: str | None, key_file: Path | None, project: str | None, as_json: bool
) -> None:
    """List recorded calls, the newest first, all of them."""
    from budgets.sessions.reading import OnePage, Pages
    from budgets.sessions.standalone import LONGEST_CURSOR

    asked = _asking.journal(studio, key_file, project)
    wanted = {"status": status} if status else {}
    if run is not None:
        wanted["run_id"] = _run_id(run, asked, as_json=as_json)
    pages = Pages("usage", LONGEST_CURSOR, wanted=wanted)
    while not pages.whole:
        call = OnePage(pages)
        if trouble := _asking.done(call, asked):
            call.recovery.cursor = pages.cursor
            _asking.show(call, trouble, as_json=as_json, lines=list)
            raise SystemExit(_asking.exit_of(trouble))
        for row in call.rows:
            click.echo(json.dumps(row, ensure_ascii=False) if as_json else _line(row))


def _run_id(name: str, asked: "tuple[str, Credentials]", *, as_json: bool) -> str:
    from budgets.sessions.reading import Search
    from budgets.sessions.standalone import LONGEST_CURSOR

    call = Search(name, LONGEST_CURSOR)
    if trouble := _asking.done(call, asked):
        _asking.show(call, trouble, as_json=as_json, lines=list)
        raise SystemExit(_asking.exit_of(trouble))
    return str(call.one["run_id"])


def _line(row: Mapping[str, Any]) -> str:
    from base.visible import visible

    words = [str(row.get(name) or "") for name in ("timestamp", "status", "model", "call_id")]
    tokens = f"{row.get('input_tokens', 0)} in, {row.get('output_tokens', 0)} out"
    cost = f"  {row['cost']} USD" if row.get("cost") else ""
    return visible(f"{words[0]}  {words[1]:<13}  {words[2]}  {tokens}{cost}  {words[3]}", 1_000)
