"""How findings are shown: for a person, and in the shapes that programs read."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from studio.cli.plugin import _folder

if TYPE_CHECKING:
    from catalog.rules.bearing import Bearing
    from catalog.rules.findings import Finding
    from catalog.rules.lint_reports import Report
    from jobs.rules.drills import Drilled

shape_option = click.option(
    "--format",
    "shape",
    type=click.Choice(["text", "json", "sarif", "junit"]),
    default="text",
    help="text for a person, json for a program, sarif (2.1.0) for code scanning, junit for a test report.",
)
json_option = click.option("--json", "shape", flag_value="json", help="The same as --format json.")
strict_option = click.option("--strict", is_flag=True, help="Count warnings as errors.")


def linted(files: dict[str, bytes]) -> "tuple[str, list[Finding]]":
    """The plugin's name, empty when it cannot be read, and every finding."""
    from catalog.rules import lint as check
    from catalog.rules.plugins import read_plugin
    from catalog.rules.problems import BadPlugin

    try:
        spec = read_plugin(files)
    except BadPlugin as error:
        return "", check.unreadable(error.problems)
    return spec.name, check.lint_files(spec, files)


def show(report: "Report", shape: str, borne: "Sequence[Bearing]" = (), drilled: "Drilled | None" = None) -> None:
    """Print it. What is not ours to escape is shown with its hidden characters visible; JSON escapes them itself."""
    from base.figures import plural
    from catalog.rules import bearing, lint_reports

    match shape:
        case "json":
            told = lint_reports.as_json(report)
            if report.name == lint_reports.TEST:
                told["malformed"] = [one.as_json() for one in borne]
            _folder.show_json(
                told if drilled is None else {**told, "exit": worst(report, drilled), "drill": drilled.as_json()}
            )
        case "sarif":
            click.echo(json.dumps(lint_reports.as_sarif(visible(report)), indent=2))
        case "junit":
            click.echo(_junit(report, borne, drilled), nl=False)
        case _:
            for finding in visible(report).findings:
                click.echo(str(finding))
            for line in bearing.told(borne):
                click.echo(lines(line))
            click.echo(f"{plural(report.errors, 'error')}, {plural(report.warnings, 'warning')}")
            if drilled is not None:
                _show_drill(drilled)


def write_junit(report: "Report", borne: "Sequence[Bearing]", drilled: "Drilled | None", file: Path) -> None:
    """The same as JUnit XML, in a file."""
    try:
        file.write_text(_junit(report, borne, drilled), encoding="utf-8")
    except OSError as error:
        raise click.BadParameter(f"{file} cannot be written: {error.strerror}", param_hint="--junit") from error


def worst(report: "Report", drilled: "Drilled | None") -> int:
    """The exit code of both: what was found decides before what could not be measured."""
    codes = {int(report.exit), int(drilled.exit) if drilled is not None else 0}
    return next((code for code in (1, 3) if code in codes), 0)


def _junit(report: "Report", borne: "Sequence[Bearing]", drilled: "Drilled | None") -> str:
    from catalog.rules import lint_reports
    from jobs.rules.drill_reports import suite

    more = [lint_reports.as_suite(borne)] if borne else []
    if drilled is not None:
        more.append(suite(_visible_drill(drilled)))
    return lint_reports.as_junit(visible(report), *more)


def _show_drill(drilled: "Drilled") -> None:
    from jobs.rules.drill_reports import COLOURS, table

    for verdict, line in table(_visible_drill(drilled)):
        colour = COLOURS.get(verdict) if verdict is not None and "NO_COLOR" not in os.environ else None
        click.echo(click.style(line, fg=colour) if colour else line)


def _visible_drill(drilled: "Drilled") -> "Drilled":
    from dataclasses import replace

    shown = [replace(one, said=lines(one.said), control=lines(one.control)) for one in drilled.findings]
    return replace(drilled, findings=tuple(shown))


def visible(report: "Report") -> "Report":
    """The same with every hidden character shown."""
    from dataclasses import replace

    shown = [
        replace(one, key=lines(one.key), message=lines(one.message), fix=lines(one.fix)) for one in report.findings
    ]
    return replace(report, findings=tuple(shown))


def lines(text: str) -> str:
    """Text of several lines with every hidden character shown."""
    from base.visible import visible as shown

    return "\n".join(shown(line, 4_000) for line in text.splitlines())
