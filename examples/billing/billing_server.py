"""An MCP server that keeps a small ledger: what each function does to the world is said in its annotations."""

import argparse
import csv
import os
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio
from billing_drill import Drill, begin, dies_now
from billing_ledger import Ledger, Line
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

KEY = "oz0/idempotency_key"

Account = Annotated[str, Field(min_length=1, max_length=40, description="The account, such as A-77")]
Order = Annotated[str, Field(min_length=1, max_length=40, description="The order, such as o-1")]
Cents = Annotated[int, Field(gt=0, le=10_000_000, description="The amount in cents")]


def build(ledger: Ledger) -> MCPServer:
    """The server of one ledger."""
    server = MCPServer("billing", version="1.0.0")

    @server.tool(
        annotations=ToolAnnotations(idempotent_hint=True, destructive_hint=False, open_world_hint=True),
        meta={KEY: True},
    )
    async def charge(account: Account, order_id: Order, amount: Cents, ctx: Context) -> CallToolResult:
        """Charge an account for an order. A call made again under its key charges nothing more."""
        key = _key(ctx)
        wanted = {"effect": "charge", "account": account, "order_id": order_id, "amount": amount}
        drill = begin(ledger, "charge", key)
        if drill.busy:
            return _busy(drill)
        await anyio.sleep(drill.wait_before)
        with ledger.locked():
            done = ledger.under_key(key)
            if done is None:
                done = {**wanted, "key": key, "receipt": f"R-{len(ledger.lines()) + 1}"}
                ledger.append(done)
            elif {name: done.get(name) for name in wanted} != wanted:
                raise ToolError(
                    f"this key was used for another call, with receipt {done.get('receipt')}; nothing was done"
                )
        await anyio.sleep(drill.wait_after)
        return _said(f"Charged {_money(amount)} to {account} for order {order_id}, receipt {done['receipt']}.")

    @server.tool(annotations=ToolAnnotations(destructive_hint=True, open_world_hint=True))
    async def refund(order_id: Order, amount: Cents, ctx: Context) -> CallToolResult:
        """Pay money back for an order, at most what was charged for it. It cannot be taken back."""
        drill = begin(ledger, "refund", _key(ctx))
        if drill.busy:
            return _busy(drill)
        await anyio.sleep(drill.wait_before)
        with ledger.locked():
            of_order = [line for line in ledger.lines() if line.get("order_id") == order_id]
            left = sum(_signed(line) for line in of_order)
            if amount > left:
                raise ToolError(
                    f"only {_money(left)} is left of what was charged for order {order_id}; nothing was done"
                )
            account = of_order[0]["account"]
            ledger.append(
                {"effect": "refund", "account": account, "order_id": order_id, "amount": amount, "key": _key(ctx)}
            )
        await anyio.sleep(drill.wait_after)
        return _said(f"Refunded {_money(amount)} to {account} for order {order_id}.")

    @server.tool(annotations=ToolAnnotations(destructive_hint=False, open_world_hint=False))
    async def note(
        account: Account,
        text: Annotated[str, Field(min_length=1, max_length=500)],
        ctx: Context,
        drill: Annotated[
            Literal["none", "die_after_write"],
            Field(description="For demonstrations: die_after_write ends this server once the note is written"),
        ] = "none",
    ) -> CallToolResult:
        """Write a note about an account into the ledger. Made again, it writes again: it does not look at the key."""
        key = _key(ctx)
        suffered = begin(ledger, "note", key)
        if suffered.busy:
            return _busy(suffered)
        await anyio.sleep(suffered.wait_before)
        with ledger.locked():
            ledger.append({"effect": "note", "account": account, "text": text, "key": key})
        if drill == "die_after_write" and dies_now(ledger, key):
            os._exit(70)  # at once, as a crash would: no answer, no clean-up
        await anyio.sleep(suffered.wait_after)
        return _said(f"Noted about {account}: {text}")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
    async def balance(account: Account, ctx: Context) -> CallToolResult:
        """What an account was charged, less what it was refunded."""
        drill = begin(ledger, "balance", _key(ctx))
        if drill.busy:
            return _busy(drill)
        await anyio.sleep(drill.wait_before)
        with ledger.locked():
            total = sum(_signed(line) for line in ledger.lines() if line["account"] == account)
        await anyio.sleep(drill.wait_after)
        return _said(f"Account {account} stands at {_money(total)}.")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
    async def list_ledger(ctx: Context, last: Annotated[int, Field(ge=1, le=100)] = 10) -> CallToolResult:
        """The last lines of the ledger, oldest first."""
        drill = begin(ledger, "list_ledger", _key(ctx))
        if drill.busy:
            return _busy(drill)
        await anyio.sleep(drill.wait_before)
        with ledger.locked():
            lines = ledger.lines()[-last:]
        await anyio.sleep(drill.wait_after)
        return _said("\n".join(_told(line) for line in lines) or "The ledger is empty.")

    # Left without annotations on purpose: the studio cannot know what it does, marks it, and asks a person.
    @server.tool()
    async def export_ledger(ctx: Context) -> CallToolResult:
        """Write the ledger as a table to export.csv."""
        begin(ledger, "export_ledger", _key(ctx))
        with ledger.locked():
            lines = ledger.lines()
            with (ledger.folder / "export.csv").open("w", newline="") as file:
                table = csv.DictWriter(
                    file, ["effect", "account", "order_id", "amount", "text", "receipt"], extrasaction="ignore"
                )
                table.writeheader()
                table.writerows(lines)
        return _said(f"Wrote {len(lines)} lines to export.csv.")

    return server


def _key(ctx: Context) -> str:
    """The call's idempotency key, empty when the caller sent none."""
    key: Any = (ctx.request_context.meta or {}).get(KEY, "")
    return key if isinstance(key, str) else ""


def _said(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)])


def _busy(drill: Drill) -> CallToolResult:
    """Say that the service is busy and let the platform try again: a wait in here would be hidden and hold a slot."""
    meta: dict[str, Any] = {"oz0/retryable": True}
    if drill.retry_after is not None:
        meta["oz0/retry_after"] = drill.retry_after
    wait = "" if drill.retry_after is None else f" for {drill.retry_after:g} s"
    text = f"The billing service is busy{wait}; nothing was done."
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True, _meta=meta)


def _signed(line: Line) -> int:
    return {"charge": 1, "refund": -1}.get(line["effect"], 0) * int(line.get("amount", 0))


def _money(cents: int) -> str:
    return f"{cents / 100:.2f}"


def _told(line: Line) -> str:
    if line["effect"] == "note":
        return f"note {line['account']}: {line['text']}"
    return f"{line['effect']} {line['account']} {line['order_id']} {_money(line['amount'])}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", type=Path, required=True, help="the folder that holds the ledger")
    build(Ledger(parser.parse_args().state)).run()
