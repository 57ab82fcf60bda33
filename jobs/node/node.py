"""The node as a library: any process may host one. Orders go in, outcomes come out; it knows no database.

    node = Node(on_late=keep_as_evidence)
    node.start()
    match node.open(spec): ...                     # a live session, or why there is none
    started = boot_time()                          # read before the claim is sent
    outcome = node.run(order, started=started)     # blocks, at most to the order's timeout and a little
    node.shutdown(grace=60)

Every method may be called from any thread. One loop in one thread owns all sessions.
"""

import asyncio
import concurrent.futures
import logging
import math
import threading
from collections.abc import Callable, Collection, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final
from uuid import UUID

from base import sandbox
from base.clock import boot_time
from catalog.rules.answers import Answer
from catalog.rules.servers import MeasuredListing, ServerSpec
from catalog.rules.wire import Wire
from catalog.sessions import NotUp
from jobs.node.attempt import Attempt, result_of
from jobs.node.pool import Pool
from jobs.node.programs import Ended, Programs
from jobs.node.values import CannotMeasure, NotOpened, Opened, ServerStatus
from jobs.rules.orders import End, Order, Outcome, Progress, Result
from jobs.rules.reasons import Reason, sentence
from jobs.rules.sessions import SessionEnd, SessionOrder

log = logging.getLogger(__name__)

OVERTIME: Final = 10.0  # seconds past an attempt's full timeout after which its caller no longer waits for the loop
STARTUP_OVERTIME: Final = 20.0  # seconds of back-off waited out, and to clear away a server that did not start
LAST_ANSWERS: Final = 1.0  # seconds that cancelled attempts have to answer when the node stops
CLOSING: Final = 10.0  # seconds for all servers to be ended


