"""`oz0 import`: the tools somebody has already, from the list their desktop or editor client keeps (RULES C7)."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from studio.cli import _this_studio, _told

if TYPE_CHECKING:
    from catalog.operations.importing import Taken

LONGEST: Final = 4 * 1024 * 1024
WOULD: Final = {"added": "would add", "changed": "would change", "kept": "would keep", "left out": "would leave out"}


@click.command(
    "import",
    cls=_told.Told,
    short_help="Take in the servers of a client's list.",
    exits={
        _told.Exit.DONE: "all were taken in",
        _told.Exit.FAILED: "some were left out, or there is no studio here",
        _told.Exit.UNREADABLE: "the file cannot be read",
    },
    examples=[
        "oz0 import ~/.cursor/mcp.json --dry-run",
        "oz0 import .vscode/mcp.json --agent editor",
        "oz0 import claude_desktop_config.json --json",
    ],
)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--dry-run", is_flag=True, help="Say what would be done and change nothing.")
@click.option("--agent", default=None, metavar="NAME", help="Also make an agent outside that may call all of them.")
@_told.json_option
def import_(file: Path, dry_run: bool, agent: str | None, as_json: bool) -> None:
    """Take the MCP servers listed in FILE into the catalog, a tool for each.

    FILE is a client's own list, with `mcpServers` or `servers`. Values under `env` and `headers` go into the vault; the
    file itself is not changed. Doing it again changes nothing. With `--agent` a client of yours can be connected at
    once: `oz0 connect CLIENT NAME`.
    """
    from catalog.rules.mcp_servers import BadServersFile, read_servers

    try:
        if file.stat().st_size > LONGEST:
            _refuse(f"{file}: is longer than {LONGEST // 2**20} MiB\n  fix: name the list of MCP servers", as_json)
        listed = read_servers(file.name, file.read_text(encoding="utf-8"), os.environ)
    except OSError as error:
        _refuse(f"{file}: {error.strerror}\n  fix: name the client's list of MCP servers", as_json)
    except UnicodeDecodeError:
        with file.open("rb") as opened:
            is_pack = opened.read(2) == b"PK"
        fix = f"a pack is added by `oz0 plugin add {file}`" if is_pack else "save it as UTF-8"
        _refuse(f"{file}: is not UTF-8 text\n  fix: {fix}", as_json)
    except BadServersFile as error:
        _refuse(str(error), as_json)
    _this_studio.ready()
    from catalog.operations.importing import grant, take_in
    from catalog.operations.programs import settled
    from catalog.rules.problems import BadPlugin

    tenant, person = _this_studio.me()
    home, actor = _this_studio.home(), _this_studio.actor(person, "oz0 import")
    found = []
    for server in listed:
        there = settled(server, file=file, environment=os.environ)
        one = take_in(tenant=tenant, server=there, file=file.name, home=home, actor=actor, write=not dry_run)
        found.append(one)
    tools = [one.server.id for one in found if one.done != "left out"]
    if agent is not None and tools and not dry_run:
        try:
            grant(tenant=tenant, agent=agent, tools=tools, home=home, actor=actor)
        except BadPlugin as error:
            _refuse(str(error), as_json)
    if as_json:
        told = {"file": str(file), "dry_run": dry_run, "servers": [_as_json(one) for one in found]}
        click.echo(json.dumps(told | ({"agent": agent} if agent is not None else {})))
    else:
        _show(found, dry_run)
        if agent is not None and tools and not dry_run:
            click.echo(f"the agent {agent} may call all of them: connect a client with `oz0 connect CLIENT {agent}`")
    if any(one.problems for one in found):
        raise SystemExit(_told.Exit.FAILED)


def _refuse(why: str, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"error": why}))
    click.echo(why, err=True)
    raise SystemExit(_told.Exit.UNREADABLE)


def _as_json(one: "Taken") -> dict[str, Any]:
    server = one.server
    return {
        "name": server.name,
        "id": server.id,
        "done": one.done,
        "transport": "http" if server.url else "stdio",
        "variables": sorted(server.env),
        "header": next(iter(server.headers), None),
        "allowed": list(one.allowed),
        "notes": list(server.notes),
        "problems": [
            {"file": at.file, "line": at.line, "key": at.key, "message": at.message, "fix": at.fix}
            for at in one.problems
        ],
    }


def _show(found: "list[Taken]", dry_run: bool) -> None:
    from base.text import visible

    for one in found:
        click.echo(visible(f"{WOULD[one.done] if dry_run else one.done} {_summed_up(one)}", 1_000))
        for note in one.server.notes:
            click.echo(visible(f"  {note}", 1_000))
        for problem in one.problems:
            click.echo("\n".join(f"  {visible(line.strip(), 2_000)}" for line in str(problem).splitlines()), err=True)
    if not found:
        click.echo("the list is empty")
    elif not dry_run and any(one.done != "left out" for one in found):
        click.echo("\na node lists their functions now: see them at /catalog/, and name them in an agent's `functions`")
        if any(one.server.url and one.done == "added" for one in found):
            click.echo("what a remote server says of itself counts once you approved it there")


def _summed_up(one: "Taken") -> str:
    server = one.server
    if one.problems:
        return server.name
    called = server.name if server.name == server.id else f"{server.name} as {server.id}"
    parts = [server.url or server.argv[0]]
    if server.env:
        parts.append(f"{', '.join(sorted(server.env))} in the vault")
    if server.headers:
        parts.append(f"header {', '.join(server.headers)} in the vault")
    if one.allowed:
        parts.append(f"allowed to reach {', '.join(one.allowed)}")
    return f"{called}: {'; '.join(parts)}"
