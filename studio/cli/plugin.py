"""`oz0 plugin`: what a plugin's functions cost and whether that fits, on an author's machine; and adding it here."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

if TYPE_CHECKING:
    from catalog.rules.findings import Finding
    from catalog.rules.lint import Costs
    from catalog.rules.lint_reports import Report
    from catalog.rules.manifest import ToolSpec
    from catalog.rules.plugins import PluginSpec
    from catalog.rules.servers import MeasuredListing

UNREADABLE, NOT_LISTED = 3, 4  # exit codes of inspect; 2 is a wrong call of the command
MOST_SHOWN: Final = 200

folder_argument = click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=".")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@click.group()
def plugin() -> None:
    """Look at a plugin's folder: what its functions cost, and what to fix. Add it to this studio."""


@plugin.command()
@folder_argument
@json_option
def add(folder: Path, as_json: bool) -> None:
    """Add the plugin in FOLDER to the studio of this state folder, or make its changed files the current version.

    The files are copied, so the folder may change or go afterwards. The same files again change nothing.

    Exit code 0: it is in the catalog; 3: its files cannot be read or taken.
    """
    from base import folders
    from catalog.rules.problems import BadPlugin
    from studio.cli import _this_studio

    _read(folder, as_json)  # a mistake in the files is told also where no studio runs
    _this_studio.ready()
    from catalog.operations.plugins import register

    tenant, person = _this_studio.me()
    actor = _this_studio.actor(person, "oz0 plugin add")
    try:
        found = register(tenant=tenant, folder=folder, home=_this_studio.home(), actor=actor)
    except (folders.BadFolder, BadPlugin) as error:
        _refuse(str(error), as_json)
    done = "added" if found.fresh else "kept"
    if as_json:
        _print({"plugin": found.name, "digest": found.digest, "done": done})
    else:
        click.echo(f"{done} {found.name} {found.digest[:12]}")


@plugin.command()
@folder_argument
@json_option
def inspect(folder: Path, as_json: bool) -> None:
    """Start the servers of the plugin in FOLDER, keep what they list in oz0-listing.json, and show what it costs.

    Exit code 0: all were listed; 3: the plugin's files cannot be read; 4: a server could not be listed.
    """
    from catalog.rules import listing_file
    from catalog.rules.lint import costs_of

    files, spec = _read(folder, as_json)
    measured, failed = {}, {}
    for tool in spec.tools:
        if tool.url:
            failed[tool.id] = "a remote server: the studio measures it over its connection"
            continue
        found = _measured(spec, tool, folder)
        if isinstance(found, str):
            failed[tool.id] = found
        else:
            measured[tool.id] = found
    text = listing_file.write(files, measured)
    (folder / listing_file.LISTING_FILE).write_text(text, encoding="utf-8")
    costs = costs_of(spec, listing_file.read(text.encode()))
    _show_costs(spec, costs, failed, as_json)
    if any(not tool.url for tool in spec.tools if tool.id in failed):
        raise SystemExit(NOT_LISTED)


@plugin.command()
@folder_argument
@click.option(
    "--format",
    "shape",
    type=click.Choice(["text", "json", "sarif", "junit"]),
    default="text",
    help="text for a person, json for a program, sarif (2.1.0) for code scanning, junit for a test report.",
)
@click.option("--json", "shape", flag_value="json", help="The same as --format json.")
@click.option("--strict", is_flag=True, help="Count warnings as errors.")
def lint(folder: Path, shape: str, strict: bool) -> None:
    """Check the plugin in FOLDER by its files and its oz0-listing.json; no server is started.

    Exit code 0: clean, or only warnings; 1: errors; 2: a wrong call; 3: there is no listing to check, or it is damaged.
    """
    from base import folders
    from catalog.rules.lint_reports import Report

    if not folder.is_dir():
        raise click.BadParameter(f"{folder}: there is no such folder; name the one that holds oz0-plugin.yaml")
    try:
        name, found = _linted(dict(folders.files_of(folder)))
    except folders.BadFolder as error:
        raise click.BadParameter(str(error)) from error
    base = f"{folder.resolve().as_uri()}/"
    report = Report(name, tuple(found), strict=strict, version=_version(), base=base)
    _show_report(report, shape)
    raise SystemExit(report.exit)


