"""What may be done only in its room: async code, opening transactions, reaching out over HTTP."""

import ast
from pathlib import Path
from typing import Final

from tests.repo.tree import PRODUCT, Finding, dotted, imported_names, sources

ASYNC: Final = (
    "approvals/sessions/",
    "base/nudge.py",
    "base/outbound.py",
    "base/outbound_transport.py",
    "base/streaming.py",
    "budgets/mcp/",
    "budgets/sessions/",
    "catalog/sessions/",
    "jobs/agent/",
    "jobs/api/following.py",
    "jobs/consumers",
    "jobs/gateway/",
    "jobs/node/",
    "jobs/sessions/",
    "studio/asgi.py",
    "studio/cli/_far.py",
)
TRANSACTIONS: Final = ("base/db.py",)
OUTBOUND: Final = "base/outbound.py"
BARE_CLIENTS: Final = ("urllib.request.", "http.client.", "socket.create_connection")


def async_elsewhere(tree: Path) -> list[Finding]:
    """Async functions outside the rooms that have a loop: everywhere else values cross and code blocks."""
    return [
        source.finding(node, f"`async def {node.name}` belongs into one of {', '.join(ASYNC)}")
        for source in sources(tree, *PRODUCT)
        if not source.place.startswith(ASYNC)
        for node in ast.walk(source.syntax)
        if isinstance(node, ast.AsyncFunctionDef)
    ]


def transactions_elsewhere(tree: Path) -> list[Finding]:
    """Uses of Django's own transactions: `db.write` and `db.read` name the tenant and are always the outermost."""
    return [
        source.finding(node, f"`{used}`: open transactions with db.write(tenant) or db.read(tenant) of base/db.py")
        for source in sources(tree, *PRODUCT)
        if source.place not in TRANSACTIONS and "/migrations/" not in source.place
        for names in [imported_names(source.syntax)]
        for node in ast.walk(source.syntax)
        if isinstance(node, ast.Attribute)
        and (used := dotted(node, names)) is not None
        and used.startswith("django.db.transaction.")
    ]


def clients_elsewhere(tree: Path) -> list[Finding]:
    """HTTP clients of the standard library, which follow redirects and read proxies from the environment."""
    return [
        source.finding(node, f"`{used}`: HTTP clients are made by {OUTBOUND} only")
        for source in sources(tree, *PRODUCT)
        if source.place != OUTBOUND
        for names in [imported_names(source.syntax)]
        for node in ast.walk(source.syntax)
        if isinstance(node, ast.Attribute) and (used := dotted(node, names) or "").startswith(BARE_CLIENTS)
    ]
