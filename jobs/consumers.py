"""The socket of an open page. It carries nudges: topic and number; the page then reads as its own person (STYLE 22).

A page joins topics: `jobs`, `approvals`, `catalog`, `job:<id>`. After joining one it is told the newest number, so
what changed between its rendering and its joining is read again (CASES V02). Every few seconds the session, the seat
and the way through the channel layer are checked, and at once when something of the person has changed; a socket that
fails one is closed (CASES V14).

A page that shows a question says so now and again, and the others that show it are told who looks. That is kept
nowhere and forgotten by each page after a while, so nothing depends on a page that goes without a word (CASES V05).
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from autobahn.exception import Disconnected
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.urls import path
from redis.exceptions import RedisError

from base import db, ids, nudge
from base.visible import visible
from jobs.queries.cursor import newest_event
from jobs.queries.questions import question_exists
from tenants.queries.seats import Seat, seat
from tenants.queries.sessions import session_person

log = logging.getLogger(__name__)
CHECK_EVERY: Final = 4.0  # seconds
MOST_TOPICS: Final = 16
NAME_SHOWN: Final = 60  # characters of a person's name
SIGNED_OUT: Final = 4401
ELSEWHERE: Final = 4409  # the person went to another workspace
NO_LAYER: Final = 4503


class LiveConsumer(AsyncJsonWebsocketConsumer):  # type: ignore[misc]  # channels has no types
    """One open page's socket."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.topics: dict[str, str] = {}  # group -> topic, as the page calls it
        self.seat: Seat | None = None
        self.checking: asyncio.Task[None] | None = None
        self.probed = False
        self.looking = ""  # the group of those who look at the question that the page shows
        self.look_again = asyncio.Event()

    async def __call__(self, scope: Any, receive: Callable[[], Any], send: Callable[[Any], Any]) -> Any:
        """Run the socket; without a channel layer it is refused, and the page goes on by polling."""

        async def send_while_open(message: Any) -> None:
            with contextlib.suppress(Disconnected):  # the page has just gone; that is said next, and ends us in order
                await send(message)

        try:
            return await super().__call__(scope, receive, send_while_open)
        except (RedisError, OSError) as error:
            log.info("a page's socket was refused: the channel layer cannot be reached (%s)", error)
            with contextlib.suppress(RuntimeError):  # it may be closed already
                await send({"type": "websocket.close", "code": NO_LAYER})
            return None

    async def connect(self) -> None:
        """Accept a signed-in person with a seat; others are closed with 4401 after accepting, so the page can tell."""
        self.seat = await self._current_seat()
        await self.accept()
        if self.seat is None:
            await self.close(SIGNED_OUT)
            return
        await self.channel_layer.group_add(nudge.person_group(self.seat.person_id), self.channel_name)
        self.checking = asyncio.create_task(self._check_for_ever())

    async def disconnect(self, code: int) -> None:
        """Leave every group."""
        if self.checking is not None:
            self.checking.cancel()
        mine = [nudge.person_group(self.seat.person_id)] if self.seat else []
        for group in [*self.topics, *mine, *([self.looking] if self.looking else [])]:
            with contextlib.suppress(RedisError, OSError):
                await self.channel_layer.group_discard(group, self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None, **kwargs: Any) -> None:
        """What the page says. What is no JSON, or nested without end, is passed over (CASES S14)."""
        try:
            said = json.loads(text_data or "")
        except (ValueError, RecursionError):
            return
        await self.receive_json(said)

    async def receive_json(self, content: Any, **kwargs: Any) -> None:
        """`{"join": [topics]}`: all that the page shows now; it leaves what it showed before.

        Topics that do not exist, or are another tenant's, are left out without a word. `{"looking": question}`: the
        page shows it just now.
        """
        if isinstance(content, dict) and isinstance(content.get("looking"), str):
            await self._looks_at(content["looking"])
            return
        wanted = content.get("join") if isinstance(content, dict) else None
        if not isinstance(wanted, list) or self.seat is None:
            return
        for left in [group for group, topic in self.topics.items() if topic not in wanted]:
            await self._leave(left)
        for topic in wanted[:MOST_TOPICS]:
            group = _group(self.seat.tenant, topic) if isinstance(topic, str) else None
            if group is None or group in self.topics or len(self.topics) >= MOST_TOPICS:
                continue
            await self.channel_layer.group_add(group, self.channel_name)
            self.topics[group] = topic
            await self._tell_newest(group, self.seat.tenant)

    async def nudge(self, message: dict[str, Any]) -> None:
        """Pass a nudge on."""
        if self.seat is not None and message["group"] == nudge.person_group(self.seat.person_id):
            self.look_again.set()
            return
        topic = self.topics.get(message["group"])
        if topic is not None:
            await self.send_json({"topic": topic, "seq": message["seq"]})

    async def looks(self, message: dict[str, Any]) -> None:
        """Somebody looks at the question that this page shows, too; what comes from itself is left out."""
        if message["group"] == self.looking and self.seat is not None and message["person"] != self.seat.person_id:
            await self.send_json({name: message[name] for name in ("looking", "who", "person")})

    async def _looks_at(self, shown: str) -> None:
        group = _looking_group(shown) if shown else ""
        if group != self.looking:
            if self.looking:
                await self.channel_layer.group_discard(self.looking, self.channel_name)
            self.looking = ""
            if not group or not await database_sync_to_async(self._has_question)(shown):
                return
            await self.channel_layer.group_add(group, self.channel_name)
            self.looking = group
        if self.looking and self.seat is not None:
            who = visible(self.seat.username, NAME_SHOWN)
            told = {"type": "looks", "group": group, "looking": shown, "who": who, "person": self.seat.person_id}
            await self.channel_layer.group_send(group, told)

    def _has_question(self, shown: str) -> bool:
        return self.seat is not None and question_exists(self.seat.tenant, ids.parse(ids.HOLD, shown))

    async def probe(self, message: dict[str, Any]) -> None:
        """Our own message came back through the layer: it works."""
        self.probed = True

    async def _tell_newest(self, group: str, tenant: UUID) -> None:
        """The newest number of a job, looked up as this person; lists have none and are always read again."""
        topic = self.topics[group]
        if not topic.startswith("job:"):
            await self.send_json({"topic": topic, "seq": None})
            return
        newest = await database_sync_to_async(newest_event)(tenant, ids.parse(ids.JOB, topic[4:]))
        if newest is None:  # not of this tenant
            await self._leave(group)
            return
        await self.send_json({"topic": topic, "seq": newest})

    async def _leave(self, group: str) -> None:
        del self.topics[group]
        await self.channel_layer.group_discard(group, self.channel_name)

    async def _check_for_ever(self) -> None:
        """Close the socket once it fails a check, or cannot be checked: nobody is served unchecked (CASES V14)."""
        try:
            while (failed := await self._fails_by()) is None:
                pass
        except (RedisError, OSError, TimeoutError):
            failed = NO_LAYER
        except db.GONE as error:
            log.info("a page's socket could not be checked (%s); the page connects again", type(error).__name__)
            failed = NO_LAYER
        await self.close(failed)

    async def _fails_by(self) -> int | None:
        """One check, of some seconds: the code to close with, or None."""
        self.probed = False
        async with asyncio.timeout(CHECK_EVERY):
            await self.channel_layer.send(self.channel_name, {"type": "probe"})
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CHECK_EVERY):
                await self.look_again.wait()
        asked = self.look_again.is_set()
        self.look_again.clear()
        now = await self._current_seat()
        if now is None or self.seat is None:
            return SIGNED_OUT
        if now.tenant != self.seat.tenant:
            return ELSEWHERE
        if not self.probed and not asked:
            return NO_LAYER
        for group in [group for group, topic in self.topics.items() if topic.startswith("job:")]:
            await self._tell_newest(group, now.tenant)
        return None

    async def _current_seat(self) -> Seat | None:
        session = self.scope.get("session")
        key = getattr(session, "session_key", None)
        return await database_sync_to_async(_seat_of_session)(key) if key else None


websocket_urlpatterns: Final = [path("live/", LiveConsumer.as_asgi())]


def _group(tenant: UUID, topic: str) -> str | None:
    if topic == "jobs":
        return nudge.jobs_group(tenant)
    if topic == "approvals":
        return nudge.approvals_group(tenant)
    if topic == "catalog":
        return nudge.catalog_group(tenant)
    kind, _, shown = topic.partition(":")
    try:
        return nudge.job_group(ids.parse(ids.JOB, shown)) if kind == "job" else None
    except ids.BadId:
        return None


def _looking_group(shown: str) -> str:
    """Pages that show this question; empty when it is none."""
    try:
        return f"looking.{ids.parse(ids.HOLD, shown).hex}"
    except ids.BadId:
        return ""


def _seat_of_session(key: str) -> Seat | None:
    found = session_person(key)
    return seat(found.person_id, found.tenant) if found else None
