"""`oz0 plugin pack`: a plugin as one file, the same wherever it is made, for a studio or an index to take."""

import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from studio.cli import _told
from studio.cli.plugin import _folder, _report

if TYPE_CHECKING:
    from catalog.rules.findings import Finding


@click.command(
    cls=_told.Told,
    short_help="Make a plugin one file.",
    exits={
        _told.Exit.DONE: "packed",
        _told.Exit.FAILED: "there is something to mend, and nothing was written",
        _told.Exit.UNREADABLE: "nothing wrong was found, but a server of it was not measured; nothing was written",
    },
    examples=["oz0 plugin pack", "oz0 plugin pack shelf -o dist/shelf.oz0.zip", "oz0 plugin pack shelf --json"],
)
@_folder.folder_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write; NAME-VERSION.oz0.zip in this folder without it.",
)
@_report.strict_option
@_folder.json_option
def pack(folder: Path, output: Path | None, strict: bool, as_json: bool) -> None:
    """Pack the plugin in FOLDER into one file.

    The same files give the same bytes on every machine, so whoever has the digest knows what is inside. Hidden files,
    caches and what looks like a secret are left out, and named. What lint calls an error is not packed, nor is a name
    that some machine cannot hold.
    """
    from base import folders
    from catalog.rules.lint_reports import Exit, Report
    from catalog.rules.packs import parted

    if not folder.is_dir():
        raise click.BadParameter(f"{folder}: there is no such folder; name the one that holds oz0-plugin.yaml")
    try:
        looked = folders.look(folder)
    except folders.BadFolder as error:
        _end({"error": str(error), "exit": Exit.FOUND}, str(error), as_json)
    files, secret = parted(looked.files)
    found, spec = _findings(files)
    report = Report(spec.name if spec else "", tuple(found), strict=strict, name="oz0 plugin pack")
    code = report.exit
    if code is Exit.NOT_MEASURED and spec is not None and not any(tool.argv for tool in spec.tools):
        code = Exit.CLEAN  # it has no server of its own, so there is nothing to measure
        report = Report(spec.name, tuple(one for one in found if report.fails(one)), strict=strict, name=report.name)
    left_out = {**dict.fromkeys(secret, "looks like a secret"), **looked.passed_over}
    if code is not Exit.CLEAN or spec is None:
        told = {"plugin": report.plugin, "left_out": left_out, "exit": int(code or Exit.FOUND)}
        if as_json:
            _end({**told, "findings": [one.as_json() for one in found]}, "", as_json)
        _report.show(report, "text")
        click.echo("nothing was packed", err=True)
        raise SystemExit(code or Exit.FOUND)
    from catalog.rules.packs import file_name
    from catalog.rules.packs import pack as packed

    place = output if output is not None else Path(file_name(spec.name, spec.version))
    size, digest = _write(packed(files), place)
    if as_json:
        _folder.show_json(
            {
                "plugin": spec.name,
                "version": spec.version,
                "file": str(place),
                "bytes": size,
                "sha256": digest,
                "digest": spec.digest,
                "files": {path: len(content) for path, content in files.items()},
                "left_out": left_out,
                "warnings": report.warnings,
                "findings": [one.as_json() for one in report.findings],
                "exit": 0,
            }
        )
        return
    _tell(place, spec.name, spec.version, files, left_out)
    click.echo(f"digest  {spec.digest}")
    click.echo(f"sha256  {digest}")
    for finding in report.findings:
        click.echo(_report.lines(str(finding)), err=True)


def _findings(files: "dict[str, bytes]") -> "tuple[list[Finding], Any]":
    """Everything to mend before these files are packed, and the plugin they are; None when they cannot be read."""
    from catalog.rules.lint import unreadable
    from catalog.rules.packs import unfit
    from catalog.rules.plugins import read_plugin
    from catalog.rules.problems import BadPlugin

    misnamed = unreadable(unfit(files))
    try:
        spec = read_plugin(files)
    except BadPlugin as error:
        return [*misnamed, *unreadable(error.problems)], None
    return [*misnamed, *_report.linted(files)[1]], spec


def _write(pieces: Iterator[bytes], place: Path) -> tuple[int, str]:
    """Write the pack whole or not at all; its size and SHA-256."""
    size, digest = 0, hashlib.sha256()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, building = tempfile.mkstemp(dir=place.parent, prefix=".", suffix=".part")
    except OSError as error:
        raise click.BadParameter(f"{place}: {error.strerror}; name a file that can be written with -o") from error
    try:
        with os.fdopen(handle, "wb") as file:
            for piece in pieces:
                size += file.write(piece)
                digest.update(piece)
        mask = os.umask(0)
        os.umask(mask)
        Path(building).chmod(0o666 & ~mask)
        Path(building).replace(place)
    except BaseException:
        Path(building).unlink(missing_ok=True)
        raise
    return size, digest.hexdigest()


def _tell(place: Path, name: str, version: str, files: "dict[str, bytes]", left_out: "dict[str, str]") -> None:
    from base.figures import plural, size
    from base.visible import visible

    whole = size(sum(map(len, files.values())))
    click.echo(f"packed {name} {version} to {visible(str(place), 400)}: {plural(len(files), 'file')}, {whole}")
    for path, why in left_out.items():
        click.echo(f"left out {visible(path, 200)}: {why}")


def _end(told: dict[str, Any], said: str, as_json: bool) -> Any:
    if as_json:
        _folder.show_json(told)
    if said:
        click.echo(_report.lines(said), err=True)
    raise SystemExit(told["exit"])
