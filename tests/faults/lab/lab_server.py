"""The MCP server of the lab's plugin: functions of every class, all acting upon the fake provider and nothing else.

Copied into the plugin's folder, where it runs on stdio, shared or sandboxed; `far.py` serves the same over HTTP. Each
call brings its `trial` and a `plan`, which is JSON: `before` and `after` are the seconds that the work takes before
and after its effect, and `faults` names what goes wrong in its first, second, … attempt.
"""

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import anyio
from anyio.from_thread import check_cancelled
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, ProgressNotification, ProgressNotificationParams, TextContent, ToolAnnotations

KEY, RESUME = "oz0/idempotency_key", "oz0/resume"
STEPS = 4
HUGE = 50 * 2**20
HANGS = 12.0  # seconds: three times what a call may take
READS = ToolAnnotations(read_only_hint=True)
WRITES = ToolAnnotations(destructive_hint=False)
DESTROYS = ToolAnnotations(destructive_hint=True)
KEYED: dict[str, Any] = {
    "annotations": ToolAnnotations(destructive_hint=False, idempotent_hint=True),
    "meta": {KEY: True},
}
WIRE = os.dup(1)  # before the SDK keeps what is printed away from the protocol


class Work:
    """One attempt, as it is known here: told to the provider line by line."""

    def __init__(self, function: str, trial: str, plan: str, ctx: Context) -> None:
        self.meta: dict[str, Any] = dict(ctx.request_context.meta or {})
        self.plan: dict[str, Any] = json.loads(plan)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect("provider.sock")  # in the plugin's folder, which each of its servers works in
        self._file = self._socket.makefile("rwb")
        digest = hashlib.sha256(json.dumps([trial, plan]).encode()).hexdigest()
        key = str(self.meta.get(KEY, ""))
        who = {"key": key, "digest": digest, "trial": trial, "function": function, "pid": os.getpid()}
        resumed = self.meta.get(RESUME)
        self.time = self.tell("received", **who, **({"resume": resumed} if resumed is not None else {}))["time"]
        faults = self.plan.get("faults", [])
        self.fault = faults[self.time - 1] if self.time <= len(faults) else ""
        self.before = HANGS if self.fault == "hangs_before" else self.plan["before"]
        self.after = HANGS if self.fault == "hangs_after" else self.plan["after"]

    def tell(self, what: str, **more: Any) -> dict[str, Any]:
        self._file.write(json.dumps({"what": what, **more}).encode() + b"\n")
        self._file.flush()
        return json.loads(self._file.readline())

    def began(self) -> None:
        """What goes wrong before anything is done."""
        if self.fault == "exit_before":
            os._exit(3)
        if self.fault == "stays":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            threading.Thread(target=time.sleep, args=(600,)).start()  # keeps the process past the end of its input
        if self.fault == "forks":
            sleeper = "import time; time.sleep(600)"
            subprocess.Popen([sys.executable, "-S", "-c", sleeper, "lab-grandchild"], start_new_session=True)
        if self.fault == "floods":
            sys.stderr.write(f"{'what a flood of words ' * 50}\n" * 2000)
            sys.stderr.flush()

    def effect(self, *, once: bool = False) -> None:
        """The write itself."""
        self.tell("effect", **({"once": True} if once else {}))
        if self.fault == "exit_after":
            os._exit(4)

    def replies(self, text: str = "done", **more: Any) -> CallToolResult:
        """The last word."""
        self.tell("replied")
        self._file.close()
        self._socket.close()
        if self.fault == "prints":
            os.write(WIRE, b'Done! \xf0\x9f\x9a\x80 \xff\xfe\n{"id": 1, "level": "info"}\n[[[[\n')
        if self.fault == "exit_soon":
            threading.Timer(0.02, os._exit, [5]).start()
        if self.fault == "huge":
            text = "x" * HUGE
        return CallToolResult(content=[TextContent(type="text", text=text)], **more)


async def carried(work: Work, act: Callable[[], None] = lambda: None) -> CallToolResult:
    """The whole of an async function: it stops when it is cancelled, and says so."""
    try:
        work.began()
        await anyio.sleep(work.before)
        act()
        await anyio.sleep(work.after)
    except BaseException:
        work.tell("cancelled")
        raise
    return work.replies()


