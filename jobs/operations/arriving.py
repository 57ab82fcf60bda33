"""An event that comes to a hook: signed or not, new or once more, and what it starts (RULES G1, L7).

Each event starts one job, by the name that its signature covers, however often and to whatever process it comes. One
that could not be mapped or was refused may come again, and starts its job when that is mended.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import IntegrityError

from base import db
from jobs.models import Hook, HookDelivery, Job, Starter
from jobs.operations import hooks, intake, masking
from jobs.queries import locks
from jobs.rules import event_mapping
from jobs.rules.event_mapping import NotThere
from jobs.rules.event_signing import NotReadable, NotSigned, Signed, signed
from jobs.rules.secret_names import old_signing_name, signing_name
from jobs.rules.starters import Arrived, Signing, Standing
from tenants.operations import vault

MOST_A_MINUTE: Final = 120  # jobs that one hook starts
KEPT: Final = timedelta(days=30)  # that an event is remembered which started nothing
NOTED_EVERY: Final = timedelta(seconds=10)  # however many unsigned requests come


@dataclass(frozen=True, slots=True)
class Foreign:
    """There is no such hook."""


@dataclass(frozen=True, slots=True)
class Unsigned:
    """It is not signed rightly, and counts for nothing."""

    why: str


@dataclass(frozen=True, slots=True)
class Greeted:
    """Its sender only asks whether somebody is here."""

    answer: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Started:
    """It has started this job; `again` when it had done so before."""

    job: UUID
    again: bool = False


@dataclass(frozen=True, slots=True)
class Unmapped:
    """Its JSON gives no input of the agent; `troubles` are (input, what is wrong)."""

    why: str
    troubles: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing may be started now, or not by this; it may come again later."""

    why: str
    other_body: bool = False
    too_many: bool = False
    off: bool = False


type Answer = Foreign | Unsigned | Greeted | Started | Unmapped | Refused


@dataclass(frozen=True, slots=True)
class _Come:
    hook: UUID
    name: str
    kind: str
    digest: str
    event: Any
    trouble: str = ""  # why it cannot be read


def receive(*, hook: UUID, headers: Mapping[str, str], body: bytes) -> Answer:
    """Take one request to a hook; `headers` have small names. Whatever comes back has been kept already."""
    with db.read_as_bearer(str(hook)):
        tenant = (
            Hook.objects.filter(pk=hook).exclude(standing=Standing.REMOVED).values_list("tenant", flat=True).first()
        )
    if tenant is None:
        return Foreign()
    with db.read(tenant) as now:
        row = Hook.objects.get(pk=hook)
        secrets = _secrets(row, now)
    digest = hashlib.sha256(body).hexdigest()
    try:
        found = signed(Signing(row.signing), headers, body, secrets, now=now)
    except NotSigned as error:
        _note_unsigned(tenant, row, str(error), now)
        return Unsigned(str(error))
    except NotReadable as error:
        found = Signed(f"sha256:{digest}", "", None)
        return _kept(tenant, _Come(hook, found.name, "", digest, None, str(error)))
    if found.hello is not None:
        return Greeted(found.hello)
    return _kept(tenant, _Come(hook, found.name, found.kind, digest, found.event))


def _secrets(row: Hook, now: datetime) -> list[str]:
    """What its events may be signed with now. Demands an open read. Raises `vault.NoSecret` where one opens no more."""
    found = [vault.get(row.tenant_id, signing_name(row.pk))]
    if row.old_secret_until is not None and row.old_secret_until > now:
        found += filter(None, [vault.find(row.tenant_id, old_signing_name(row.pk))])
    return found


def _note_unsigned(tenant: UUID, row: Hook, why: str, now: datetime) -> None:
    """Keep the last of them, and not each: whoever knows the address can send as many as they like."""
    if row.unsigned_at is None or now - row.unsigned_at >= NOTED_EVERY:
        with db.write(tenant) as at:
            Hook.objects.filter(pk=row.pk).update(unsigned_at=at, unsigned_why=why[:200])


def _kept(tenant: UUID, come: _Come) -> Answer:
    """Two processes may take in the same event at once: the second then reads what the first has made of it."""
    try:
        return _take(tenant, come)
    except IntegrityError:
        return _take(tenant, come)


def _take(tenant: UUID, come: _Come) -> Answer:
    with db.write(tenant) as now:
        locks.gate_shared()  # before the hook, since its start takes it too (MACHINES 2)
        row = Hook.objects.select_for_update(no_key=True).filter(pk=come.hook).first()
        if row is None or row.standing == Standing.REMOVED:
            return Foreign()
        before = HookDelivery.objects.select_for_update().filter(hook=row, delivery=come.name).first()
        if before is not None and before.job_id is not None:
            return _again(before, come, now)
        if row.standing == Standing.ON and (why := hooks.why_nobody(row)):
            hooks.stop(row, why)
        if row.standing != Standing.ON:
            return Refused("this hook is paused or was stopped; its page says which, and why", off=True)
        if _full(row, now):
            return Refused(f"this hook has started {MOST_A_MINUTE} jobs within a minute", too_many=True)
        HookDelivery.objects.filter(hook=row, job__isnull=True, last_at__lt=now - KEPT).delete()
        return _start(row, before, come, now)


def _again(before: HookDelivery, come: _Come, now: datetime) -> Answer:
    if before.digest != come.digest:
        return Refused("an event of this name came before with another body, and started a job", other_body=True)
    before.times, before.last_at = before.times + 1, now
    before.save(update_fields=["times", "last_at"])
    return Started(before.job_id, again=True) if before.job_id else Foreign()


def _full(row: Hook, now: datetime) -> bool:
    made = Job.objects.filter(hook=row, created_at__gt=now - timedelta(minutes=1))
    return made[:MOST_A_MINUTE].count() >= MOST_A_MINUTE


def _start(row: Hook, before: HookDelivery | None, come: _Come, now: datetime) -> Answer:
    kept = before or HookDelivery(tenant_id=row.tenant_id, hook=row, delivery=come.name, first_at=now, times=0)
    kept.digest, kept.kind, kept.last_at, kept.times = come.digest, masking.text(come.kind), now, kept.times + 1
    answer = _started(row, come)
    match answer:
        case Started():
            kept.came, kept.detail, kept.job_id = Arrived.STARTED, "", answer.job
        case Unmapped():
            kept.came, kept.detail = Arrived.UNMAPPED, masking.text(answer.why)
        case _:
            kept.came, kept.detail = Arrived.REFUSED, masking.text(answer.why)
    kept.save()
    return answer


def _started(row: Hook, come: _Come) -> Started | Unmapped | Refused:
    if come.trouble:
        return Unmapped(come.trouble)
    try:
        given = event_mapping.given(come.event, event_mapping.from_json(row.mapping))
    except NotThere as error:
        return Unmapped(str(error), error.troubles)
    try:
        return Started(
            intake.start_within(
                agent=row.agent_name,
                given=given,
                starter=Starter.EVENT,
                person=row.person_id,
                title=f"{row.name} · {come.kind}" if come.kind else row.name,
                start_key=hashlib.sha256(f"{row.pk} {come.name}".encode()).hexdigest(),
                hook=row.pk,
            )
        )
    except intake.CannotStart as error:
        inputs = tuple((path.removeprefix("$."), what) for path, what in error.troubles)
        return Unmapped(str(error), inputs) if error.troubles or error.of_input else Refused(str(error))
