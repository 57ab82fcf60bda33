"""`oz0 plugin test`: everything that can be seen of a plugin by starting its servers, and with --drill by faults."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from studio.cli import _told
from studio.cli.plugin import _folder, _report

if TYPE_CHECKING:
    from catalog.rules.bearing import Bearing
    from catalog.rules.findings import Finding
    from catalog.rules.lint_reports import Report
    from jobs.rules.drills import Drilled


def _listed(ctx: click.Context, _: click.Parameter, begun: str) -> list[str]:
    """What a shell may complete: the functions in the folder's listing, as far as it can be read."""
    file = Path(ctx.params.get("folder") or ".") / "oz0-listing.json"
    try:
        tools = json.loads(file.read_bytes())["tools"].items()
        names = [f"{tool}.{one['name']}" for tool, found in tools for one in found["functions"]]
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return []
    return [name for name in names if name.startswith(begun)]


@click.command(
    cls=_told.Told,
    short_help="Start a plugin's servers and check them.",
    exits={
        _told.Exit.DONE: "clean, or only warnings",
        _told.Exit.FAILED: "errors, or a function that does not keep its word",
        _told.Exit.UNREADABLE: "a server could not be listed, or a fault could not be measured",
    },
    examples=[
        "oz0 plugin test",
        "oz0 plugin test shelf --strict",
        "oz0 plugin test shelf --drill --junit drill.xml",
        "oz0 plugin test shelf --drill --only shelf.add_entry",
    ],
)
@_folder.folder_argument
@_report.shape_option
@_report.json_option
@_report.strict_option
@click.option("--drill", "drilling", is_flag=True, help="Put faults to every function too; takes a minute or two.")
@click.option(
    "--only",
    multiple=True,
    metavar="TOOL.FUNCTION",
    shell_complete=_listed,
    help="With --drill: this function; may be repeated.",
)
@click.option(
    "--junit", type=click.Path(path_type=Path, dir_okay=False), help="Write the report as JUnit XML to this file too."
)
def test(folder: Path, shape: str, strict: bool, drilling: bool, only: tuple[str, ...], junit: Path | None) -> None:
    """Start the servers of the plugin in FOLDER and check what they list: names, hints, schemas, budgets, manual.

    The listing is kept in oz0-listing.json, as `oz0 plugin inspect` keeps it, and everything that lint finds is found.
    Each server is then sent some seventy lines that no client should send, which it has to bear, and a call of no
    function with what a studio adds to its _meta. No function is called.

    --drill then puts faults to each function, by what it declares: the same call again under its key, lost replies,
    killed servers, cancels, a busy service. Each fault has a control, which shows that a breach would have been seen.
    oz0-drill.yaml says how the functions are called and where their effects are seen.
    """
    if not folder.is_dir():
        raise click.BadParameter(f"{folder}: there is no such folder; name the one that holds oz0-plugin.yaml")
    if only and not drilling:
        raise click.UsageError("--only names a function to drill: say --drill too")
    if drilling and shape == "sarif":
        raise click.UsageError("a drill has no lines of code to tell of: choose text, json or junit")
    report, borne = tested(folder, strict)
    if drilling and report.spelled and shape == "text":
        click.echo("drilling: calls are killed, cut off and repeated, which takes a minute or two", err=True)
    drilled = _drilled(folder, only) if drilling and report.spelled else None
    if junit is not None:
        _report.write_junit(report, borne, drilled, junit)
    _report.show(report, shape, borne, drilled)
    raise SystemExit(_report.worst(report, drilled))


def tested(folder: Path, strict: bool) -> "tuple[Report, list[Bearing]]":
    """Measure the plugin's servers, keep the listing, lint by it, and send them what no client should."""
    from base import folders
    from catalog.rules import listing_file
    from catalog.rules.bearing import findings
    from catalog.rules.findings import Severity
    from catalog.rules.lint import not_taken
    from catalog.rules.lint_reports import TEST, Report
    from catalog.rules.places import placed
    from catalog.rules.plugins import read_plugin
    from catalog.rules.problems import BadPlugin

    found: list[Finding] = []
    borne: list[Bearing] = []
    try:
        files = dict(folders.files_of(folder))
        spec = read_plugin(files)
    except folders.BadFolder as error:
        raise click.BadParameter(str(error)) from error
    except BadPlugin:
        name, found = _report.linted(files)
    else:
        listed, failed = _folder.measured(spec, folder)
        text = listing_file.write(files, listed)
        (folder / listing_file.LISTING_FILE).write_text(text, encoding="utf-8")
        name, found = _report.linted({**files, listing_file.LISTING_FILE: text.encode()})
        borne = _folder.borne(spec, folder, listed)
        found = placed([*not_taken(found, listed, failed), *findings(borne)], files)
        found.sort(key=lambda one: one.severity != Severity.ERROR)
    base = f"{folder.resolve().as_uri()}/"
    report = Report(name, tuple(found), strict=strict, version=_folder.version(), base=base, name=TEST)
    return report, borne


def _drilled(folder: Path, only: tuple[str, ...]) -> "Drilled":
    from base import folders
    from catalog.rules.drill_file import read_drill
    from catalog.rules.plugins import read_plugin
    from jobs.drills import drill

    files = dict(folders.files_of(folder))
    spec = read_plugin(files)
    return drill(spec, read_drill(spec, files), files, only=only)
