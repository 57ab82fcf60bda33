"""Confirming what a call has used, and telling of it: two things, of which each may fail alone (RULES S8)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from budgets.rules.attribution import Event
from budgets.sessions.calls import CONFIRMED, UNKNOWN, Call, failed, lost, state_after
from budgets.sessions.owner import Lost, Owner
from budgets.sessions.recording import Entry, Recording
from budgets.sessions.shapes import Used

PATH: Final = "confirm"
SETTLED: Final = 204
NO_RESERVATION: Final = "null_reservation"


class Confirmation(Call):
    """Settle one reservation, once, and record the call. Without a reservation there is nothing to settle."""

    def __init__(self, reservation_id: str | None, used: Used, *, record: bool, now: datetime, instance: UUID) -> None:
        super().__init__()
        self.reservation_id: Final = reservation_id
        self.used: Final = used
        self.recording = Recording([Entry(_event(used, now, instance))], asked=record)
        self.recovery.reservation_id = reservation_id
        self.recovery.call_id = used.call_id

    async def work(self, owner: Owner) -> None:
        """One POST, and then the event. Raises `Failed` unless it is settled."""
        if self.reservation_id is not None:
            await self._settle(owner, self.reservation_id)
        await self.recording.tell(owner)
        self.recovery.recording = self.recording.recorded

    def data(self) -> Mapping[str, Any] | None:
        """What was settled, what became of the event, and the event to keep: it was made before anything was sent."""
        return {
            "confirmed": self.recovery.settlement == CONFIRMED,
            "skipped": NO_RESERVATION if self.reservation_id is None else None,
            "reservation_id": self.reservation_id,
            "call_id": self.used.call_id,
            "recorded": self.recording.acknowledged,
            "recordings": self.recording.as_json(),
            "recording_retry": dict(self.recording.entries[0].event),
        }

    def stopped(self) -> None:
        """What was not sent will not be."""
        self.recording.stopped()
        self.recovery.recording = self.recording.recorded

    async def _settle(self, owner: Owner, reservation_id: str) -> None:
        def begins() -> None:
            self.recovery.settlement = UNKNOWN

        body = {"reservation_id": reservation_id, **self.used.settles()}
        try:
            answer = await owner.ask("POST", PATH, body=body, begins=begins)
        except Lost as error:
            raise lost(error) from error
        if answer.status != SETTLED:
            self.recovery.settlement = state_after(answer)
            raise failed(answer, "confirm")
        self.recovery.settlement = CONFIRMED


class EventAgain(Call):
    """Send exactly this event. It confirms nothing, and says so (RULES S11)."""

    def __init__(self, event: Event) -> None:
        super().__init__()
        self.recording = Recording([Entry(event)])
        self.recovery.call_id = str(event["call_id"])

    async def work(self, owner: Owner) -> None:
        """One ingest. Raises `Failed` unless the journal has it for sure."""
        await self.recording.tell(owner)
        self.recovery.recording = self.recording.recorded
        if failure := self.recording.failure():
            raise failure

    def data(self) -> Mapping[str, Any] | None:
        """What became of it."""
        return {
            "confirmed": False,
            "recorded": self.recording.acknowledged,
            "recordings": self.recording.as_json(),
            "recording_retry": dict(self.recording.entries[0].event),
        }

    def stopped(self) -> None:
        """What was not sent will not be."""
        self.recording.stopped()
        self.recovery.recording = self.recording.recorded


def _event(used: Used, now: datetime, instance: UUID) -> dict[str, Any]:
    """The event of a call that was made: of a moment and an instance of its own."""
    whole = used.model_dump(mode="json", exclude_none=True)
    return {
        "call_id": whole.pop("call_id"),
        "instance_id": str(instance),
        "attempt_index": 0,
        "timestamp": now.isoformat(),
        "status": "success",
        **whole,
    }
