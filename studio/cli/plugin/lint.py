"""`oz0 plugin lint`: what is to be mended in a plugin, by its files alone."""

from pathlib import Path

import click

from studio.cli import _told
from studio.cli.plugin import _folder, _report


@click.command(
    cls=_told.Told,
    short_help="Check a plugin by its files alone.",
    exits={
        _told.Exit.DONE: "clean, or only warnings",
        _told.Exit.FAILED: "errors; with --strict also warnings",
        _told.Exit.UNREADABLE: "nothing wrong was found, and there is no listing to check, or it is damaged",
    },
    examples=[
        "oz0 plugin lint",
        "oz0 plugin lint shelf --strict",
        "oz0 plugin lint shelf --format sarif > lint.sarif",
    ],
)
@_folder.folder_argument
@_report.shape_option
@_report.json_option
@_report.strict_option
def lint(folder: Path, shape: str, strict: bool) -> None:
    """Check the plugin in FOLDER by its files and its oz0-listing.json; no server is started."""
    from base import folders
    from catalog.rules.lint_reports import Report

    if not folder.is_dir():
        raise click.BadParameter(f"{folder}: there is no such folder; name the one that holds oz0-plugin.yaml")
    try:
        name, found = _report.linted(dict(folders.files_of(folder)))
    except folders.BadFolder as error:
        raise click.BadParameter(str(error)) from error
    base = f"{folder.resolve().as_uri()}/"
    report = Report(name, tuple(found), strict=strict, version=_folder.version(), base=base)
    _report.show(report, shape)
    raise SystemExit(report.exit)
