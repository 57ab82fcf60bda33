"""`oz0 catalog`: every function that this studio's tools list, with its kind, its tokens and what is to be mended."""

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import click

from studio.cli import _this_studio, _told

if TYPE_CHECKING:
    from uuid import UUID

    from catalog.rules.findings import Finding

WIDEST = 48  # characters of a function's name in the table


@click.command(
    cls=_told.Told,
    short_help="List the functions, what they cost and what to mend.",
    exits={_told.Exit.DONE: "listed", _told.Exit.FAILED: "there is no studio here, or no such tool"},
    examples=["oz0 catalog", "oz0 catalog --tool notes", "oz0 catalog --json"],
)
@click.option("--tool", help="Only this tool.")
@_told.json_option
def catalog(tool: str | None, as_json: bool) -> None:
    """List every function of this studio's tools: its kind, its tokens, and what lint found of it."""
    _this_studio.ready(wakes=False)
    tenant, _ = _this_studio.me()
    tools = _tools(tenant)
    if tool is not None:
        if tool not in tools:
            raise click.ClickException(f"there is no tool {tool}; there are: {', '.join(sorted(tools)) or 'none'}")
        tools = {tool: tools[tool]}
    if as_json:
        click.echo(json.dumps({"tools": tools}))
    else:
        _show(tools)


def _tools(tenant: "UUID") -> dict[str, dict[str, Any]]:
    """Each current tool with its functions, by its id; `trouble` says why one could not be listed.

    The findings are those of the page of findings; `linted` is false where nobody looked for any yet.
    """
    from base import db
    from catalog.models import Function, LintReport, Listing, Stage, Tool
    from catalog.queries.finding_list import findings_by_function

    with db.read(tenant):
        there = list(Tool.objects.filter(plugin_version__stage=Stage.CURRENT).order_by("slug"))
        listed = set(Listing.objects.filter(tool__in=there, current=True).values_list("tool_id", flat=True))
        linted = set(LintReport.objects.values_list("plugin_version_id", flat=True))
        rows = list(
            Function.objects.filter(tool__in=there, listing__current=True)
            .only("tool_id", "name", "kind", "tokens")
            .order_by("name")
        )
        findings = findings_by_function()
    of_tool: dict[UUID, list[Function]] = defaultdict(list)
    for row in rows:
        of_tool[row.tool_id].append(row)
    return {
        one.slug: {
            "listed": one.pk in listed,
            "linted": one.plugin_version_id in linted,
            "trouble": one.down_reason,
            "tokens": sum(row.tokens or 0 for row in of_tool[one.pk]),
            "functions": [
                {
                    "name": row.name,
                    "kind": row.kind,
                    "tokens": row.tokens,
                    "findings": [_short(finding) for finding in findings.get((one.slug, row.name), ())],
                }
                for row in of_tool[one.pk]
            ],
            "findings": [_short(finding) for finding in findings.get((one.slug, ""), ())],
        }
        for one in there
    }


def _short(finding: "Finding") -> dict[str, str]:
    return {"code": finding.code, "severity": finding.severity, "message": finding.message, "fix": finding.fix}


def _show(tools: dict[str, dict[str, Any]]) -> None:
    from base.figures import plural
    from base.visible import visible

    names = [f"{tool}.{one['name']}" for tool, found in tools.items() for one in found["functions"]]
    width = min(WIDEST, max((len(visible(name, WIDEST)) for name in names), default=8))
    click.echo(f"{'function':<{width}}  {'kind':<11}  {'tokens':>6}  findings")
    for tool, found in tools.items():
        for one in found["functions"]:
            codes = ", ".join(finding["code"] for finding in one["findings"]) or "-"
            name = visible(f"{tool}.{one['name']}", WIDEST)
            click.echo(f"{name:<{width}}  {one['kind']:<11}  {one['tokens'] or 0:>6,}  {codes}")
    for tool, found in tools.items():
        click.echo(f"\n{visible(tool, 80)}: {plural(len(found['functions']), 'function')}, {found['tokens']:,} tokens")
        for finding in found["findings"]:
            click.echo(f"  {finding['severity']}[{finding['code']}]: {visible(finding['message'], 600)}")
            click.echo(f"    fix: {visible(finding['fix'], 600)}")
        if found["trouble"]:
            click.echo(f"  {'not all of it is' if found['listed'] else 'not'} listed: {visible(found['trouble'], 600)}")
            click.echo("    fix: its page in the catalog has what its server said")
        elif not found["listed"]:
            click.echo("  not listed yet: a node starts its server for that")
        elif not found["linted"]:
            click.echo("  not linted yet: a node does that when it has listed it")
