"""The events that tell the journal what a call came to: their identity, and what became of them (RULES S6, S7)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID, uuid5

from budgets.rules.identity import denial_call_id
from budgets.rules.words import LONGEST_MODEL, LONGEST_NAME, LONGEST_WORD, DuplicateBy, EventStatus, Rejection

DENIED: Final = EventStatus.BUDGET_DENIED.value
LEGACY: Final = DuplicateBy.LEGACY_KEY.value
BY_CALL: Final = DuplicateBy.CALL_ID.value
OTHER: Final = "other_event"
REJECTIONS: Final = frozenset(one.value for one in Rejection)
TEXTS: Final = {
    "call_id": LONGEST_NAME,
    "instance_id": LONGEST_NAME,
    "status": LONGEST_WORD,
    "model": LONGEST_MODEL,
    "provider": LONGEST_WORD,
}
type Event = Mapping[str, Any]


class Recorded(StrEnum):
    """What is known of an event. `unknown` is no mistake: nobody can say more."""

    NOT_SUBMITTED = "not_submitted"  # this call did not come to it
    UNKNOWN = "unknown"
    NOT_RECORDED = "not_recorded"  # there was nothing to record
    INGESTED = "ingested"
    DEDUPLICATED = "deduplicated"
    FAILED = "failed"  # it was refused before anything was taken in
    REJECTED = "rejected"
    SKIPPED = "skipped"  # it was asked for none
    STOPPED = "stopped"  # a bound or a cancel came before it was sent


# What a whole call is told as: the first of these that one of its events is.
WORST_FIRST: Final = (
    Recorded.UNKNOWN,
    Recorded.STOPPED,
    Recorded.FAILED,
    Recorded.REJECTED,
    Recorded.NOT_SUBMITTED,
    Recorded.SKIPPED,
    Recorded.DEDUPLICATED,
    Recorded.INGESTED,
)
ACKNOWLEDGED: Final = frozenset({Recorded.INGESTED, Recorded.DEDUPLICATED})


@dataclass(frozen=True, slots=True)
class Disposition:
    """What became of one event. `code` is the journal's word for a rejection, or the lane of a duplicate."""

    recorded: Recorded
    code: str = ""


def call_id_of(reservation_id: str) -> str | None:
    """The call id of what was reserved, for who names none: the same in each replay. None where it cannot be told."""
    try:
        return str(uuid5(UUID(reservation_id), "call"))
    except ValueError:
        return None


def denial(operation_id: str, index: int, check: Mapping[str, Any], checked_at: str) -> dict[str, Any]:
    """The one event of a check that was denied. It spent nothing."""
    given = {name: check[name] for name in ("modality", "agent_run_id", "tags") if check.get(name)}
    return {
        "call_id": str(denial_call_id(UUID(operation_id), index)),
        "instance_id": operation_id,
        "attempt_index": 0,
        "timestamp": checked_at,
        "status": DENIED,
        "model": check["model"],
        "provider": check["provider"],
        "input_tokens": 0,
        "output_tokens": 0,
        **given,
    }


def why_not_denial(operation_id: str, index: int, event: Event) -> str | None:
    """Why an event cannot be that of this denied check, or None when it can. Its tags and time are not known here."""
    if event.get("call_id") != str(denial_call_id(UUID(operation_id), index)):
        return f"call_id is not that of check {index} of this operation: send the recording_retry object unchanged"
    if event.get("instance_id") != operation_id:
        return "instance_id is not the operation_id: send the recording_retry object unchanged"
    if event.get("status") != DENIED:
        return f"status is not {DENIED}: send the recording_retry object unchanged"
    if event.get("attempt_index") != 0 or isinstance(event.get("attempt_index"), bool):
        return "attempt_index is not 0: send the recording_retry object unchanged"
    return why_not_event(event)


def why_not_event(event: Event) -> str | None:
    """Why an object cannot be an event, or None when it can."""
    for name, longest in TEXTS.items():
        text = event.get(name)
        if not isinstance(text, str) or not 0 < len(text) <= longest:
            return f"{name} is no text of 1 to {longest} characters: send the recording_retry object unchanged"
    attempt = event.get("attempt_index")
    if not isinstance(attempt, int) or isinstance(attempt, bool) or attempt < 0:
        return "attempt_index is no number from 0 on: send the recording_retry object unchanged"
    if moment(event.get("timestamp")) is None:
        return "timestamp is no time with a zone: send the recording_retry object unchanged"
    return None


def moment(text: object) -> datetime | None:
    """A time with a zone, or None for anything else."""
    try:
        found = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None


def together(recorded: Iterable[Recorded]) -> Recorded:
    """One word for all events of a call."""
    there = set(recorded)
    return next((one for one in WORST_FIRST if one in there), Recorded.NOT_RECORDED)


def dispositions(sent: Sequence[Event], answer: object) -> list[Disposition]:
    """What the journal's answer says of each event that was sent. An answer that does not add up says nothing."""
    unknown = [Disposition(Recorded.UNKNOWN) for _ in sent]
    if not isinstance(answer, Mapping):
        return unknown
    rejected = _told(answer.get("rejections"), sent, _rejection)
    again = _told(answer.get("duplicate_events"), sent, _duplicate)
    if rejected is None or again is None or rejected.keys() & again.keys():
        return unknown
    told = [answer.get(name) for name in ("submitted", "ingested", "rejected", "duplicates")]
    seen = [len(sent), len(sent) - len(rejected) - len(again), len(rejected), len(again)]
    if told != seen or any(isinstance(one, bool) for one in told):
        return unknown
    found = {**rejected, **again}
    return [found.get(index, Disposition(Recorded.INGESTED)) for index in range(len(sent))]


def _told(
    rows: object, sent: Sequence[Event], read: Callable[[Mapping[str, Any]], Disposition | None]
) -> dict[int, Disposition] | None:
    """What the rows say, by the events' places; None when one is of no event that was sent, or says what none says."""
    found: dict[int, Disposition] = {}
    if not isinstance(rows, list):
        return None
    for row in rows:
        if not isinstance(row, Mapping):
            return None
        index = row.get("index")
        if not isinstance(index, int) or isinstance(index, bool) or index in found or not 0 <= index < len(sent):
            return None
        names = ("call_id", "attempt_index")
        disposition = read(row) if all(row.get(name) == sent[index].get(name) for name in names) else None
        if disposition is None:
            return None
        found[index] = disposition
    return found


def _rejection(row: Mapping[str, Any]) -> Disposition | None:
    code = row.get("code")
    return Disposition(Recorded.REJECTED, code) if isinstance(code, str) and code in REJECTIONS else None


def _duplicate(row: Mapping[str, Any]) -> Disposition | None:
    match row.get("matched_by"), row.get("same"):
        case "call_id", True | None:
            return Disposition(Recorded.DEDUPLICATED, BY_CALL)
        case "call_id", False:  # another event has its name: this one is nowhere
            return Disposition(Recorded.REJECTED, OTHER)
        case "legacy_key", _:  # another call may have won in that lane: ours may have no entry
            return Disposition(Recorded.UNKNOWN, LEGACY)
        case _:
            return None
