"""One attempt, from its order to its outcome: the race between answer, stop, time limit and the server's end.

Lives in the node's loop; `ask_stop` is called there too. The thread that waits for the outcome may look at
`went_out`, and `abandon` the attempt when the loop itself does not answer.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from threading import Lock
from typing import Any, Final

from base.clock import boot_time
from catalog.rules.answers import Answer, AnswerKind
from catalog.rules.http import NoAnswer, NotMade
from catalog.rules.wire import AnswerEnd, Wire
from catalog.sessions import Broke, Call, CallEnd, NotUp, Session
from jobs.rules.limits import CANCEL_PATIENCE
from jobs.rules.orders import End, Order, Outcome, Progress, Result, Sighting
from jobs.rules.progress import next_progress
from jobs.rules.reasons import STOPS, Reason, sentence

ENDS_AWAITED: Final = STOPS  # a node that is stopping itself waits for nobody
ENDING: Final = 8.0  # seconds for a server of a job's own to be ended; all steps of it together take less
PATIENCE: Final = CANCEL_PATIENCE - 5.0  # a little before the sweep would close it
LOOK_AGAIN: Final = 1.0  # seconds; timers sleep with the machine, the boot-time clock does not


class Attempt:
    """`started` is the boot-time reading taken before the claim was sent; both limits count from it (RULES L4)."""

    def __init__(self, order: Order, started: float, clock: Callable[[], float] = boot_time) -> None:
        self.order: Final = order
        self.progress: Progress | None = None
        self.stop_reason: Reason | None = None
        self.ends_by: float = started + order.timeout  # boot time: `run` has returned by then, or soon after
        self._started: Final = started
        self._clock: Final = clock
        self._stop_asked: Final = asyncio.Event()
        self._lock: Final = Lock()
        self._abandoned = False
        self._begun = False
        self._end_server: Callable[[], Coroutine[Any, Any, None]] | None = None
        self._ending: asyncio.Task[None] | None = None

    @property
    def went_out(self) -> bool:
        """Whether a byte of the request may have left. From any thread."""
        return self._begun

    def abandon(self) -> bool:
        """Give the attempt up from outside the loop: from now on nothing is sent. Whether it may have gone out."""
        with self._lock:
            self._abandoned = True
            return self._begun

    def ask_stop(self, why: Reason) -> None:
        """Stop it; the first reason counts."""
        if self.stop_reason is None:
            self.stop_reason = why
            self._stop_asked.set()

    async def run(
        self, session: Session | None, *, end_server: Callable[[], Coroutine[Any, Any, None]] | None = None
    ) -> Outcome:
        """The attempt's one outcome, at the latest at the order's full timeout.

        `end_server` ends the server of a sandboxed tool, which is this call's alone while it runs. A cut call has then
        ended with its process, which may take some seconds past the timeout (RULES L1, L2).
        """
        self._end_server = end_server
        remote = self.order.server.remote
        if remote is not None and remote.trouble:  # what a session shows ran out since it was opened for this attempt
            return self._not_made(Reason.SERVER_NOT_UP, remote.trouble)
        if session is None or session.ended.done():
            return self._not_made(Reason.SERVER_NOT_UP)
        if (refusal := await self._refused_by_listing(session)) is not None:
            return refusal
        function = session.function(self.order.function)
        call = Call(
            owner=self.order.attempt_id,
            may_begin=self._may_begin,
            on_progress=self._progressed,
            progress_token=self.order.attempt_id.hex if self.order.retry_safe else "",
            output_schema=function.output_schema if function is not None else None,
        )
        resume = self.order.resume
        try:
            session.send(
                call,
                name=self.order.function,
                arguments=self.order.arguments,
                key=self.order.key,
                resume={"token": resume.token, "progress": resume.progress} if resume is not None else None,
            )
        except (ValueError, TypeError, RecursionError) as error:
            return self._not_made(
                Reason.ARGUMENTS_UNSENDABLE, f"The arguments cannot be written as JSON: {type(error).__name__}."
            )
        try:
            return await self._race(call, session)
        finally:
            call.close()

    async def _refused_by_listing(self, session: Session) -> Outcome | None:
        """The outcome when the server's own listing is not the one the call was judged by."""
        if session.stale:
            reading = asyncio.ensure_future(session.fresh())
            await self._until(reading, self._own_limit)
            if not reading.done():
                reading.cancel()
                return self._not_made(self.stop_reason or Reason.LATE_START)
            try:
                reading.result()
            except NotUp as error:
                return self._not_made(Reason.SERVER_NOT_UP, f"The server's changed listing could not be read: {error}")
        function = session.function(self.order.function)
        if function is None:
            return self._judged_by_another(session, Reason.FUNCTION_GONE)
        if function.digest != self.order.entry_digest:
            return self._judged_by_another(session, Reason.LISTING_CHANGED)
        return None

    def _judged_by_another(self, session: Session, reason: Reason) -> Outcome:
        return replace(self._not_made(reason), seen=Sighting(session.listing, self._clock() - session.listing_age))

    # --- the race ------------------------------------------------------------------------------------------------

    async def _race(self, call: Call, session: Session) -> Outcome:
        await self._until(call.ended, self._own_limit)
        if call.ended.done():
            if isinstance(call.ended.result(), Broke):
                await self._server_gone()
            return self._ended(call, call.ended.result())
        if call.withdraw():
            return self._not_made(self.stop_reason or Reason.LATE_START)
        why = self.stop_reason
        call.cancel("cancelled" if why else "time limit")
        now, full = self._clock(), self._started + self.order.timeout
        until = min(now + self.order.cleanup, full) if why else full
        if why in ENDS_AWAITED and session.acknowledges:
            self.ends_by = until = full + PATIENCE
        await self._until(call.ended, until, stoppable=False)
        if call.ended.done() and not isinstance(call.ended.result(), Broke):
            self._begin_to_end_server()
        else:
            await self._server_gone()
        end, reason = (self._end_when_cut(End.STOPPED), why) if why else (End.TIMED_OUT, Reason.TIME_LIMIT)
        if not call.ended.done():
            evidence = f" {call.heard.evidence}" if call.heard is not None else ""
            return self._cut_off(end, reason, AnswerEnd.NONE, f"No answer came.{evidence}", call, known=False)
        how = call.ended.result()
        if isinstance(how, NotMade):
            return self._refused(call, how)
        if isinstance(how, NoAnswer):
            return self._cut_off(end, reason, how.ended, how.why, call, known=False)
        if isinstance(how, Broke):
            if not call.went_out:
                return self._not_made(reason, how.why)
            return self._cut_off(end, reason, AnswerEnd.BROKEN, how.why, call, known=True)
        if how.kind is AnswerKind.ERROR:
            said = "The server ended the request with an error."
            return self._cut_off(end, reason, AnswerEnd.COMPLETE, said, call, known=True)
        if how.kind is AnswerKind.UNREADABLE:
            return self._cut_off(end, reason, AnswerEnd.UNREADABLE, how.text, call, known=True)
        return self._answered(how, call)

    def _begin_to_end_server(self) -> None:
        """Its clean-up time is over: end a sandboxed tool's server. The next call of the job gets a new one."""
        if self._end_server is not None and self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._end_server())

    async def _server_gone(self) -> None:
        """The same, and wait for it: with its process the call has ended, and only then is that said (RULES L2)."""
        self._begin_to_end_server()
        if self._ending is not None:
            await self._until(self._ending, self._clock() + ENDING, stoppable=False)

    async def _until(self, waited: "asyncio.Future[Any]", until: float, *, stoppable: bool = True) -> None:
        """Wait for `waited`, the boot-time `until`, or (when `stoppable`) a stop, whichever is first."""
        stop = asyncio.ensure_future(self._stop_asked.wait()) if stoppable else None
        both = [waited] if stop is None else [waited, stop]
        try:
            while (left := until - self._clock()) > 0:
                done, _ = await asyncio.wait(both, timeout=min(left, LOOK_AGAIN), return_when=asyncio.FIRST_COMPLETED)
                if done:
                    return
        finally:
            if stop is not None:
                stop.cancel()

    @property
    def _own_limit(self) -> float:
        return self._started + self.order.own_limit

    def _may_begin(self) -> bool:
        """Asked by the connection right before the first byte: the last look at the clock (MACHINES 3)."""
        with self._lock:
            if self._abandoned or self.stop_reason is not None or self._clock() >= self._own_limit:
                return False
            self._begun = True
            return True

    def _progressed(self, params: Mapping[str, Any]) -> None:
        self.progress = next_progress(self.progress, params)

    # --- outcomes ------------------------------------------------------------------------------------------------

    def _ended(self, call: Call, how: CallEnd) -> Outcome:
        if isinstance(how, Answer):
            return self._answered(how, call)
        if isinstance(how, NotMade):
            return self._refused(call, how)
        if not call.went_out:
            return self._not_made(self.stop_reason or Reason.SERVER_NOT_UP, how.why)
        known = isinstance(how, Broke)  # a process that is gone has stopped; a remote server may go on
        if isinstance(how, NoAnswer) and how.ended is AnswerEnd.UNREADABLE:
            end = self._end_when_cut(End.UNREADABLE)
            return self._cut_off(end, self.stop_reason or Reason.UNREADABLE, how.ended, how.why, call, known=known)
        reason = self.stop_reason or Reason.CONNECTION_BROKE
        detail = f"{how.why} The request had gone out and no answer came."
        return self._cut_off(self._end_when_cut(End.BROKEN), reason, AnswerEnd.BROKEN, detail, call, known=known)

    def _refused(self, call: Call, how: NotMade) -> Outcome:
        status = call.heard.status if call.heard is not None else None
        wire = Wire(connected=True, went_out=True, status=status, ended=AnswerEnd.COMPLETE, detail=how.why)
        return Outcome(End.NOT_MADE, self.stop_reason or Reason.REFUSED_BY_SERVER, wire, progress=self.progress)

    def _end_when_cut(self, end: End) -> End:
        """What a stopping node cuts off is lost with it, and what a stop cuts off is stopped, also by a break."""
        if self.stop_reason is Reason.NODE_STOPPING:
            return End.LOST
        return End.STOPPED if self.stop_reason is not None else end

    def _answered(self, answer: Answer, call: Call) -> Outcome:
        ended = {AnswerKind.TOO_LARGE: AnswerEnd.TOO_LARGE, AnswerKind.UNREADABLE: AnswerEnd.UNREADABLE}
        if answer.kind is AnswerKind.UNREADABLE:
            return self._cut_off(End.UNREADABLE, Reason.UNREADABLE, AnswerEnd.UNREADABLE, answer.text, call, known=True)
        reason = {
            AnswerKind.ERROR: Reason.SERVER_ERROR,
            AnswerKind.INPUT: Reason.ASKED_FOR_INPUT,
            AnswerKind.TOO_LARGE: Reason.TOO_LARGE,
        }.get(answer.kind, Reason.TOOL_ERROR if answer.is_error else Reason.ANSWERED)
        if answer.busy:
            reason = Reason.BUSY
        return Outcome(
            End.BUSY if answer.busy else End.ANSWERED,
            reason,
            Wire(
                connected=True,
                went_out=True,
                status=call.heard.status if call.heard is not None else None,
                ended=ended.get(answer.kind, AnswerEnd.COMPLETE),
                detail=sentence(reason),
            ),
            result=result_of(answer),
            retry_after=answer.retry_after if answer.busy else None,
            progress=self.progress,
        )

    def _not_made(self, reason: Reason, detail: str = "") -> Outcome:
        connected = reason is not Reason.SERVER_NOT_UP
        return Outcome(End.NOT_MADE, reason, Wire(connected=connected, detail=detail or sentence(reason)))

    def _cut_off(self, end: End, reason: Reason, ended: AnswerEnd, detail: str, call: Call, *, known: bool) -> Outcome:
        if end is End.TIMED_OUT:
            detail = (
                f"It stopped itself at {self.order.own_limit:g} s of its limit of {self.order.timeout:g} s. {detail}"
            )
        status = call.heard.status if call.heard is not None else None
        wire = Wire(connected=True, went_out=True, status=status, ended=ended, detail=detail)
        return Outcome(end, reason, wire, progress=self.progress, end_known=known)


def result_of(answer: Answer) -> Result:
    """The answer as the core keeps it."""
    return Result(answer.text, answer.is_error, answer.content, answer.structured, answer.warning)
