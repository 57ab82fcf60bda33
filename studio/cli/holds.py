"""`oz0 holds`: what waits for a person. Answers are given on the page, never here (RULES A5)."""

import json
from typing import Any

import click

from studio.cli import _this_studio, _told


@click.command(
    cls=_told.Told,
    exits={
        _told.Exit.DONE: "listed; with --quiet: nothing waits",
        _told.Exit.FAILED: "there is no studio here; with --quiet: something waits",
    },
    examples=["oz0 holds", "oz0 holds --kind unknown --json", "oz0 holds --quiet || echo somebody is waited for"],
)
@click.option(
    "--kind", type=click.Choice(["approve", "retry", "unknown", "session"]), help="Only questions of this kind."
)
@_told.json_option
@click.option("--quiet", is_flag=True, help="Print nothing; the exit code is 1 while something waits.")
def holds(kind: str | None, as_json: bool, quiet: bool) -> None:
    """List the open questions, the oldest first, without their arguments; answers are given on the page."""
    _this_studio.ready()
    from approvals.queries.open_holds import open_holds
    from base import ids

    tenant, _ = _this_studio.me()
    found = open_holds(tenant, kind=kind or "")
    if quiet:
        raise SystemExit(_told.Exit.FAILED if found["waiting"] else _told.Exit.DONE)
    rows = found["holds"]
    while found["next"] and len(rows) < 1_000:
        more = open_holds(tenant, kind=kind or "", after=ids.parse(ids.HOLD, found["next"]))
        rows += more["holds"]
        found["next"] = more["next"]
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
        return
    for row in rows:
        click.echo(_line(row))
    if not rows:
        click.echo("Nothing waits for a person.")


def _line(row: dict[str, Any]) -> str:
    from base.figures import duration

    waits = duration(row["waiting_seconds"])
    return f"{waits:>10}  {row['kind']:<8} {row['function']}  agent {row['agent']}  {row['url']}"
