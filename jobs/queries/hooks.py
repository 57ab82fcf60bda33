"""Hooks as their pages show them, and the log of what came."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Count, Max

from base import db, ids
from jobs.models import Hook, HookDelivery
from jobs.rules import event_mapping
from jobs.rules.event_mapping import Constant, Mapped
from jobs.rules.event_signing import SAYS
from jobs.rules.starters import Signing, Standing
from tenants.models import Role
from tenants.queries.seats import able_here

ROWS: Final = 30  # deliveries on a page


@dataclass(frozen=True, slots=True)
class HookRow:
    """One hook. `trouble` says what will keep it from starting anything, when that is known already."""

    shown_id: str
    name: str
    agent: str
    signing: str
    sender: str
    headers: str
    mapped: Mapped
    standing: str
    because: str
    trouble: str
    person: str
    changed_at: datetime
    old_secret_until: datetime | None
    unsigned_at: datetime | None
    unsigned_why: str
    came: int
    last_at: datetime | None

    @property
    def places(self) -> Sequence[tuple[str, str, str]]:
        """(input, where from, its place or value), for reading."""
        return [
            (name, "always", repr(one.value) if isinstance(one.value, str) else str(one.value))
            if isinstance(one, Constant)
            else (name, "from the event, if there" if one.optional else "from the event", one.pointer or "all of it")
            for name, one in self.mapped.items()
        ]


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """One event that came, rightly signed."""

    shown_id: str
    name: str
    kind: str
    came: str
    detail: str
    times: int
    job: str
    job_state: str
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True)
class HookPage:
    """One hook with what came to it, the newest first; `next_before` is None on the last page."""

    row: HookRow
    deliveries: tuple[DeliveryRow, ...]
    next_before: str | None
    now: datetime


def hook_list(tenant: UUID) -> tuple[Sequence[HookRow], datetime]:
    """All hooks of a tenant by name, and the time."""
    with db.read(tenant) as now:
        rows = list(Hook.objects.exclude(standing=Standing.REMOVED).select_related("person").order_by("name"))
        able, came = able_here(Role.OPERATOR), _came([row.pk for row in rows])
        return [_row(row, able, came.get(row.pk, (0, None)), now) for row in rows], now


def hook_page(tenant: UUID, hook: UUID, *, before: UUID | None = None) -> HookPage | None:
    """One of them, also one that was removed; None when there is none."""
    with db.read(tenant) as now:
        row = Hook.objects.select_related("person").filter(pk=hook).first()
        if row is None:
            return None
        all_of_it = HookDelivery.objects.filter(hook=row).select_related("job").order_by("-pk")
        found = list((all_of_it.filter(pk__lt=before) if before else all_of_it)[: ROWS + 1])
        return HookPage(
            row=_row(row, able_here(Role.OPERATOR), _came([row.pk]).get(row.pk, (0, None)), now),
            deliveries=tuple(_delivery(one) for one in found[:ROWS]),
            next_before=ids.show(ids.DELIVERY, found[ROWS - 1].pk) if len(found) > ROWS else None,
            now=now,
        )


def _came(hooks: Sequence[UUID]) -> Mapping[UUID, tuple[int, datetime | None]]:
    found = HookDelivery.objects.filter(hook__in=hooks).values("hook").annotate(Count("pk"), Max("last_at"))
    return {one["hook"]: (one["pk__count"], one["last_at__max"]) for one in found}


def _row(row: Hook, able: set[int], came: tuple[int, datetime | None], now: datetime) -> HookRow:
    name = row.person.get_username()
    lost = row.standing == Standing.ON and row.person_id not in able
    old: Any = row.old_secret_until
    sender, headers = SAYS[Signing(row.signing)]
    return HookRow(
        shown_id=ids.show(ids.HOOK, row.pk),
        name=row.name,
        agent=row.agent_name,
        signing=row.signing,
        sender=sender,
        headers=headers,
        mapped=event_mapping.from_json(row.mapping),
        standing=row.standing,
        because=row.because,
        trouble=f"{name} may not start jobs any more: it stops with the next event, unless it is saved anew."
        if lost
        else "",
        person=name,
        changed_at=row.changed_at,
        old_secret_until=old if old is not None and old > now else None,
        unsigned_at=row.unsigned_at,
        unsigned_why=row.unsigned_why,
        came=came[0],
        last_at=came[1],
    )


def _delivery(row: HookDelivery) -> DeliveryRow:
    job = row.job
    return DeliveryRow(
        shown_id=ids.show(ids.DELIVERY, row.pk),
        name=row.delivery,
        kind=row.kind,
        came=row.came,
        detail=row.detail,
        times=row.times,
        job=ids.show(ids.JOB, job.pk) if job else "",
        job_state=job.state if job else "",
        first_at=row.first_at,
        last_at=row.last_at,
    )
