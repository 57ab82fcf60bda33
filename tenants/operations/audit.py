"""The tenant's audit log: append-only, each entry hashed over the one before (RULES A12).

It keeps what people decide and change. That a job was started, and by whom, stands in the job's own journal.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from base import canonical, db
from tenants.models import AuditEntry, AuditHead
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
    for noted in db.kept("audit", list[_Noted]):
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


def hash_of(entry: AuditEntry) -> str:
    """What an entry's hash must be: the digest of all it says and of the hash before it."""
    return canonical.digest_of_any(
        {
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
    )


def first_broken(tenant: UUID) -> int | None:
    """The number of the first entry whose hash or place does not fit, or None when the whole log holds."""
    with db.read(tenant):
        last, seq = "", 0
        for entry in AuditEntry.objects.order_by("seq").iterator():
            if entry.seq != seq + 1 or entry.prev_hash != last or entry.hash != hash_of(entry):
                return seq + 1
            last, seq = entry.hash, entry.seq
        head = AuditHead.objects.get(tenant_id=tenant)
        return None if (head.seq, head.hash) == (seq, last) else seq + 1
