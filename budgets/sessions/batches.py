"""A batch of checks: submitted once, looked up, or its denials told again (RULES S1–S7, S11).

There is no other way in: a journal without batches answers 404, and nothing is tried instead. Nothing here submits an
id a second time, draws another id for it, or asks for an item again.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from budgets.rules.attribution import Event, Recorded, denial, why_not_denial
from budgets.rules.words import ItemState
from budgets.sessions.calls import UNKNOWN, Call, Failed, failed, lost, state_after
from budgets.sessions.owner import Lost, Owner
from budgets.sessions.recording import Entry, Recording
from budgets.sessions.shapes import BadShape, Batch, Check, Item, plain, read

PATH: Final = "check/batches"
INCOMPLETE: Final = "batch_check_failed"


class _OfOperation(Call):
    """What is known of one operation."""

    def __init__(self, operation_id: str) -> None:
        super().__init__()
        self.operation_id: Final = operation_id
        self.recovery.operation_id = operation_id
        self.batch: Batch | None = None
        self.recording = Recording()

    def data(self) -> Mapping[str, Any] | None:
        """The operation as the journal has it, and its results in their order."""
        if self.batch is None:
            return None
        told = self.batch.model_dump(mode="json")
        return told | {"results": [_result(one) for one in self.batch.items]}

    def _take(self, batch: Batch) -> None:
        self.batch = batch
        self.recovery.standing = batch.status
        self._tell()

    def _tell(self) -> None:
        if self.batch is not None:
            told = {one.index: one for one in self.recording.entries}
            self.recovery.items = [_known(one, told.get(one.index)) for one in self.batch.items]

    def _incomplete(self) -> Failed | None:
        if self.batch is None or self.batch.completed:
            return None
        states = [one.state.value for one in self.batch.items]
        told = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
        return Failed(
            INCOMPLETE,
            f"The operation is {self.batch.status}: {told}. Keep every reservation; ask for none of the rest again by "
            "itself, and look the operation up by recover_only.",
        )


class Submission(_OfOperation):
    """Submit checks, once, and record the denials among them."""

    def __init__(self, operation_id: str, checks: Sequence[Check], *, record: bool) -> None:
        super().__init__(operation_id)
        self.checks: Final = [plain(one) for one in checks]
        self.recording = Recording(asked=record)

    async def work(self, owner: Owner) -> None:
        """One POST. Raises `Failed` unless every item is completed."""
        body = {"operation_id": self.operation_id, "checks": self.checks}
        try:
            answer = await owner.ask("POST", PATH, body=body, begins=self._begins)
        except Lost as error:
            raise lost(error) from error
        batch = _believed(answer.body, self.operation_id, len(self.checks)) if answer.status == 200 else None
        if batch is None:
            self.recovery.standing = state_after(answer)
            raise failed(answer, "check")
        self._take(batch)
        self.recording.entries = [self._denial(one) for one in batch.items if one.result and not one.result.allowed]
        self._tell()
        await self.recording.tell(owner)
        self._tell()
        if failure := self._incomplete():
            raise failure

    def data(self) -> Mapping[str, Any] | None:
        """Also what became of each denial's event, and the events to keep."""
        found = super().data()
        if found is None:
            return None
        return {
            **found,
            "recorded": self.recording.acknowledged if self.recording.entries else None,
            "recordings": self.recording.as_json(),
            "recording_retry": self.recording.to_keep(),
        }

    def stopped(self) -> None:
        """What was not sent will not be."""
        self.recording.stopped()
        self._tell()

    def _tell(self) -> None:
        super()._tell()
        if self.batch is not None:
            self.recovery.recording = self.recording.recorded

    def _begins(self) -> None:
        self.recovery.standing = UNKNOWN

    def _denial(self, item: Item) -> Entry:
        return Entry(denial(self.operation_id, item.index, self.checks[item.index], str(item.checked_at)), item.index)


class Lookup(_OfOperation):
    """Read what became of an operation. It starts, resumes and records nothing (RULES S5)."""

    async def work(self, owner: Owner) -> None:
        """One GET, at most twice. Raises `Failed` unless every item is completed."""
        self.recovery.standing = UNKNOWN
        try:
            answer = await owner.ask("GET", f"{PATH}/{self.operation_id}", again=True)
        except Lost as error:
            raise Failed("lookup_failed", f"{error} The operation is as it was.") from error
        batch = _believed(answer.body, self.operation_id, None) if answer.status == 200 else None
        if batch is None:
            raise failed(answer, "look it up", reads=True)
        self._take(batch)
        if failure := self._incomplete():
            raise failure


class DenialsAgain(_OfOperation):
    """Send exactly these events of denials, and nothing else (RULES S6)."""

    def __init__(self, operation_id: str, events: Sequence[tuple[int, Event]]) -> None:
        super().__init__(operation_id)
        self.recording = Recording([Entry(event, index) for index, event in events])

    async def work(self, owner: Owner) -> None:
        """One ingest. Raises `Failed` unless the journal has every event for sure."""
        await self.recording.tell(owner)
        self.recovery.recording = self.recording.recorded
        if failure := self.recording.failure():
            raise failure

    def data(self) -> Mapping[str, Any] | None:
        """What became of each event."""
        return {
            "operation_id": self.operation_id,
            "recorded": self.recording.acknowledged,
            "recordings": self.recording.as_json(),
            "recording_retry": self.recording.to_keep(),
        }

    def stopped(self) -> None:
        """What was not sent will not be."""
        self.recording.stopped()
        self.recovery.recording = self.recording.recorded


def why_not_again(operation_id: str, events: Sequence[tuple[int, Event]]) -> str | None:
    """Why these are not events of denials of this operation, each once, or None when they can be."""
    indexes = [index for index, _ in events]
    if len(set(indexes)) < len(indexes):
        return "an index stands twice"
    for index, event in events:
        if why := why_not_denial(operation_id, index, event):
            return f"the event of check {index}: {why}"
    return None


def _believed(body: object, operation_id: str, size: int | None) -> Batch | None:
    """The batch of an answer, None when it is none of this operation."""
    try:
        batch = read(Batch, body)
    except BadShape:
        return None
    fits = batch.operation_id == operation_id and size in (None, len(batch.items))
    return batch if fits else None


def _result(item: Item) -> dict[str, Any]:
    """What an item came to. A denial is a good result; what is not completed has none."""
    if item.result is not None:
        return {"ok": True, **item.result.model_dump(mode="json")}
    return {"ok": False, "state": item.state.value, "error_code": item.error_code}


def _known(item: Item, entry: Entry | None) -> dict[str, Any]:
    """An item as far as a caller needs it to go on."""
    return {
        "index": item.index,
        "state": item.state.value,
        "reservation_id": item.result.reservation_id if item.result else None,
        "call_id": entry.event["call_id"] if entry else None,
        "recording_status": (entry.what.recorded if entry else _nothing_to_tell(item)).value,
        "checked_at": item.checked_at,
        "reservation_expires_at": item.reservation_expires_at,
    }


def _nothing_to_tell(item: Item) -> Recorded:
    denied = item.state is ItemState.COMPLETED and item.result is not None and not item.result.allowed
    return Recorded.NOT_SUBMITTED if denied else Recorded.NOT_RECORDED
