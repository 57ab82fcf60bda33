"""A job's journal as it grows: complete by itself, without looking at any other row."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from base import db
from jobs.models import Event, Job
from jobs.rules.states import JOB_FINAL
from tenants.models import User

PAGE: Final = 500
BY: Final = ("by", "person")  # how an entry calls whoever did it


@dataclass(frozen=True, slots=True)
class Entry:
    """One event of a job. `seq` counts from 1 without gaps."""

    seq: int
    kind: str
    call: UUID | None
    data: Mapping[str, Any]
    at: datetime


@dataclass(frozen=True, slots=True)
class JournalPage:
    """Entries in order. `more`: there are some already after them. `over`: the job is, and none come after them.

    `people` are the names of those whom the entries number.
    """

    entries: tuple[Entry, ...]
    more: bool
    over: bool
    people: Mapping[int, str]


def journal_page(tenant: UUID, job_id: UUID, seq: int, *, agent: str = "") -> JournalPage | None:
    """What a job's journal holds after number `seq`; None when the tenant has no such job, or not of this `agent`."""
    with db.read(tenant):
        # read first: what is over by now wrote its last event before
        found = Job.objects.filter(pk=job_id).values_list("state", "agent_name").first()
        if found is None or (agent and found[1] != agent):
            return None
        entries = tuple(after(job_id, seq))
        more = len(entries) == PAGE
        return JournalPage(entries, more, found[0] in JOB_FINAL and not more, _names(entries))


def _names(entries: Iterable[Entry]) -> Mapping[int, str]:
    numbers = {entry.data.get(word) for entry in entries for word in BY}
    people = User.objects.filter(pk__in=[one for one in numbers if isinstance(one, int)])
    return dict(people.values_list("pk", "username")) if numbers - {None} else {}


def after(job_id: UUID, seq: int) -> list[Entry]:
    """The next events of a job after number `seq`, at most 500, in order."""
    found = Event.objects.filter(job_id=job_id, seq__gt=seq).order_by("seq")[:PAGE]
    return [Entry(e.seq, e.kind, e.call, e.data, e.at) for e in found]