def _version() -> str:
    """This program's, empty when it runs from its sources without being installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("oz0-studio")
    except PackageNotFoundError:
        return ""


def _linted(files: dict[str, bytes]) -> "tuple[str, list[Finding]]":
    """The plugin's name, empty when it cannot be read, and every finding."""
    from catalog.rules import lint as check
    from catalog.rules import listing_file
    from catalog.rules.plugins import read_plugin
    from catalog.rules.problems import BadPlugin

    try:
        spec = read_plugin(files)
    except BadPlugin as error:
        return "", check.unreadable(error.problems)
    content = files.get(listing_file.LISTING_FILE)
    try:
        listing = listing_file.read(content) if content is not None else None
    except listing_file.BadListingFile as error:
        return spec.name, [check.damaged(str(error))]
    return spec.name, check.lint(spec, files, listing)


def _read(folder: Path, as_json: bool) -> "tuple[dict[str, bytes], PluginSpec]":
    from base import folders
    from catalog.rules.plugins import read_plugin
    from catalog.rules.problems import BadPlugin

    try:
        files = dict(folders.files_of(folder))
        return files, read_plugin(files)
    except (folders.BadFolder, BadPlugin) as error:
        _refuse(str(error), as_json)


def _refuse(why: str, as_json: bool) -> NoReturn:
    """End with the code of files that cannot be read."""
    if as_json:
        _print({"error": why})
    else:
        click.echo(why, err=True)
    raise SystemExit(UNREADABLE)


def _measured(spec: "PluginSpec", tool: "ToolSpec", folder: Path) -> "MeasuredListing | str":
    """What the tool's server lists; a sentence when it cannot be listed. It runs on a state folder of its own."""
    import sys
    import tempfile

    from base import ids
    from catalog.rules.manifest import command
    from catalog.rules.servers import ServerSpec
    from catalog.sessions import NotUp, list_once

    with tempfile.TemporaryDirectory(prefix="oz0-inspect-") as home:
        server = ServerSpec(
            tenant=ids.new(),
            tool_id=ids.new(),
            tool=tool.id,
            version=spec.digest,
            credential_version="",
            argv=command(tool.argv, python=sys.executable, home=home),
            cwd=str(folder.resolve()),
            startup=tool.startup,
            slots=1,
            sandbox=tool.sandbox,
        )
        try:
            return list_once(server)
        except NotUp as error:
            return str(error)


def _show_costs(spec: "PluginSpec", costs: "Costs", failed: dict[str, str], as_json: bool) -> None:
    from base.text import visible
    from catalog.rules.budgets import told
    from catalog.rules.estimates import ERROR, METHOD

    if as_json:
        _print(
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


def _show_report(report: "Report", shape: str) -> None:
    """Print it. What is not ours to escape is shown with its hidden characters visible; JSON escapes them itself."""
    from base.figures import plural
    from catalog.rules import lint_reports

    match shape:
        case "json":
            _print(lint_reports.as_json(report))
        case "sarif":
            click.echo(json.dumps(lint_reports.as_sarif(_visible(report)), indent=2))
        case "junit":
            click.echo(lint_reports.as_junit(_visible(report)), nl=False)
        case _:
            for finding in _visible(report).findings:
                click.echo(str(finding))
            click.echo(f"{plural(report.errors, 'error')}, {plural(report.warnings, 'warning')}")


def _visible(report: "Report") -> "Report":
    from dataclasses import replace

    from base.text import visible

    def lines(text: str) -> str:
        return "\n".join(visible(line, 4_000) for line in text.splitlines())

    shown = [
        replace(one, key=visible(one.key, 400), message=lines(one.message), fix=lines(one.fix))
        for one in report.findings
    ]
    return replace(report, findings=tuple(shown))


def _print(value: dict[str, Any]) -> None:
    click.echo(json.dumps(value))
