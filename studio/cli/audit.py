"""`oz0 audit`: check that the audit log holds, and take it out as a file."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO
from uuid import UUID

import click

from studio.cli import Named, _this_studio, _told

if TYPE_CHECKING:
    from tenants.rules.audit_chain import Head, Link, Verdict


class _Unreadable(click.ClickException):
    exit_code = _told.Exit.UNREADABLE


@click.group(cls=Named, examples=["oz0 audit verify", "oz0 audit export --out log.jsonl"])
def audit() -> None:
    """Check the audit log, or take it out as a file."""


@audit.command(
    cls=_told.Told,
    exits={
        _told.Exit.DONE: "all of it holds",
        _told.Exit.FAILED: "something was changed, exchanged or cut off; or there is no studio here",
        _told.Exit.UNREADABLE: "FILE is no such export",
    },
    examples=["oz0 audit verify", "oz0 audit verify --head 1234:9f2c…", "oz0 audit verify log.jsonl"],
)
@click.argument("file", required=False, type=click.File("r", encoding="utf-8"))
@click.option("--head", "kept", default="", help="A head printed before: what was cut off since then is found too.")
@click.option("--workspace", default="", help="Check this workspace alone, by its short name.")
@_told.lines_option
def verify(file: TextIO | None, kept: str, workspace: str, as_json: bool) -> None:
    """Follow each workspace's log, or the exported JSON lines of FILE, from entry to entry.

    Says where it first does not hold. FILE needs no studio.
    """
    from tenants.rules.audit_chain import BadHead, read_head

    try:
        earlier = read_head(kept) if kept else None
    except BadHead as error:
        raise click.BadParameter(str(error), param_hint="--head") from error
    if file is not None:
        found = [(file.name, _of_file(file, earlier))]
    else:
        _this_studio.ready()
        found = _of_studio(workspace, earlier)
    for name, verdict in found:
        click.echo(json.dumps(_object(name, verdict)) if as_json else _said(name, verdict))
    if any(verdict.broken_at for _, verdict in found):
        raise SystemExit(_told.Exit.FAILED)


@audit.command(
    cls=_told.Told,
    exits={_told.Exit.DONE: "it is written", _told.Exit.FAILED: "there is no studio here, or it cannot be written"},
    examples=["oz0 audit export --out log.jsonl", "oz0 audit export --format csv > log.csv"],
)
@click.option("--format", "kind", type=click.Choice(["jsonl", "csv"]), default="jsonl", help="JSON lines, or a table.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="The file to write; else it is printed.")
@click.option("--workspace", default="", help="Whose log, by its short name; else the first workspace's.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON lines; with --out one object that says what was written."
)
def export(kind: str, out: Path | None, workspace: str, as_json: bool) -> None:
    """Take the whole log out, oldest entry first. That it was taken out becomes an entry of it."""
    if as_json and kind == "csv" and out is None:
        raise click.UsageError("--json prints JSON, not a table: leave one of --json and --format csv out")
    _this_studio.ready()
    from tenants.operations import audit as log
    from tenants.queries.audit import AuditFilter
    from tenants.views.audit import as_csv, as_lines

    first, person = _this_studio.me()
    tenant = _named(workspace)[0][1] if workspace else first
    actor = _this_studio.actor(person, "oz0 audit export")
    links = log.export(tenant=tenant, actor=actor, kind=kind, wanted=AuditFilter())
    lines = as_csv(links) if kind == "csv" else as_lines(links)
    if out is None:
        for line in lines:
            click.echo(line, nl=False)
        return
    with out.open("w", encoding="utf-8", newline="") as file:
        file.writelines(lines)
    if as_json:
        click.echo(json.dumps({"file": str(out), "format": kind}))


def _of_studio(workspace: str, earlier: "Head | None") -> "list[tuple[str, Verdict]]":
    from tenants.operations import audit as log

    found = _named(workspace)
    if earlier is not None and len(found) > 1:
        raise click.UsageError("--head is of one workspace: name it with --workspace")
    return [(slug, log.verify(tenant, earlier=earlier)) for slug, tenant in found]


def _named(workspace: str) -> list[tuple[str, UUID]]:
    """Every workspace, or the one of this name."""
    from base import db
    from tenants.models import Tenant

    with db.sweep():
        every = list(Tenant.objects.order_by("slug").values_list("slug", "pk"))
    found = [one for one in every if not workspace or one[0] == workspace]
    if not found:
        known = ", ".join(slug for slug, _ in every) or "none"
        raise click.BadParameter(f"there is no workspace {workspace!r}; there are: {known}", param_hint="--workspace")
    return found


def _of_file(file: TextIO, earlier: "Head | None") -> "Verdict":
    from tenants.rules.audit_chain import Head, Verdict, check

    links = _links(file)
    first = next(links, None)
    if first is None:
        return Verdict(0, Head(0, ""))

    def every() -> "Iterator[Link]":
        yield first
        yield from links

    return check(every(), earlier=earlier, first=first.seq)


def _links(file: TextIO) -> "Iterator[Link]":
    from tenants.rules.audit_chain import FIELDS, Link

    for number, line in enumerate(file, 1):
        try:
            said: dict[str, Any] = json.loads(line)
            link = Link({name: said[name] for name in FIELDS}, said["hash"])
            link.seq  # noqa: B018 - it must be a number
        except (ValueError, KeyError, TypeError) as error:
            raise _Unreadable(
                f"{file.name}, line {number} is no entry of an exported audit log ({error!r})."
            ) from error
        yield link


def _said(name: str, verdict: "Verdict") -> str:
    from base.figures import plural

    if verdict.broken_at is not None:
        before = (
            f"{plural(verdict.entries, 'entry', 'entries')} before it {'holds' if verdict.entries == 1 else 'hold'}"
        )
        return f"{name}: entry {verdict.broken_at} does not hold: {verdict.why}. The {before}."
    if not verdict.entries:
        return f"{name}: no entry yet."
    return f"{name}: {plural(verdict.entries, 'entry holds', 'entries hold')}. Head {verdict.head}"


def _object(name: str, verdict: "Verdict") -> dict[str, Any]:
    return {
        "log": name,
        "holds": verdict.broken_at is None,
        "entries": verdict.entries,
        "head": str(verdict.head) if verdict.entries else None,
        "broken_at": verdict.broken_at,
        "why": verdict.why or None,
    }
