"""`oz0-budget`: the server as a program, over its standard input and output."""

import argparse
import asyncio
import os
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from mcp.server.stdio import stdio_server

from budgets.mcp.offers import PROFILES
from budgets.mcp.server import BudgetServer
from budgets.sessions.bounds import BOUNDS, Bounds
from budgets.sessions.credentials import KEY, KEY_FILE, STUDIO, found_for, read_studio

WRONG_CALL: Final = 2


def main(bounds: Bounds = BOUNDS) -> None:
    """Serve until the client closes its end. Nothing of the credentials is looked at before a call needs them."""
    parser = argparse.ArgumentParser("oz0-budget", description="The spend journal of a studio as an MCP server.")
    parser.add_argument("--profile", choices=sorted(PROFILES), default="read", help="which tools there are (read)")
    parser.add_argument("--studio", default=os.environ.get(STUDIO, ""), help=f"its address; left out: {STUDIO}")
    parser.add_argument("--key-file", type=Path, help=f"the project's key; left out: {KEY}, {KEY_FILE}, or the login")
    parser.add_argument("--project", help="whose budget it is, of a login that has several")
    options = parser.parse_args()
    try:
        studio = read_studio(options.studio) if options.studio else ""
        credentials = found_for(studio, file=options.key_file, project=options.project)
    except ValueError as error:
        print(f"oz0-budget: {error}", file=sys.stderr)  # noqa: T201  where a client shows why there is no server
        raise SystemExit(WRONG_CALL) from error
    budget = BudgetServer(
        studio=studio, profile=options.profile, credentials=credentials, version=_version(), bounds=bounds
    )
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(budget))


async def _serve(budget: BudgetServer) -> None:
    async with stdio_server() as (read, write):
        await budget.server.run(read, write, budget.server.create_initialization_options())


def _version() -> str:
    try:
        return version("oz0-studio")
    except PackageNotFoundError:
        return "0"
