"""`oz0 plugin test`: everything that can be seen of a plugin by starting its servers, and with --drill by faults."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from studio.cli.plugin import _folder, _report

if TYPE_CHECKING:
    from catalog.rules.findings import Finding
    from catalog.rules.lint_reports import Report


@click.command()
@_folder.folder_argument
@_report.shape_option
@_report.json_option
@_report.strict_option
def test(folder: Path, shape: str, strict: bool) -> None:
    """Start the servers of the plugin in FOLDER and check what they list: names, hints, schemas, budgets, manual.

    The listing is kept in oz0-listing.json, as `oz0 plugin inspect` keeps it, and everything that lint finds is found.

    Exit code 0: clean, or only warnings; 1: errors; 2: a wrong call; 3: a server could not be listed.

    \b
    Examples:
      oz0 plugin test
      oz0 plugin test shelf --strict
      oz0 plugin test shelf --format junit > test.xml
    """
    if not folder.is_dir():
        raise click.BadParameter(f"{folder}: there is no such folder; name the one that holds oz0-plugin.yaml")
    report = tested(folder, strict)
    _report.show(report, shape)
    raise SystemExit(report.exit)


def tested(folder: Path, strict: bool) -> "Report":
    """Measure the plugin's servers, keep the listing, and lint by it."""
    from base import folders
    from catalog.rules import listing_file
    from catalog.rules.lint_reports import TEST, Report
    from catalog.rules.plugins import read_plugin
    from catalog.rules.problems import BadPlugin

    found: list[Finding] = []
    try:
        files = dict(folders.files_of(folder))
        spec = read_plugin(files)
    except folders.BadFolder as error:
        raise click.BadParameter(str(error)) from error
    except BadPlugin:
        name, found = _report.linted(files)
    else:
        from catalog.rules.lint import not_taken

        listed, failed = _folder.measured(spec, folder)
        text = listing_file.write(files, listed)
        (folder / listing_file.LISTING_FILE).write_text(text, encoding="utf-8")
        name, found = _report.linted({**files, listing_file.LISTING_FILE: text.encode()})
        found = not_taken(found, listed, failed)
    base = f"{folder.resolve().as_uri()}/"
    return Report(name, tuple(found), strict=strict, version=_folder.version(), base=base, name=TEST)