async def reported(work: Work, ctx: Context, *, resumes: bool) -> CallToolResult:
    """A read of several steps that says after each how far it got."""
    token = (work.meta.get(RESUME) or {}).get("token", "step-0") if resumes else "step-0"
    try:
        work.began()
        for step in range(int(token.removeprefix("step-")) + 1, STEPS + 1):
            await anyio.sleep((work.before + work.after) / STEPS)
            if "progress_token" in work.meta:
                params = ProgressNotificationParams(
                    progress_token=work.meta["progress_token"],
                    progress=step,
                    total=STEPS,
                    **({"_meta": {RESUME: f"step-{step}"}} if resumes else {}),
                )
                work.tell("told", step=step)
                note = ProgressNotification(params=params)
                await ctx.session.send_notification(note, related_request_id=ctx.request_id)
            if work.fault == "exit_midway" and step == STEPS // 2:
                await anyio.sleep(0.1)  # what was told is on its way
                os._exit(6)
    except BaseException:
        work.tell("cancelled")
        raise
    return work.replies()


def build() -> MCPServer:
    """The server with its functions."""
    server = MCPServer("lab", version="1.0.0", log_level="CRITICAL")

    @server.tool(annotations=READS)
    async def look(trial: str, plan: str, ctx: Context) -> CallToolResult:
        """Read."""
        return await carried(Work("look", trial, plan, ctx))

    @server.tool(annotations=WRITES)
    async def note(trial: str, plan: str, ctx: Context) -> CallToolResult:
        """Write, without a word about keys."""
        work = Work("note", trial, plan, ctx)
        return await carried(work, work.effect)

    @server.tool(**KEYED)
    async def charge(trial: str, plan: str, ctx: Context) -> CallToolResult:
        """Write, once for each key."""
        work = Work("charge", trial, plan, ctx)
        return await carried(work, lambda: work.effect(once=True))

    @server.tool(annotations=DESTROYS)
    async def wipe(trial: str, plan: str, ctx: Context) -> CallToolResult:
        """Write what a person has to approve."""
        work = Work("wipe", trial, plan, ctx)
        return await carried(work, work.effect)

    @server.tool(annotations=WRITES)
    def polling(trial: str, plan: str, ctx: Context) -> CallToolResult:
        """Write, and look out for being cancelled."""
        work = Work("polling", trial, plan, ctx)
        try:
            work.began()
            _work_for(work.before, check_cancelled)
            work.effect()
            _work_for(work.after, check_cancelled)
        except BaseException:
            work.tell("cancelled")
            raise
        return work.replies()

    @server.tool(annotations=WRITES)
    def stubborn(trial: str, plan: str, ctx: Context) -> CallToolResult:
        """Write, and hear nothing meanwhile."""
        work = Work("stubborn", trial, plan, ctx)
        work.began()
        time.sleep(work.before)
        work.effect()
        time.sleep(work.after)
        return work.replies()

    @server.tool(annotations=READS)
    async def pages(trial: str, plan: str, ctx: Context) -> CallToolResult:
        """Read, and say how far."""
        return await reported(Work("pages", trial, plan, ctx), ctx, resumes=False)

    @server.tool(annotations=READS, meta={RESUME: True})
    async def search(trial: str, plan: str, ctx: Context) -> CallToolResult:
        """Read, say how far, and go on from there."""
        return await reported(Work("search", trial, plan, ctx), ctx, resumes=True)

    @server.tool(**KEYED)
    async def busy(trial: str, plan: str, ctx: Context) -> CallToolResult:
        """Write once for each key, and be busy the first times it is asked."""
        work = Work("busy", trial, plan, ctx)
        if work.time <= work.plan.get("busy", 1):
            return work.replies("busy", is_error=True, _meta={"oz0/retryable": True, "oz0/retry_after": 0.2})
        return await carried(work, lambda: work.effect(once=True))

    @server.tool(annotations=READS)
    async def lies_reading(trial: str, plan: str, ctx: Context) -> CallToolResult:
        """Say that it reads, and write."""
        work = Work("lies_reading", trial, plan, ctx)
        return await carried(work, work.effect)

    @server.tool(**KEYED)
    async def lies_keyed(trial: str, plan: str, ctx: Context) -> CallToolResult:
        """Say that the key is honoured, and not look at it."""
        work = Work("lies_keyed", trial, plan, ctx)
        return await carried(work, work.effect)

    return server


def _work_for(seconds: float, look: Callable[[], None]) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        look()
        time.sleep(0.02)


if __name__ == "__main__":
    build().run()
