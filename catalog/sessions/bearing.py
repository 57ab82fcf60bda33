"""Sending a server what no client should send, and seeing whether it lives on."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from catalog.rules.bearing import Bearing, Borne
from catalog.rules.frames import NOBODY, Frame
from catalog.rules.servers import ServerSpec
from catalog.sessions.connection import Connection, ConnectionEnded, RequestFailed
from catalog.sessions.log import Log
from catalog.sessions.negotiation import Negotiated, negotiate
from catalog.sessions.process import ServerProcess, StartFailed
from catalog.sessions.session import KEY, PROGRESS_TOKEN

ANSWERS_IN: Final = 5.0  # seconds in which a server answers a request that comes after a frame
ALL: Final = 120.0  # seconds for all frames, however often the server has to be started anew


def bear(spec: ServerSpec, frames: Sequence[Frame]) -> Bearing:
    """How this server takes the frames, one after the other; it is started anew after each that it did not bear."""
    return asyncio.run(_bear(spec, frames))


class _Up:
    """A server that runs and was agreed with."""

    def __init__(self, process: ServerProcess, connection: Connection, agreed: Negotiated) -> None:
        self.process: Final = process
        self.connection: Final = connection
        self.agreed: Final = agreed

    @classmethod
    async def start(cls, spec: ServerSpec) -> "_Up":
        """Raises `_NotUp`."""
        log = Log(secrets=spec.secrets)
        try:
            process = await ServerProcess.start(spec.argv, cwd=spec.cwd, env=spec.env, log=log, asked=spec.sandbox)
        except StartFailed as error:
            raise _NotUp(str(error)) from error
        connection = Connection(process, log, on_late=lambda *_: None)
        try:
            async with asyncio.timeout(spec.startup):
                return cls(process, connection, await negotiate(connection, spec.protocol))
        except Exception as error:
            ended = connection.ended.result() if connection.ended.done() else f"{type(error).__name__}: {error}"[:200]
            await cls._end(process, connection)
            raise _NotUp(f"its server could not be started: {ended}") from error
        except BaseException:
            await cls._end(process, connection)
            raise

    async def still(self) -> str:
        """Why it does not answer a request of the protocol, empty when it does."""
        try:
            async with asyncio.timeout(ANSWERS_IN):
                await self.connection.request("tools/list", self._params())
        except TimeoutError:
            return f"it did not answer the next request within {ANSWERS_IN:g} s"
        except ConnectionEnded as error:
            return str(error)
        except RequestFailed as error:
            return f"the next request failed: {error}"
        return ""

    async def answer(self, more: dict[str, Any]) -> str:
        """What it says to a call of a function that nobody has, with `more` in its `_meta`."""
        params = self._params({"name": NOBODY, "arguments": {}}, more)
        try:
            async with asyncio.timeout(ANSWERS_IN):
                result = await self.connection.request("tools/call", params)
        except TimeoutError:
            return f"it does not answer within {ANSWERS_IN:g} s"
        except (ConnectionEnded, RequestFailed) as error:
            return str(error)
        said = [part.get("text", "") for part in result.get("content") or () if isinstance(part, dict)]
        return " ".join(str(text) for text in said)[:300]

    def _params(self, params: dict[str, Any] | None = None, more: dict[str, Any] | None = None) -> dict[str, Any]:
        meta = {**self.agreed.meta, **(more or {})}
        return {**(params or {}), **({"_meta": meta} if meta else {})}

    async def end(self) -> None:
        """End it, and wait for that."""
        await self._end(self.process, self.connection)

    @staticmethod
    async def _end(process: ServerProcess, connection: Connection) -> None:
        process.kill()
        await asyncio.shield(asyncio.ensure_future(connection.close("It was ended.")))


class _NotUp(Exception):
    """A server could not be started; the message is a sentence."""


async def _bear(spec: ServerSpec, frames: Sequence[Frame]) -> Bearing:
    borne: list[Borne] = []
    up: _Up | None = None
    meta = ""
    limit = asyncio.get_running_loop().time() + ALL
    try:
        up = await _Up.start(spec)
        if why := await up.still():
            return Bearing(spec.tool, (), trouble=f"before any of them: {why}")
        meta = await _meta(up)
        for frame in frames:
            if asyncio.get_running_loop().time() > limit:
                borne.append(Borne(frame.name, f"not sent: the {len(borne)} before it took {ALL:g} s"))
                continue
            if up is None:
                up = await _Up.start(spec)
            up.connection.send_line(frame.data)
            if why := await up.still():
                await up.end()
                up = None
            borne.append(Borne(frame.name, why))
        up = up or await _Up.start(spec)
        up.process.kill()
        await asyncio.wait([up.connection.ended], timeout=ANSWERS_IN)
        seen = await up.still()
    except _NotUp as error:
        return Bearing(spec.tool, tuple(borne), trouble=str(error), meta=meta)
    finally:
        if up is not None:
            await up.end()
    if not seen:
        return Bearing(spec.tool, tuple(borne), trouble="a server that was killed was not seen to be gone", meta=meta)
    return Bearing(spec.tool, tuple(borne), control=f"the same server, killed: {seen}", meta=meta)


async def _meta(up: _Up) -> str:
    """What it says to a request that carries what the studio adds in `_meta`, empty when that changes nothing."""
    without = await up.answer({})
    given = await up.answer({KEY: "job_0/0", PROGRESS_TOKEN: "oz0-1"})
    return given if given != without else ""
