"""The events that tell the journal what a call came to: their identity, and what became of them (RULES S6, S7)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID, uuid5

DENIED: Final = "budget_denied"
LEGACY: Final = "legacy_key"
BY_CALL: Final = "call_id"
OTHER: Final = "other_event"
REJECTIONS: Final = frozenset(
    {"unknown_model", "invalid_tags", "tag_cardinality_exceeded", "unsupported_modality", "not_as_admitted"},
)
MOST_CHECKS: Final = 32
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


def denial_call_id(operation_id: str, index: int) -> str:
    """The call id of a denied check: the same however often it is told."""
    return str(uuid5(UUID(operation_id), f"denial:{index}"))


def denial(operation_id: str, index: int, check: Mapping[str, Any], checked_at: str) -> dict[str, Any]:
    """The one event of a check that was denied. It spent nothing."""
    given = {name: check[name] for name in ("modality", "agent_run_id", "tags") if check.get(name)}
    return {
        "call_id": denial_call_id(operation_id, index),
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
    if event.get("call_id") != denial_call_id(operation_id, index):
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
    for name in ("call_id", "instance_id", "status", "model", "provider"):
        if not isinstance(event.get(name), str) or not event[name]:
            return f"{name} is no text: send the recording_retry object unchanged"
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
    rows = answer.get("events") if isinstance(answer, Mapping) else None
    if not isinstance(answer, Mapping) or not isinstance(rows, list) or len(rows) != len(sent):
        return [Disposition(Recorded.UNKNOWN) for _ in sent]
    found = [_of(index, event, row) for index, (event, row) in enumerate(zip(sent, rows, strict=True))]
    outcomes = Counter(row.get("outcome") for row in rows if isinstance(row, Mapping))
    told = [answer.get(name) for name in ("submitted", "ingested", "rejected", "duplicates")]
    seen = [len(sent), outcomes["ingested"], outcomes["rejected"], outcomes["duplicate"]]
    if None in found or told != seen or any(isinstance(one, bool) for one in told):
        return [Disposition(Recorded.UNKNOWN) for _ in sent]
    return [one for one in found if one is not None]


def _of(index: int, event: Event, row: Any) -> Disposition | None:
    """What a row says of its event; None when it is of none, or says what no row says."""
    if not isinstance(row, Mapping) or row.get("index") != index or row.get("call_id") != event.get("call_id"):
        return None
    match row.get("outcome"), row.get("code"), row.get("by"), row.get("same"):
        case "ingested", None, None, None:
            return Disposition(Recorded.INGESTED)
        case "rejected", str(code), None, None if code in REJECTIONS:
            return Disposition(Recorded.REJECTED, code)
        case "duplicate", None, "call_id", True | None:
            return Disposition(Recorded.DEDUPLICATED, BY_CALL)
        case "duplicate", None, "call_id", False:  # another event has its name: this one is nowhere
            return Disposition(Recorded.REJECTED, OTHER)
        case "duplicate", None, "legacy_key", _:  # another call may have won in that lane: ours may have no entry
            return Disposition(Recorded.UNKNOWN, LEGACY)
        case _:
            return None
