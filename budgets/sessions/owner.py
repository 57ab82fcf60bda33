"""The one owner of a call's HTTP: one pool, one deadline, one count of bytes and pages (RULES W1–W4).

    owner = Owner(studio, credentials, deadline=Deadline(30), bounds=BOUNDS, workers=workers)
    await owner.run(work)          # work() asks by owner.ask(…)

`run` ends at the deadline, at a bound, or when it is cancelled. From that moment no request, second try or page
begins. What ran is ended within `bounds.streams`, the pool within `bounds.pool`, both shielded: 250 ms in all.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Final

import anyio

from base import outbound
from base.addresses import Address, Refused, read_url
from budgets.rules import acceptance
from budgets.sessions.bounds import Bound, Bounds, Deadline, Stopped
from budgets.sessions.credentials import Credentials, NoCredentials, Pair, PairOfLogin, Shown
from budgets.sessions.workers import Errands, Workers

PREFIX: Final = "/api/v1/budgets/"
REFRESH: Final = "tokens/refresh"
JSON: Final = "application/json"
AGAIN: Final = frozenset({429, 503})  # asked once more where that is safe
DEAD: Final = frozenset({401, 403})  # what an exchange answers to a pair that counts no more
TURN: Final = 0.05  # seconds between two looks whether another is done with the pair
SHORTEST: Final = 1.0  # seconds before a second try that names none


class Lost(Exception):
    """No whole answer. `doubt`: some of it may have been taken in. The message is one sentence."""

    def __init__(self, why: str, *, doubt: bool) -> None:
        super().__init__(why)
        self.doubt: Final = doubt


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer. `body` is its JSON, None where it is none; `doubt`: an earlier try may have been taken in."""

    status: int
    headers: Mapping[str, str]
    body: Any
    doubt: bool = False

    @property
    def not_accepted(self) -> bool:
        """Whether this answer proves that its own request did nothing."""
        return acceptance.not_accepted(self.status, self.headers, self.body)

    @property
    def nothing_made(self) -> bool:
        """Whether no try of it did anything. What an earlier one may have done, a later refusal cannot take back."""
        return not self.doubt and (self.not_accepted or 400 <= self.status < 500)

    @property
    def wait(self) -> float | None:
        """The seconds of a `Retry-After`, None without one. What is no number, such as a date, is too long to wait."""
        text = self.headers.get("retry-after", "").strip()
        return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else inf if text else None


def _nothing() -> None:
    pass


