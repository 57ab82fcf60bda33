"""The audit log as a page and an export read it: newest first, found by key, never counted (RULES A12)."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast

from base import db, prepared
from tenants.models import AuditEntry, AuditHead
from tenants.rules.audit_chain import Head, Link
from tenants.rules.auditing import Change, came_from, changes

PAGE: Final = 50
BATCH: Final = 500  # entries of one read of an export
_VERBS: Final = """
WITH RECURSIVE found AS (
    (SELECT verb FROM tenants_auditentry ORDER BY verb LIMIT 1)
    UNION ALL
    SELECT (SELECT e.verb FROM tenants_auditentry e WHERE e.verb > found.verb ORDER BY e.verb LIMIT 1)
    FROM found WHERE found.verb IS NOT NULL
) SELECT verb FROM found WHERE verb IS NOT NULL LIMIT 200
"""


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which entries; empty is all. `verb` may end in `.` for a whole kind. `before` is the number to go on below."""

    who: str = ""
    verb: str = ""
    object: str = ""
    words: str = ""
    since: datetime | None = None
    until: datetime | None = None
    before: int | None = None


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One entry: who, signed in how, from where, when, did what to which object, why, and what changed."""

    seq: int
    at: datetime
    actor: str
    method: str
    place: str
    verb: str
    object: str
    note: str
    shown: str
    changes: tuple[Change, ...]
    hash: str


@dataclass(frozen=True, slots=True)
class AuditPage:
    """A page of the log. `next_before` is None on the last page; `verbs` are all that it has."""

    rows: tuple[AuditRow, ...]
    next_before: int | None
    verbs: tuple[str, ...]
    head: Head
    now: datetime


def audit_page(tenant: UUID, wanted: AuditFilter) -> AuditPage:
    """The newest entries that fit."""
    with db.read(tenant) as now:
        found = list(_fitting(wanted).order_by("-seq")[: PAGE + 1])
        verbs = tuple(verb for (verb,) in prepared.fetch(_VERBS))
        return AuditPage(
            rows=tuple(_row(entry) for entry in found[:PAGE]),
            next_before=found[PAGE - 1].seq if len(found) > PAGE else None,
            verbs=verbs,
            head=_head(tenant),
            now=now,
        )


def head_of(tenant: UUID) -> Head:
    """Where the tenant's log ends now."""
    with db.read(tenant):
        return _head(tenant)


def exported(tenant: UUID, wanted: AuditFilter, *, until: int) -> Iterator[Link]:
    """Every entry that fits up to number `until`, oldest first, a batch a transaction: never all of it in memory."""
    after = 0
    while True:
        with db.read(tenant):
            batch = list(_fitting(wanted).filter(seq__gt=after, seq__lte=until).order_by("seq")[:BATCH])
        yield from map(link_of, batch)
        if len(batch) < BATCH:
            return
        after = batch[-1].seq


def link_of(entry: AuditEntry) -> Link:
    """An entry as it is hashed and exported."""
    said: dict[str, Any] = {
        "tenant": str(entry.tenant_id),
        "seq": entry.seq,
        "at": entry.at.isoformat(),
        "actor": entry.actor,
        "how": entry.how,
        "verb": entry.verb,
        "object": entry.object,
        "before": entry.before,
        "after": entry.after,
        "note": entry.note,
        "prev": entry.prev_hash,
    }
    return Link(said, entry.hash)


def _head(tenant: UUID) -> Head:
    row = AuditHead.objects.get(tenant_id=tenant)
    return Head(row.seq, row.hash)


def _fitting(wanted: AuditFilter) -> QuerySet[AuditEntry]:
    found = AuditEntry.objects.all()
    if wanted.who:
        found = found.filter(actor=wanted.who)
    if wanted.verb:
        found = (
            found.filter(verb__startswith=wanted.verb) if wanted.verb.endswith(".") else found.filter(verb=wanted.verb)
        )
    if wanted.object:
        found = found.filter(object=wanted.object)
    if wanted.since:
        found = found.filter(at__gte=wanted.since)
    if wanted.until:
        found = found.filter(at__lt=wanted.until)
    if wanted.before is not None:
        found = found.filter(seq__lt=wanted.before)
    for word in wanted.words.split()[:6]:
        if "b" not in found.query.annotations:
            found = found.annotate(b=Cast("before", TextField()), a=Cast("after", TextField()))
        anywhere = Q()
        for field in ("actor", "how", "verb", "object", "note", "b", "a"):
            anywhere |= Q(**{f"{field}__icontains": word})
        found = found.filter(anywhere)
    return found


def _row(entry: AuditEntry) -> AuditRow:
    method, place = came_from(entry.how)
    after = dict(entry.after) if isinstance(entry.after, dict) else entry.after
    shown = str(after.pop("shown", "")) if isinstance(after, dict) else ""
    return AuditRow(
        seq=entry.seq,
        at=entry.at,
        actor=entry.actor,
        method=method,
        place=place,
        verb=entry.verb,
        object=entry.object,
        note=entry.note,
        shown=shown,
        changes=changes(entry.before, after or None),
        hash=entry.hash,
    )
