"""The one door to whatever answers an agent's turns."""

import asyncio
import logging
import threading
from typing import Final

from django.conf import settings

from catalog.rules.model_names import REHEARSAL, ModelName, read_model
from catalog.rules.servers import Remote
from jobs.agent import providers, rehearsal
from jobs.rules.limits import TURN_OWN_LIMIT
from jobs.rules.turns import TurnBusy, TurnFailed, TurnOrder, TurnOutcome

log = logging.getLogger(__name__)

STOPPED: Final = TurnFailed("Its job was being stopped, so the model's answer was not waited for.")
NODE_ENDED: Final = TurnBusy("Its node was ended before the model had answered.", wait=0.0, went_out=True)


def ask(order: TurnOrder) -> TurnOutcome:
    """Ask the agent's model for its next turn, and wait for its answer. Never raises."""
    return Question(order).ask()


class Question:
    """One question to an agent's model. `ask` blocks the thread that calls it; the rest may be called from any."""

    def __init__(self, order: TurnOrder) -> None:
        self.order: Final = order
        self.said = ""
        """What the model has said so far."""
        self._lock: Final = threading.Lock()
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[TurnOutcome]] | None = None
        self._instead: TurnOutcome | None = None

    def ask(self) -> TurnOutcome:
        """Ask for the next turn. Never raises: an error of ours fails the turn, and is in the log."""
        try:
            return self._ask()
        except Exception as error:
            log.exception("turn %s could not be asked", self.order.turn_id)
            return TurnFailed(f"an error in the studio, which its log has in full: {type(error).__name__}")

    def end_within(self, seconds: float, outcome: TurnOutcome) -> None:
        """Wait no longer than this for the answer; past it the question comes to `outcome`."""
        with self._lock:
            if self._running is not None:
                loop, _ = self._running
                loop.call_soon_threadsafe(lambda: loop.call_later(seconds, self._give_up, outcome))
            elif seconds <= 0:
                self._instead = outcome

    def _ask(self) -> TurnOutcome:
        order = self.order
        if order.agent.model == REHEARSAL:
            return rehearsal.ask(order, home=str(settings.OZ0_HOME))
        named = read_model(order.agent.model)
        if named is None:
            return TurnFailed(f"{order.agent.name} names no model that can be asked", agents_fault=True, charged=False)
        if order.remote is None or order.remote.trouble:
            return TurnFailed(order.remote.trouble if order.remote else "its provider has no connection", charged=False)
        return asyncio.run(self._wait_for(named, order.remote))

    async def _wait_for(self, named: ModelName, remote: Remote) -> TurnOutcome:
        asking = providers.ask(self.order, named, remote, limit=TURN_OWN_LIMIT, on_text=self._hear)
        with self._lock:
            task = asyncio.ensure_future(asking)
            self._running = asyncio.get_running_loop(), task
            if self._instead is not None:
                task.cancel()
        try:
            return await task
        except asyncio.CancelledError:
            if self._instead is None:
                raise
            return self._instead
        finally:
            with self._lock:
                self._running = None

    def _give_up(self, outcome: TurnOutcome) -> None:
        """Called in the loop."""
        with self._lock:
            if self._running is not None and self._instead is None:
                self._instead = outcome
                self._running[1].cancel()

    def _hear(self, text: str) -> None:
        self.said = text
