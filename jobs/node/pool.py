"""The sessions of one node: one per server's key, opened once for all who wait, restarted with back-off, replaced.

Lives in the node's loop. A place is where a server is, was or will be; one task owns its session from open to close.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from base.clock import boot_time
from catalog.rules.answers import Answer
from catalog.rules.servers import Key, ServerSpec
from catalog.sessions import Clients, Log, NotUp, Session, open_session
from jobs.node.values import NotOpened, Opened, ServerState, ServerStatus
from jobs.rules.backoff import before_start
from jobs.rules.reasons import Reason, sentence

STEADY: Final = 30.0  # seconds up after which a server's earlier failures no longer count
IDLE: Final = 300.0  # seconds a job's own server is kept while no call is open on it
WAITED_OUT: Final = 5.0  # seconds of back-off that an opening waits; a server that does start is never refused for less
LOG_LINES: Final = 200


class Place:
    """One server's place. `failures` counts starts that failed in a row, `deaths` lives that were short in a row."""

    def __init__(self, spec: ServerSpec) -> None:
        self.spec = spec
        self.log: Final = Log(secrets=spec.secrets)
        self.state = ServerState.DOWN
        self.session: Session | None = None
        self.reason = ""
        self.status: int | None = None  # with which a remote server refused to be opened
        self.starts = 0
        self.failures = 0
        self.deaths = 0
        self.not_before = 0.0
        self.open_calls = 0
        self.idle_since = boot_time()
        self.superseded = False
        self.settled = asyncio.Event()  # the start under way has succeeded or failed
        self.leave: Final = asyncio.Event()  # close the session
        self.task: asyncio.Task[None] | None = None

    @property
    def leaving(self) -> bool:
        """Its server is gone or going, and not yet cleared away."""
        return self.session is not None and (self.leave.is_set() or self.session.ended.done())

    @property
    def idle_own(self) -> bool:
        """Whether it is a job's own server, up and without a call."""
        return self.spec.job is not None and self.open_calls == 0 and self.state is ServerState.UP and not self.leaving

    def retire_when_idle(self) -> None:
        """Close a replaced session as soon as no call is open on it."""
        if self.superseded and self.open_calls == 0:
            self.leave.set()


