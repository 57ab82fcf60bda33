"""The job's journal: events are gathered during a write and numbered at its very end, under the counter's lock."""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from base import db
from jobs import wake
from jobs.queries import locks
from jobs.queries.tables import EVENTS


@dataclass(slots=True)
class _Entry:
    kind: str
    call: UUID | None
    data: dict[str, Any]


@dataclass(slots=True)
class _Journal:
    entries: dict[UUID, list[_Entry]] = field(default_factory=dict)
    to_judge: set[UUID] = field(default_factory=set)


def record(job_id: UUID, kind: str, *, call: UUID | None = None, **data: Any) -> None:
    """Note one event of a job; it is written just before the open write commits."""
    _journal().entries.setdefault(job_id, []).append(_Entry(kind, call, data))


def judge_later(job_id: UUID) -> None:
    """Have the job judged once its counter is locked: is its turn complete, does it wait, is it over?

    The caller must hold the job alone (`locks.job`).
    """
    journal = _journal()
    journal.to_judge.add(job_id)
    journal.entries.setdefault(job_id, [])


def _journal() -> _Journal:
    db.before_commit(db.Last.EVENTS, _flush)
    return db.kept("journal", _Journal)


def _flush() -> None:
    from jobs.operations import judging  # judging moves jobs, and moves record events

    journal = db.kept("journal", _Journal)
    for job_id in sorted(journal.entries):
        entries = journal.entries[job_id]
        known = len(entries)
        last = locks.counter(job_id, known)
        if job_id in journal.to_judge:
            # The counter is locked before the job is judged: two last calls of a turn must not both miss the other.
            judging.judge(job_id)
            if len(entries) > known:
                last = locks.counter(job_id, len(entries) - known)
        del journal.entries[job_id]
        if entries:
            _write(job_id, entries, last)


def _write(job_id: UUID, entries: list[_Entry], last: int) -> None:
    """Write the entries of a job, the newest of which has the number `last`."""
    now, tenant = db.must_write(), db.writing_tenant()
    first = last - len(entries) + 1
    EVENTS.insert(
        *(
            EVENTS.new(tenant_id=tenant, job_id=job_id, seq=first + i, kind=e.kind, call=e.call, data=e.data, at=now)
            for i, e in enumerate(entries)
        )
    )
    asked = any(entry.kind.startswith("hold.") for entry in entries)
    db.after_commit(lambda: wake.job_changed(tenant=tenant, job_id=job_id, seq=last, asked=asked))
