"""The harness programs of one node: each a process that the node's loop watches, and no thread (MACHINES 4).

A program runs in a room of its own, under the guardian, so that nothing of it outlives its node (RULES L10).
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final
from uuid import UUID

from base import sandbox
from base.masking import Mask
from catalog.sessions import Log, ServerProcess, StartFailed
from jobs.node.relay import Relay
from jobs.rules.sessions import MOST_OUTPUT, SessionEnd, SessionOrder

log = logging.getLogger(__name__)

type Ended = Callable[[SessionOrder, SessionEnd], None]


class Programs:
    """Lives in the node's loop. `on_end` gets each program that was begun, once, when nothing of it runs any more."""

    def __init__(self, on_end: Ended) -> None:
        self._on_end: Final = on_end
        self._running: Final[dict[UUID, _Program]] = {}

    @property
    def running(self) -> bool:
        """Whether any program of this node runs."""
        return bool(self._running)

    def begin(self, order: SessionOrder) -> None:
        """Start a session's program; does not wait."""
        program = self._running[order.session_id] = _Program(order)
        program.task = asyncio.get_running_loop().create_task(self._follow(program))

    def stop(self, session_id: UUID) -> None:
        """SIGTERM, its clean-up time, and then SIGKILL for it and all that it started; does not wait."""
        program = self._running.get(session_id)
        if program is not None:
            program.leave.set()

    async def close(self) -> None:
        """Stop every program and wait until each is gone."""
        for program in self._running.values():
            program.leave.set()
        tasks = [program.task for program in self._running.values() if program.task is not None]
        if tasks:
            await asyncio.wait(tasks)

    async def _follow(self, program: "_Program") -> None:
        try:
            end = await program.run()
        except Exception:
            log.exception("a session's program could not be followed")
            end = SessionEnd(None, trouble="an error in the studio, which the node's log has in full", stopped=True)
        del self._running[program.order.session_id]
        self._on_end(program.order, end)


class _Program:
    """One program, from its start to its end."""

    def __init__(self, order: SessionOrder) -> None:
        self.order: Final = order
        self.leave: Final = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self._output = b""
        self._was_cut = False  # at its beginning
        self._errors: Final = Log(MOST_OUTPUT, secrets=order.secrets)
        self._mask: Final = Mask(order.secrets)

    async def run(self) -> SessionEnd:
        """Start it, wait for its end or until it is to be stopped, and tell how it ended."""
        relay = Relay(self.order.servers, self.order.allowed)
        if sandbox.measured() is sandbox.Isolation.PROCESS_GROUP:  # nothing keeps its network from it
            return await self._run(self.order.env, None)
        await relay.open()
        try:
            return await self._run({**relay.env, **self.order.env}, (relay.path, relay.port))
        finally:
            await relay.close()

    async def _run(self, env: Mapping[str, str], way_out: tuple[str, int] | None) -> SessionEnd:
        order = self.order
        try:
            process = await ServerProcess.start(
                order.argv,
                cwd=order.cwd,
                env=env,
                log=self._errors,
                asked=order.sandbox,
                given=order.given,
                way_out=way_out,
            )
        except StartFailed as error:
            return SessionEnd(None, trouble=str(error))
        process.listen(self._take, lambda _why: None)
        ended = asyncio.ensure_future(process.ended())
        leaving = asyncio.ensure_future(self.leave.wait())
        try:
            await asyncio.wait([ended, leaving], return_when=asyncio.FIRST_COMPLETED)
            stopped = not ended.done()
        finally:
            leaving.cancel()
            await process.close(after_eof=0, after_term=order.cleanup)
        code = None
        with suppress(TimeoutError):
            code = await asyncio.wait_for(ended, 1.0)
        output = self._output.decode("utf-8", "replace")
        # what is left of a character that was cut is no part of any secret
        output = self._mask.end(output.lstrip("\ufffd")) if self._was_cut else self._mask(output)
        return SessionEnd(code if code is not None else -9, output, self._said(), stopped=stopped)

    def _take(self, chunk: bytes) -> None:
        output = self._output + chunk
        self._was_cut = self._was_cut or len(output) > MOST_OUTPUT
        self._output = output[-MOST_OUTPUT:]

    def _said(self) -> str:
        return "\n".join(line.removeprefix("stderr: ") for line in self._errors.tail())