class Owner:
    """Everything that one call asks of the journal."""

    def __init__(
        self, studio: str, credentials: Credentials, *, deadline: Deadline, bounds: Bounds, workers: Workers
    ) -> None:
        self._studio: Final = studio
        self._credentials: Final = credentials
        self._deadline: Final = deadline
        self._bounds: Final = bounds
        self._errands: Final = Errands(workers)
        self._client: outbound.Client | None = None
        self._shown: Shown | None = None
        self._stopped = False
        self._taken = 0  # bytes of bodies
        self._pages = 0

    @property
    def stuck(self) -> bool:
        """Whether a worker of this call is still in the operating system, which may delay the end of the process."""
        return self._errands.stuck

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do it, and clean up. Raises what it raises, `Stopped` at the deadline, and is cancelled as any task."""
        task = asyncio.ensure_future(self._whole(work))
        try:
            await asyncio.wait({task}, timeout=self._deadline.left)
        finally:
            ended = task.done()
            with anyio.CancelScope(shield=True):
                await self._clean_up(task)
        if not ended:
            raise self._deadline.passed()
        task.result()

    async def ask(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        again: bool = False,
        page: bool = False,
        begins: Callable[[], None] = _nothing,
    ) -> Answer:
        """Send one request, and with `again` at most one more: after a wait, or with a new token, never both.

        `begins` is called before the first byte goes out. Raises `Stopped`, `Lost`, `NoCredentials`.
        """
        sent = self._encoded(body)
        if page:
            self._count_page()
        shown = await self._present()
        doubt = False
        for tries_left in (1, 0) if again else (0,):
            try:
                answer = await self._once(method, path, sent, shown.token, begins)
            except Lost as error:
                raise Lost(str(error), doubt=doubt or error.doubt) from error
            if tries_left == 0 or (fresh := await self._may_ask_again(answer, shown)) is None:
                return replace(answer, doubt=doubt)
            doubt, shown = doubt or not answer.not_accepted, fresh
        raise AssertionError("the last try returns")

    async def _whole(self, work: Callable[[], Awaitable[None]]) -> None:
        allowed = [read_url(self._studio).place] if self._studio else []
        self._client = outbound.Client(allowed=allowed, resolve=self._look_up)
        await work()

    async def _look_up(self, host: str, port: int) -> list[Address]:
        """In a worker of this call, so that one that is stuck there is told of."""
        return await self._errands.read(lambda: outbound.look_up(host, port))

    async def _clean_up(self, task: "asyncio.Future[None]") -> None:
        self._stopped = True
        began = time.monotonic()
        if not task.done():
            task.cancel()
            task.add_done_callback(_looked_at)
            await asyncio.wait({task}, timeout=self._bounds.streams)
        await self._errands.settled(max(0.0, self._bounds.streams - (time.monotonic() - began)))
        if self._client is not None:
            closing = asyncio.ensure_future(self._client.close())
            closing.add_done_callback(_looked_at)
            _, late = await asyncio.wait({closing}, timeout=self._bounds.pool)
            for one in late:
                one.cancel()

    async def _present(self) -> Shown:
        """The credentials, read once for a call, and exchanged when their end is near."""
        if self._shown is None:
            self._shown = await self._errands.read(self._credentials.read)
        if self._shown.old:
            self._shown = await self._refreshed(self._shown)
        return self._shown

    async def _may_ask_again(self, answer: Answer, shown: Shown) -> Shown | None:
        """What to show in a second try, once its time has come; None when there is none."""
        if answer.status == 401 and shown.pair is not None:
            self._shown = await self._refreshed(shown)
            return self._shown
        if answer.status not in AGAIN:
            return None
        wait = SHORTEST if answer.wait is None else answer.wait
        if wait > self._bounds.wait:
            return None
        await asyncio.sleep(wait)
        return shown

    async def _refreshed(self, shown: Shown) -> Shown:
        """Exchange the pair, unless another has meanwhile: exchanging it takes its place, so that one does at a time.

        The new one is being kept before anything else can happen (RULES W4). Raises `NoCredentials` where the login
        counts no more, and `Lost` where that is not said; neither says anything of what is asked for.
        """
        old, kept = shown.pair, shown.kept
        if old is None or kept is None:
            return shown
        turn = kept.turn()
        try:
            while not await self._errands.read(turn.taken):  # noqa: ASYNC110  another process sets no event
                await asyncio.sleep(TURN)
            there = await self._errands.read(kept.read)
            if there.pair is None or there.pair.refresh != old.refresh:
                return there
            return await self._exchanged(old, kept)
        finally:
            self._errands.save(turn.give_back)  # after the pair is kept, also when the call is over before that

    async def _exchanged(self, old: Pair, kept: PairOfLogin) -> Shown:
        asked = json.dumps({"refresh_token": old.refresh}).encode()
        saves: list[Awaitable[None]] = []

        def keep(answer: Answer) -> None:
            if (pair := _pair(answer, old)) is not None:
                saves.append(self._errands.save(lambda: kept.save(pair)))

        try:
            answer = await self._once("POST", REFRESH, asked, "", _nothing, keep)
        except Lost as error:
            raise Lost(f"The login's token could not be exchanged for a new one. {error}", doubt=False) from error
        for save in saves:
            await save
        if (pair := _pair(answer, old)) is not None:
            return Shown(pair.access, pair, kept)
        if answer.status in DEAD:
            raise NoCredentials("The login counts no more: type oz0 login once more.")
        raise Lost(
            f"The studio gave no new token for the login's, and not because that counts no more ({answer.status}).",
            doubt=False,
        )

    async def _once(
        self,
        method: str,
        path: str,
        sent: bytes | None,
        token: str,
        begins: Callable[[], None],
        came: Callable[[Answer], None] = lambda _: None,
    ) -> Answer:
        """Exactly one request, and its whole answer, which `came` is told before anything else can happen.

        Raises `Stopped`, `Lost`.
        """
        headers = {"Accept": JSON, **({"Content-Type": f"{JSON}; charset=utf-8"} if sent is not None else {})}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if self._client is None:
            raise RuntimeError("a request is made by the work that `run` does")
        url = f"{self._studio}{PREFIX}{path}"
        began = False

        def may_begin() -> bool:
            nonlocal began
            if self._stopped or self._deadline.over:
                return False
            began = True
            begins()
            return True

        try:
            async with self._client.ask(method, url, headers=headers, body=sent or b"", may_begin=may_begin) as reply:
                self._refuse_encoded(reply)
                body = await self._whole_body(reply)
                answer = Answer(reply.status, reply.headers, _read(body))
                came(answer)
                return answer
        except outbound.Withheld as error:
            raise self._deadline.passed() from error
        except Refused as error:
            raise Lost(f"The journal's address cannot be used: {error}.", doubt=False) from error
        except outbound.Failed as error:
            raise Lost(str(error), doubt=began and error.went_out) from error

    def _refuse_encoded(self, reply: outbound.Reply) -> None:
        coding = reply.headers.get("content-encoding", "identity").strip().lower()
        if coding not in ("", "identity"):
            raise Stopped(Bound.ENCODING, f"The answer is encoded as {coding[:40]}; only identity was asked for.")

    async def _whole_body(self, reply: outbound.Reply) -> bytes:
        """The body, counted as it comes, together with all the others of this call."""
        most = self._bounds.responses
        left = 2**62 if most is None else most - self._taken
        chunks: list[bytes] = []
        try:
            async for chunk in reply.chunks(left):
                self._taken += len(chunk)
                chunks.append(chunk)
        except outbound.TooLong as error:
            raise Stopped(Bound.RESPONSE, f"The answers of this call have more than {most} bytes in all.") from error
        return b"".join(chunks)

    def _encoded(self, body: object) -> bytes | None:
        """The body as UTF-8, nothing of it escaped. Raises `Stopped` before anything is sent."""
        if body is None:
            return None
        if not isinstance(body, dict):
            raise Stopped(Bound.STREAM, "A request's body is one whole object; nothing is streamed to the journal.")
        try:
            sent = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        except ValueError as error:
            raise Stopped(Bound.REQUEST, "The request cannot be written as JSON in UTF-8; none was sent.") from error
        if len(sent) > self._bounds.request:
            raise Stopped(
                Bound.REQUEST, f"The request has {len(sent)} bytes, and at most {self._bounds.request}; none was sent."
            )
        return sent

    def _count_page(self) -> None:
        if self._bounds.pages is not None and self._pages >= self._bounds.pages:
            raise Stopped(Bound.PAGES, f"A call reads at most {self._bounds.pages} pages; there are more.")
        self._pages += 1


def _looked_at(task: "asyncio.Future[Any]") -> None:
    """Nobody waits for it any more: what it raises is nothing to tell of."""
    with suppress(asyncio.CancelledError):
        task.exception()


def _read(body: bytes) -> Any:
    """The JSON of a body; None where it is none, or holds what none can: half a surrogate pair, or no finite number."""
    try:
        found = json.loads(body.decode())
        json.dumps(found, ensure_ascii=False, allow_nan=False).encode()
        return found
    except (ValueError, RecursionError):
        return None


def _pair(answer: Answer, old: Pair) -> Pair | None:
    """The pair of an answer, None when it has none of the project of the one before."""
    found = Pair.read(answer.body) if answer.status == 200 else None
    if found is None or (old.project and found.project != old.project):
        return None
    return replace(found, name=old.name)
