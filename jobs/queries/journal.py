"""A job's journal as it grows: complete by itself, without looking at any other row."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from jobs.models import Event

PAGE: Final = 500


@dataclass(frozen=True, slots=True)
class Entry:
    """One event of a job. `seq` counts from 1 without gaps."""

    seq: int
    kind: str
    call: UUID | None
    data: Mapping[str, Any]
    at: datetime


def after(job_id: UUID, seq: int) -> list[Entry]:
    """The next events of a job after number `seq`, at most 500, in order."""
    found = Event.objects.filter(job_id=job_id, seq__gt=seq).order_by("seq")[:PAGE]
    return [Entry(e.seq, e.kind, e.call, e.data, e.at) for e in found]
