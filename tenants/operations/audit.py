"""The tenant's audit log: append-only, each entry hashed over the one before (RULES A12).

It keeps what people decide and change. That a job was started, and by whom, stands in the job's own journal.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from base import db
from tenants.models import AuditEntry, AuditHead
from tenants.queries.audit import AuditFilter, exported, link_of
from tenants.rules import audit_chain
from tenants.rules.audit_chain import Head, Link, Verdict
from tenants.rules.who import Actor


@dataclass(frozen=True, slots=True)
class _Noted:
    actor: Actor
    verb: str
    object: str
    before: Any
    after: Any
    note: str


def record(actor: Actor, verb: str, object: str, *, before: Any = None, after: Any = None, note: str = "") -> None:
    """Note what somebody did; it is written at the end of the open write, since the audit head is the last lock."""
    db.kept("audit", list[_Noted]).append(_Noted(actor, verb, object, before, after, note))
    db.before_commit(db.Last.AUDIT, _flush)


def _flush() -> None:
    tenant, now = db.writing_tenant(), db.must_write()
    head = AuditHead.objects.select_for_update(no_key=True).get(tenant_id=tenant)
    for noted in map(_masked, db.kept("audit", list[_Noted])):
        entry = AuditEntry(
            tenant_id=tenant,
            seq=head.seq + 1,
            at=now,
            actor=noted.actor.name,
            how=noted.actor.how,
            verb=noted.verb,
            object=noted.object,
            before=noted.before,
            after=noted.after,
            note=noted.note,
            prev_hash=head.hash,
        )
        entry.hash = hash_of(entry)
        entry.save(force_insert=True)
        head.seq, head.hash = entry.seq, entry.hash
    head.save(update_fields=["seq", "hash"])


def _masked(noted: _Noted) -> _Noted:
    """An entry without the tenant's secrets; what cannot be masked is kept as a marker (RULES A14)."""
    from tenants.operations import masks  # the vault, which that opens, notes in this log what is done to it

    try:
        mask = masks.of(db.writing_tenant())
        if mask.is_empty:
            return noted
        before, after = (masks.mapped(side, mask) for side in (noted.before, noted.after))
        return replace(
            noted, before=before, after=after, note=mask.uncut(noted.note), object=mask.uncut(noted.object)[:200]
        )
    except db.GONE:
        raise
    except Exception:
        marker = masks.MARKER
        sides = (None if side is None else marker for side in (noted.before, noted.after))
        return replace(noted, before=next(sides), after=next(sides), note=marker if noted.note else "")


def hash_of(entry: AuditEntry) -> str:
    """What an entry's hash must be (`rules.audit_chain`)."""
    return audit_chain.hash_of(link_of(entry).said)


def verify(tenant: UUID, *, earlier: Head | None = None) -> Verdict:
    """Follow the whole log of a tenant. `earlier` is a head that was kept before: what was cut off since is found.

    What is written meanwhile lies past the end that is read first, and is no matter.
    """
    with db.read(tenant):
        row = AuditHead.objects.get(tenant_id=tenant)
        entries = AuditEntry.objects.filter(seq__lte=max(row.seq, earlier.seq if earlier else 0)).order_by("seq")
        return audit_chain.check(
            map(link_of, entries.iterator(chunk_size=500)), ends=Head(row.seq, row.hash), earlier=earlier
        )


def first_broken(tenant: UUID) -> int | None:
    """The number of the first entry whose hash or place does not fit, or None when the whole log holds."""
    return verify(tenant).broken_at


def export(*, tenant: UUID, actor: Actor, kind: str, wanted: AuditFilter) -> Iterator[Link]:
    """Every entry that fits, oldest first, and the export itself is noted before the first is read."""
    asked = {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in asdict(wanted).items()
        if value
    }
    with db.write(tenant):
        head = AuditHead.objects.get(tenant_id=tenant)
        record(actor, "audit.exported", "audit log", after={"as": kind, "up_to": head.seq, **asked})
        until = head.seq
    return exported(tenant, wanted, until=until)