class Node:
    """`on_late(attempt_id, result)` gets answers that came after their attempt had ended (RULES L9), one at a time
    and outside the loop, so it may block; it is called at most once per attempt. `on_program_end(order, how)` gets each
    harness program that was begun, once; it is called in the loop, so it must not block.
    """

    def __init__(
        self,
        *,
        on_late: Callable[[UUID, Result], None] | None = None,
        on_program_end: Ended | None = None,
        clock: Callable[[], float] = boot_time,
    ) -> None:
        self._on_late: Final = on_late
        self._on_program_end: Final = on_program_end
        self._clock: Final = clock
        self._attempts: Final[dict[UUID, Attempt]] = {}
        self._lock: Final = threading.Lock()
        self._nothing_open: Final = threading.Condition(self._lock)
        self._stopping = False
        self._finish_by = math.inf  # of boot time: running attempts are cancelled then
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pool: Pool | None = None
        self._programs: Programs | None = None
        self._late: Final = ThreadPoolExecutor(1, thread_name_prefix="oz0-late")

    def start(self) -> None:
        """Start the loop's thread. Raises `RuntimeError` when it was started before."""
        if self._thread is not None:
            raise RuntimeError("a node starts once: make a new one")
        sandbox.measured()  # once, before anything waits for it
        ready = threading.Event()
        self._thread = threading.Thread(target=self._work, args=(ready,), name="oz0-node", daemon=True)
        self._thread.start()
        ready.wait()

    def open(self, spec: ServerSpec) -> Opened | NotOpened:
        """Wait for a live session, at most `spec.startup` and 20 s. Callers of one key share one start."""
        if self._stopping:
            return NotOpened(Reason.NODE_STOPPING, sentence(Reason.NODE_STOPPING), 0, 0.0)
        future = self._submit(self._running_pool().open(spec))
        try:
            return future.result(spec.startup + STARTUP_OVERTIME)
        except (TimeoutError, concurrent.futures.CancelledError):
            future.cancel()
            detail = f"The server was not ready within its {spec.startup:g} s to start."
            return NotOpened(Reason.SERVER_NOT_UP, detail, 0, 1.0)

    def run(self, order: Order, *, started: float) -> Outcome:
        """Make one attempt and return its outcome; never waits past the order's timeout and 10 s.

        Raises `ValueError` for an attempt that is running here already, and nothing else. `started` is `boot_time()`
        as read before the claim was sent. Open a session first: without a live one the attempt is `not_made`.
        """
        attempt = Attempt(order, started, self._clock)
        with self._lock:
            if self._stopping or self._loop is None:
                return Outcome(End.NOT_MADE, Reason.NODE_STOPPING, Wire(detail=sentence(Reason.NODE_STOPPING)))
            if (
                sum(1 for other in self._attempts.values() if other.order.server.key == order.server.key)
                >= order.server.calls_at_once
            ):
                return Outcome(End.NOT_MADE, Reason.NO_SLOT, Wire(detail=sentence(Reason.NO_SLOT)))
            if order.attempt_id in self._attempts:
                raise ValueError(f"attempt {order.attempt_id} is already running: each attempt has an id of its own")
            self._attempts[order.attempt_id] = attempt
        try:
            return self._outcome_of(attempt, started)
        finally:
            with self._lock:
                del self._attempts[order.attempt_id]
                self._nothing_open.notify_all()

    def stop(self, attempt_id: UUID, why: str) -> bool:
        """Ask an attempt to stop; `why` is one of `reasons.STOPS`. False when no such attempt is open here."""
        attempt, reason = self._attempts.get(attempt_id), Reason(why)
        if attempt is None:
            return False
        self._call_soon(attempt.ask_stop, reason)
        return True

    def progress(self) -> dict[UUID, Progress]:
        """The last valid progress of each open attempt that has reported any (RULES P1)."""
        with self._lock:
            return {id_: attempt.progress for id_, attempt in self._attempts.items() if attempt.progress is not None}

    def open_attempts(self) -> frozenset[UUID]:
        """The attempts whose `run` has not returned."""
        with self._lock:
            return frozenset(self._attempts)

    def servers(self) -> list[ServerStatus]:
        """Every server of this node, for pages. Empty when the node is not running."""
        if self._loop is None or self._pool is None or self._stopping:
            return []
        try:
            return self._submit(_soon(self._pool.statuses)).result(5)
        except (TimeoutError, concurrent.futures.CancelledError):
            return []

    def measure(self, spec: ServerSpec) -> MeasuredListing:
        """Read the server's whole listing now, starting it if need be (RULES C2). Raises `CannotMeasure`."""
        opened = self.open(spec)
        if isinstance(opened, NotOpened):
            raise CannotMeasure(opened.detail, opened.status)
        future = self._submit(self._measured(spec))
        try:
            return future.result(spec.startup + (STARTUP_OVERTIME if spec.sandbox is not None else 0.0))
        except (TimeoutError, concurrent.futures.CancelledError) as error:
            future.cancel()
            raise CannotMeasure(f"The server did not list its functions within {spec.startup:g} s.") from error

    def end_servers_of(self, jobs: Collection[UUID], tools: Collection[UUID] = ()) -> None:
        """End the sandboxed servers of jobs that are over, those long idle, and every server of tools that are gone.

        Does not wait.
        """
        if self._loop is not None and self._pool is not None and not self._stopping:
            with suppress(RuntimeError):  # the loop has just been closed by `shutdown`
                self._loop.call_soon_threadsafe(self._pool.end_own, jobs)
                self._loop.call_soon_threadsafe(self._pool.end_of, tools)

    def begin(self, order: SessionOrder) -> bool:
        """Start a harness session's program, which the loop then watches. False, and nothing, while the node stops."""
        if self._stopping or self._loop is None or self._programs is None:
            return False
        with suppress(RuntimeError):  # the loop has just been closed by `shutdown`
            self._loop.call_soon_threadsafe(self._programs.begin, order)
            return True
        return False

    def stop_program(self, session_id: UUID) -> None:
        """End a harness session's program, with its clean-up time; does not wait, and late is no error."""
        if self._loop is not None and self._programs is not None:
            with suppress(RuntimeError):  # the loop has just been closed by `shutdown`
                self._loop.call_soon_threadsafe(self._programs.stop, session_id)

    def shutdown(self, grace: float) -> None:
        """Accept nothing more, let running attempts and programs finish for `grace` seconds, then cancel them, end
        every server and the loop. Every `run` returns. Takes at most the grace and about 10 s. Called once more
        meanwhile, it only shortens the first call's grace.
        """
        with self._lock:
            self._finish_by = min(self._finish_by, boot_time() + grace)
            self._nothing_open.notify_all()
            if self._stopping:
                return
            self._stopping = True
            while self._is_busy() and (left_over := self._finish_by - boot_time()) > 0:
                self._nothing_open.wait(left_over)
            left = list(self._attempts.values())
            for attempt in left:
                self._call_soon(attempt.ask_stop, Reason.NODE_STOPPING)
            if left:
                self._nothing_open.wait_for(lambda: not self._attempts, timeout=LAST_ANSWERS)
        if self._loop is None or self._thread is None or self._pool is None:
            return
        if self._programs is not None:
            with suppress(TimeoutError, concurrent.futures.CancelledError):
                self._submit(self._programs.close()).result(CLOSING)
        try:
            self._submit(self._pool.close()).result(CLOSING)
        except (TimeoutError, concurrent.futures.CancelledError):
            log.error("not every server could be ended within %g s", CLOSING)
        with self._lock:
            self._nothing_open.wait_for(lambda: not self._attempts, timeout=1.0)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5.0)
        self._late.shutdown(wait=True)

    # --- inside --------------------------------------------------------------------------------------------------

    def _outcome_of(self, attempt: Attempt, started: float) -> Outcome:
        future = self._submit(self._run(attempt))
        try:
            return self._waited_for(attempt, future)
        except BaseException as error:
            went_out = attempt.abandon()
            future.cancel()
            if not isinstance(error, TimeoutError | concurrent.futures.CancelledError):
                log.exception("attempt %s ended by an error of ours", attempt.order.attempt_id)
                if not isinstance(error, Exception):
                    raise
            detail = "The node could not follow the attempt to its end."
            if not went_out:
                return Outcome(End.NOT_MADE, Reason.NODE_LOST, Wire(detail=detail))
            return Outcome(
                End.LOST, Reason.NODE_LOST, Wire(connected=True, went_out=True, detail=detail), end_known=False
            )

    def _waited_for(self, attempt: Attempt, future: "concurrent.futures.Future[Outcome]") -> Outcome:
        """The outcome; waits on where a stopped call's server is known to tell its end (RULES L2)."""
        until = max(attempt.ends_by, self._clock()) + OVERTIME
        while True:
            try:
                return future.result(max(0.0, until - self._clock()))
            except TimeoutError:
                if future.done() or attempt.ends_by + OVERTIME <= until:
                    raise
                until = attempt.ends_by + OVERTIME

    async def _run(self, attempt: Attempt) -> Outcome:
        pool, spec = self._running_pool(), attempt.order.server
        with pool.using(spec):
            if spec.sandbox is None:
                return await attempt.run(pool.live(spec))
            return await attempt.run(pool.live(spec), end_server=lambda: pool.end(spec))

    async def _measured(self, spec: ServerSpec) -> MeasuredListing:
        session = self._running_pool().live(spec)
        if session is None:
            raise CannotMeasure(sentence(Reason.SERVER_NOT_UP))
        try:
            return await session.measure()
        except NotUp as error:
            raise CannotMeasure(str(error), error.status) from error
        finally:
            if spec.sandbox is not None:  # it was started for this alone
                await self._running_pool().end(spec)

    def _is_busy(self) -> bool:
        return bool(self._attempts) or (self._programs is not None and self._programs.running)

    def _program_ended(self, order: SessionOrder, how: SessionEnd) -> None:
        with self._lock:
            self._nothing_open.notify_all()
        if self._on_program_end is not None:
            self._on_program_end(order, how)

    def _came_late(self, owner: object, answer: Answer) -> None:
        if self._on_late is not None and isinstance(owner, UUID):
            self._late.submit(self._tell_late, self._on_late, owner, result_of(answer))

    def _tell_late(self, tell: Callable[[UUID, Result], None], attempt_id: UUID, result: Result) -> None:
        try:
            tell(attempt_id, result)
        except Exception:
            log.exception("the late answer of attempt %s could not be kept", attempt_id)

    def _work(self, ready: threading.Event) -> None:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        self._pool, self._programs, self._loop = Pool(self._came_late), Programs(self._program_ended), loop
        loop.call_soon(ready.set)
        try:
            loop.run_forever()
        finally:
            for task in asyncio.all_tasks(loop):
                task.cancel()
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()

    def _running_pool(self) -> Pool:
        if self._pool is None:
            raise RuntimeError("the node is not running: call start() first")
        return self._pool

    def _submit[T](self, work: Coroutine[Any, Any, T]) -> "concurrent.futures.Future[T]":
        if self._loop is None:
            work.close()
            raise RuntimeError("the node is not running: call start() first")
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:  # the loop has just been closed by `shutdown`
            work.close()
            ended: concurrent.futures.Future[T] = concurrent.futures.Future()
            ended.cancel()
            return ended

    def _call_soon(self, act: Callable[[Reason], None], why: Reason) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has just been closed by `shutdown`: nothing runs any more
                self._loop.call_soon_threadsafe(act, why)


async def _soon[T](read: Callable[[], T]) -> T:
    """Read something of the loop's, in the loop."""
    return read()
