"""`oz0 plugin inspect`: what a plugin's servers list, and what its functions cost."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from studio.cli import _told
from studio.cli.plugin import _folder

if TYPE_CHECKING:
    from catalog.rules.lint import Costs
    from catalog.rules.plugins import PluginSpec

MOST_SHOWN: Final = 200


@click.command(
    cls=_told.Told,
    short_help="Show what a plugin lists and what that costs.",
    exits={
        _told.Exit.DONE: "all of its servers were listed",
        _told.Exit.UNREADABLE: "the plugin's files cannot be read",
        _told.Exit.NOT_LISTED: "a server could not be listed",
    },
    examples=[
        "oz0 plugin inspect",
        "oz0 plugin inspect shelf --json",
    ],
)
@_folder.folder_argument
@_folder.json_option
def inspect(folder: Path, as_json: bool) -> None:
    """Start the servers of the plugin in FOLDER, keep what they list in oz0-listing.json, and show what it costs."""
    from catalog.rules import listing_file
    from catalog.rules.lint import costs_of

    files, spec = _folder.read(folder, as_json)
    listed, failed = _folder.measured(spec, folder)
    text = listing_file.write(files, listed)
    (folder / listing_file.LISTING_FILE).write_text(text, encoding="utf-8")
    remote = "a remote server: the studio measures it over its connection"
    told = failed | {tool.id: remote for tool in spec.tools if tool.url}
    _show(spec, costs_of(spec, listing_file.read(text.encode())), told, as_json)
    if failed:
        raise SystemExit(_told.Exit.NOT_LISTED)


def _show(spec: "PluginSpec", costs: "Costs", failed: dict[str, str], as_json: bool) -> None:
    from base.visible import visible
    from catalog.rules.budgets import told
    from catalog.rules.estimates import ERROR, METHOD

    if as_json:
        _folder.show_json(
            {
                "plugin": spec.name,
                "method": METHOD,
                "error": ERROR,
                "tokens": costs.tokens,
                "budget": spec.tool_tokens,
                "functions": {cost.label: cost.tokens for cost in costs.functions},
                "agents": {cost.agent: told(cost) for cost in costs.agents},
                "not_listed": failed,
            }
        )
        return
    for cost in sorted(costs.functions, key=lambda cost: -cost.tokens)[:MOST_SHOWN]:
        click.echo(f"{cost.tokens:>8,}  {visible(cost.label, 120)}")
    click.echo(f"{costs.tokens:>8,}  plugin {spec.name}, of {spec.tool_tokens:,}\n")
    for agent in costs.agents:
        over = f"  over budget; to fit, drop {', '.join(one.label for one in agent.drop)}" if agent.over else ""
        more = f"  and more: {', '.join(agent.unmeasured)} not measured here" if agent.unmeasured else ""
        click.echo(f"{agent.tokens:>8,}  agent {agent.agent}, of {agent.budget:,}{over}{more}")
    click.echo(f"\nabout: {METHOD}; {ERROR}")
    for tool, why in failed.items():
        shown = "\n".join(visible(line, 2_000) for line in why.splitlines())
        click.echo(f"not listed: {tool}: {shown}", err=True)
