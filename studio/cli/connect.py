"""`oz0 connect`: what a client of somebody's own needs to call an agent's tools through the gateway (RULES G4)."""

import json
import secrets
from typing import Final

import click

from studio.cli import _this_studio, _told

CLIENTS: Final = ("claude-code", "claude-desktop", "cursor", "vscode", "python")


@click.command(
    cls=_told.Told,
    exits={
        _told.Exit.DONE: "printed, and the token was made",
        _told.Exit.FAILED: "there is no such agent, or no studio here; no token was made",
    },
    examples=[
        "oz0 connect claude-code note-taker",
        "oz0 connect cursor note-taker > .cursor/mcp.json",
        "oz0 connect python note-taker > ask.py && python ask.py",
    ],
)
@click.argument("client", type=click.Choice(CLIENTS))
@click.argument("agent")
@click.option("--name", default=None, help="What to call the token; the client's name when left out.")
@click.option("--days", type=click.Choice(["7", "30", "90", "365", "never"]), default="90", help="How long it counts.")
@click.option(
    "--patience", default=45, metavar="SECONDS", help="After which a call that is not over is told as pending (45)."
)
@click.option("--address", default=None, help="Where the client reaches the studio; OZ0_URL when left out.")
@_told.json_option
def connect(
    client: str, agent: str, name: str | None, days: str, patience: int, address: str | None, as_json: bool
) -> None:
    """Make a token for AGENT's tools and print it as CLIENT's configuration.

    Standard output is the configuration and nothing else. The token is in it and is shown only this once; it is listed,
    and revoked, under Settings, Tokens. It calls tools and never answers a question.
    """
    _this_studio.ready(wakes=False)
    from django.conf import settings

    from base import db
    from catalog.queries.functions import current_agent
    from tenants.operations.tokens import BadToken, make
    from tenants.queries.seats import seats_of
    from tenants.rules.bearers import DIGITS, DRAWN, Scope, written

    tenant, person = _this_studio.me()
    with db.read(tenant):
        if current_agent(agent) is None:
            raise click.ClickException(f"there is no agent named {agent!r}: the page /catalog/agents/ lists them")
    token = written("".join(secrets.choice(DIGITS) for _ in range(DRAWN)))
    try:
        make(
            seat=next(seat for seat in seats_of(person) if seat.tenant == tenant),
            token=token,
            name=name or client,
            scopes=[Scope.CALL],
            agent=agent,
            days=None if days == "never" else int(days),
            actor=_this_studio.actor(person, "oz0 connect"),
            patience=patience,
        )
    except BadToken as error:
        raise click.ClickException(str(error)) from error
    url = f"{(address or settings.OZ0_URL).rstrip('/')}/mcp/"
    told = configured(client, url=url, token=token)
    if as_json:
        click.echo(json.dumps({"client": client, "agent": agent, "url": url, "token": token, "configuration": told}))
        return
    click.echo(told)
    click.echo(PLACES[client], err=True)


PLACES: Final = {
    "claude-code": "Save it as .mcp.json in your project, or add its server with `claude mcp add-json`.",
    "claude-desktop": "Merge it into claude_desktop_config.json. It starts npx, which needs Node.js.",
    "cursor": "Save it as .cursor/mcp.json in your project, or ~/.cursor/mcp.json for all.",
    "vscode": "Save it as .vscode/mcp.json in your project.",
    "python": "Save it as a file and run it; it needs the package mcp.",
}


def configured(client: str, *, url: str, token: str) -> str:
    """The configuration of one of `CLIENTS`, as the file that it reads."""
    bearer = f"Bearer {token}"
    headers = {"Authorization": bearer}
    match client:
        case "claude-code":
            whole: object = {"mcpServers": {"oz0": {"type": "http", "url": url, "headers": headers}}}
        case "cursor":
            whole = {"mcpServers": {"oz0": {"url": url, "headers": headers}}}
        case "vscode":
            whole = {"servers": {"oz0": {"type": "http", "url": url, "headers": headers}}}
        case "claude-desktop":
            # its list holds programs only; this one forwards to an address. No blank in an argument: it is split there
            words = ["-y", "mcp-remote", url, "--header", "Authorization:${STUDIO_BEARER}"]
            words += ["--allow-http"] if url.startswith("http://") else []
            whole = {"mcpServers": {"oz0": {"command": "npx", "args": words, "env": {"STUDIO_BEARER": bearer}}}}
        case _:
            return SCRIPT.format(url=url, token=token)
    return json.dumps(whole, indent=2)


SCRIPT: Final = '''\
"""Lists the tools behind the studio's gateway and calls one: `python ask.py [NAME [JSON]]`."""

import asyncio
import json
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

URL = "{url}"
HEADERS = {{"Authorization": "Bearer {token}"}}


async def main() -> None:
    async with httpx2.AsyncClient(headers=HEADERS, timeout=120) as http:
        async with Client(streamable_http_client(URL, http_client=http)) as client:
            if len(sys.argv) < 2:
                for tool in (await client.list_tools()).tools:
                    print(tool.name, "-", (tool.description or "").splitlines()[0] if tool.description else "")
                return
            arguments = json.loads(sys.argv[2]) if len(sys.argv) > 2 else {{}}
            result = await client.call_tool(sys.argv[1], arguments)
            for part in result.content:
                print(getattr(part, "text", part))


asyncio.run(main())'''