class Pool:
    """`on_late` gets the owner and the answer of a call that had already ended."""

    def __init__(self, on_late: Callable[[object, Answer], None]) -> None:
        self._on_late: Final = on_late
        self._places: dict[Key, Place] = {}
        self._protocols: dict[tuple[object, ...], str] = {}  # what each server spoke when it was first asked
        self._clients: Final = Clients()
        self._closing = False

    async def open(self, spec: ServerSpec) -> Opened | NotOpened:
        """Wait until the server is up or a start of it has failed. Waits out a short back-off, not a long one."""
        while not self._closing:
            place = await self._settled_place(spec)
            if self._closing:
                break
            wait = place.not_before - boot_time()
            if place.state is ServerState.DOWN and wait > WAITED_OUT:
                return _not_up(place)
            if place.state is ServerState.DOWN and wait > 0:
                await asyncio.sleep(wait)
                continue
            if place.state is ServerState.DOWN:
                self._make_room_for(spec)
                self._start(place, spec)
            await place.settled.wait()
            if place.session is None:
                return _not_up(place)
            self._supersede_others(place)
            return Opened(place.session.listing)
        return NotOpened(Reason.NODE_STOPPING, sentence(Reason.NODE_STOPPING), 0, 0.0)

    async def _settled_place(self, spec: ServerSpec) -> Place:
        """This key's place, once a server that is on its way out there has left."""
        while (place := self._places.get(spec.key)) is not None and place.task is not None and place.leaving:
            await asyncio.wait([place.task])
        if place is None:
            place = self._places[spec.key] = Place(spec)
        return place

    def live(self, spec: ServerSpec) -> Session | None:
        """The live session of this key, if there is one."""
        place = self._places.get(spec.key)
        return place.session if place is not None else None

    @contextmanager
    def using(self, spec: ServerSpec) -> Iterator[None]:
        """Count a call on this server while it lasts: a replaced session is closed after its last one."""
        place = self._places.get(spec.key)
        if place is None:
            yield
            return
        place.open_calls += 1
        try:
            yield
        finally:
            place.open_calls -= 1
            place.idle_since = boot_time()
            place.retire_when_idle()

    async def end(self, spec: ServerSpec) -> None:
        """End this key's server and wait until its process and all that it started are gone (MACHINES 4).

        Not while another call than the one that asks is open on it.
        """
        place = self._places.get(spec.key)
        if place is None or place.task is None or place.open_calls > 1:
            return
        if place.session is None or not place.session.ended.done():
            place.leave.set()
        await asyncio.wait([place.task])

    def end_own(self, jobs: Collection[UUID]) -> None:
        """End the servers of these jobs, which are over, and those that no call has needed for a while."""
        for place in list(self._places.values()):
            if place.spec.job in jobs:
                self._retire(place)
            elif place.idle_own and boot_time() - place.idle_since > IDLE:
                place.leave.set()

    def end_of(self, tools: Collection[UUID]) -> None:
        """End the servers of these tools, which nobody may call any more, each after the calls that are open on it.

        Nothing of them stays here: a place knows what its server was given, credentials too.
        """
        for place in list(self._places.values()):
            if place.spec.tool_id in tools:
                self._retire(place)

    def _retire(self, place: Place) -> None:
        place.superseded = True
        place.retire_when_idle()
        if place.state is ServerState.DOWN:
            self._places.pop(place.spec.key, None)

    def _make_room_for(self, spec: ServerSpec) -> None:
        """At most as many servers of a sandboxed tool as calls of it may run: the longest idle one makes room."""
        if spec.job is None:
            return
        same = [place for place in self._places.values() if place.spec.key[:2] == spec.key[:2] and place.spec.job]
        up = [place for place in same if place.state is not ServerState.DOWN and not place.leaving]
        idle = sorted((place for place in up if place.idle_own), key=lambda place: place.idle_since)
        for place in idle[: max(0, len(up) + 1 - spec.slots)]:
            place.leave.set()

    def statuses(self) -> list[ServerStatus]:
        """Every server of this node."""
        return [_status(place) for place in self._places.values()]

    async def close(self) -> None:
        """End every server; open calls end with them."""
        self._closing = True
        tasks = []
        for place in self._places.values():
            place.leave.set()
            if place.task is not None:
                if place.state is ServerState.STARTING:
                    place.task.cancel()
                tasks.append(place.task)
        if tasks:
            await asyncio.wait(tasks)

    def _start(self, place: Place, spec: ServerSpec) -> None:
        # a generation measured before saves the probe; after a failure it may be what is wrong, so a program is asked
        # again. A remote server is kept to it: its failures are often passing, and must not lower the generation
        known = spec.protocol or self._protocols.get(spec.key[:4], "")
        place.spec = replace(spec, protocol="" if place.failures and spec.remote is None else known)
        place.state, place.starts, place.superseded = ServerState.STARTING, place.starts + 1, False
        place.settled = asyncio.Event()
        place.leave.clear()
        place.task = asyncio.get_running_loop().create_task(self._own(place))

    async def _own(self, place: Place) -> None:
        """Own one session from its opening to its end."""
        started = boot_time()
        try:
            session = await open_session(place.spec, place.log, on_late=self._on_late, clients=self._clients)
        except NotUp as error:
            place.failures += 1
            place.status = error.status
            self._down(place, str(error), before_start(place.failures))
            return
        except BaseException as error:
            self._down(place, f"Its start was broken off ({type(error).__name__}).", 0.0)
            raise
        self._protocols[place.spec.key[:4]] = session.listing.protocol
        place.session, place.state, place.reason, place.failures = session, ServerState.UP, "", 0
        place.idle_since = boot_time()
        place.status = None
        place.settled.set()
        leaving = asyncio.ensure_future(place.leave.wait())
        try:
            either: list[asyncio.Future[Any]] = [session.ended, leaving]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            died = not place.leave.is_set()
            why = session.ended.result() if session.ended.done() else "It was closed."
            await session.close(why)
            if died:
                place.deaths = 1 if boot_time() - started > STEADY else place.deaths + 1
            # a first death is no reason to wait: the next call gets a new server at once
            self._down(place, why, min(WAITED_OUT, before_start(place.deaths - 1)) if died else 0.0)
            left = place.spec.sandbox is not None and not died
            if (place.superseded or left) and self._places.get(place.spec.key) is place:
                del self._places[place.spec.key]

    def _down(self, place: Place, reason: str, wait: float) -> None:
        place.session, place.state, place.reason = None, ServerState.DOWN, reason
        place.not_before = boot_time() + wait
        place.log.add("oz0", reason)
        place.settled.set()

    def _supersede_others(self, place: Place) -> None:
        """Another version of the same tool for the same tenant is closed once its calls have ended (MACHINES 4)."""
        place.superseded = False
        for other in list(self._places.values()):
            same = other.spec.key[:2] == place.spec.key[:2] and other.spec.job == place.spec.job
            if other is not place and same:
                self._retire(other)


def _not_up(place: Place) -> NotOpened:
    wait = max(0.0, place.not_before - boot_time())
    return NotOpened(Reason.SERVER_NOT_UP, place.reason, place.failures, wait, place.status)


def _status(place: Place) -> ServerStatus:
    session = place.session
    return ServerStatus(
        tenant=place.spec.tenant,
        tool_id=place.spec.tool_id,
        tool=place.spec.tool,
        job=place.spec.job,
        version=place.spec.version,
        state=place.state,
        reason=place.reason,
        protocol=session.listing.protocol if session is not None else "",
        pid=session.pid if session is not None else None,
        starts=place.starts,
        failures=place.failures,
        open_calls=place.open_calls,
        log=place.log.tail(LOG_LINES),
    )
