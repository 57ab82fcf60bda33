"""The journal as its pages show it: what is known, with the very figures that decisions are made with (CASES J07)."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.db.models import Case, Count, Q, When

from base import db, ids
from budgets.models import Item, Key, Limit, Operation, Project, Receipt, Reservation, SpendEvent, Tally
from budgets.rules import identity
from budgets.rules.admission import SHORTEST_FIRST, Decision
from budgets.rules.periods import next_start, starts
from budgets.rules.words import OPEN, ItemState, LimitMode, Period, ReservationState

OPERATIONS: Final = 25  # on a page
AMOUNTS: Final = 50
EVENTS: Final = 10
KEYS: Final = 300  # the live ones come first, of which there are fewer
NOTHING: Final = Decimal(0)


@dataclass(frozen=True, slots=True)
class Counted:
    """What is counted in one period: its parts, and of the limit's amount what is left."""

    period: str
    starts_at: datetime
    ends_at: datetime
    spent: Decimal
    in_doubt: Decimal
    reserved: Decimal
    mode: str = ""
    amount: Decimal | None = None

    @property
    def used(self) -> Decimal:
        """All of it."""
        return self.spent + self.in_doubt + self.reserved

    @property
    def left(self) -> Decimal:
        """What of the limit is left; less than nothing when it was passed."""
        return (self.amount or NOTHING) - self.used

    @property
    def is_over(self) -> bool:
        """Whether it was passed."""
        return self.amount is not None and self.left < 0

    @property
    def denies(self) -> bool:
        """Whether what does not fit is denied."""
        return self.mode == LimitMode.HARD_DENY


@dataclass(frozen=True, slots=True)
class ProjectRow:
    """A project in the list."""

    shown_id: str
    name: str
    agent: str
    limits: Sequence[Counted]
    month: Counted
    in_doubt: int


@dataclass(frozen=True, slots=True)
class AmountRow:
    """An amount that is live or in doubt."""

    id: UUID
    standing: str
    amount: Decimal
    model: str
    provider: str
    checked_at: datetime
    due_at: datetime
    operation: UUID | None
    index: int
    job: str
    turn: str


@dataclass(frozen=True, slots=True)
class OperationRow:
    """An operation in the journal, with how many of its items stand how."""

    id: UUID
    standing: str
    claimed_at: datetime
    by: str
    job: str
    turn: str
    size: int
    allowed: int
    denied: int
    failed: int
    unattempted: int


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A key or a pair of a project. `standing` is live, revoked, expired, or logged out with its login."""

    shown_id: str
    name: str
    ends: str
    scope: str
    is_pair: bool
    person: str
    used_at: datetime | None
    expires_at: datetime | None
    standing: str


@dataclass(frozen=True, slots=True)
class EventRow:
    """What a program has told of a call."""

    at: datetime
    status: str
    model: str
    call_id: str
    tokens: int
    cost: Decimal | None


@dataclass(frozen=True, slots=True)
class ProjectPage:
    """A project with everything of it that its page shows."""

    row: ProjectRow
    zone: str
    unconfirmed: str
    counts: Sequence[Counted]
    amounts: Sequence[AmountRow]
    later_amounts: UUID | None
    operations: Sequence[OperationRow]
    next: str
    keys: Sequence[KeyRow]
    events: Sequence[EventRow]
    now: datetime


@dataclass(frozen=True, slots=True)
class ItemRow:
    """One check of an operation. `told` says whether its denial has been recorded, as far as the journal knows.

    `by_person` says that a person has told what it cost, who may also correct it.
    """

    index: int
    state: str
    model: str
    provider: str
    asked: Mapping[str, Any]
    estimate: Decimal | None
    decision: Decision | None
    checked_at: datetime | None
    expires_at: datetime | None
    reservation: UUID | None
    standing: str
    spent: Decimal | None
    priced: bool
    closed_by: str
    note: str
    told: bool
    by_person: bool


@dataclass(frozen=True, slots=True)
class OperationPage:
    """An operation with its items."""

    id: UUID
    project: str
    project_name: str
    standing: str
    claimed_at: datetime
    ended_at: datetime | None
    expires_at: datetime
    by: str
    job: str
    turn: str
    items: Sequence[ItemRow]
    now: datetime

    @property
    def unattempted(self) -> int:
        """How many of its checks were never begun."""
        return sum(item.state == ItemState.UNATTEMPTED for item in self.items)


def project_list(tenant: UUID) -> tuple[Sequence[ProjectRow], datetime]:
    """All projects by name, those of agents last; and the time."""
    with db.read(tenant) as now:
        projects = list(Project.objects.order_by("agent", "name"))
        return _rows(projects, now), now


def project_page(
    tenant: UUID, project: UUID, *, before: UUID | None = None, amounts_from: UUID | None = None
) -> ProjectPage | None:
    """A project's page, with operations before one and open amounts from one on; None when there is no such project.

    Amounts in doubt come first, and of each kind the oldest, which time moves on next.
    """
    with db.read(tenant) as now:
        found = Project.objects.filter(pk=project).first()
        if found is None:
            return None
        (row,) = _rows([found], now)
        amounts = Reservation.objects.filter(project=found, standing__in=sorted(OPEN)).order_by("standing", "pk")
        if amounts_from is not None:
            first = (
                amounts.filter(pk=amounts_from).values_list("standing", flat=True).first() or ReservationState.IN_DOUBT
            )
            amounts = amounts.filter(Q(standing=first, pk__gte=amounts_from) | Q(standing__gt=first))
        open_amounts = list(amounts[: AMOUNTS + 1])
        operations = Operation.objects.filter(project=found).order_by("-pk")
        if before is not None:
            operations = operations.filter(pk__lt=before)
        listed = list(operations.select_related("key")[: OPERATIONS + 1])
        live = set(Key.objects.live(now).filter(project=found).values_list("pk", flat=True))
        over = Case(When(pk__in=live, then=0), default=1)
        keys = Key.objects.filter(project=found).select_related("person").order_by(over, "-made_at")
        events = SpendEvent.objects.filter(project=found).order_by("-pk")[:EVENTS]
        return ProjectPage(
            row=row,
            zone=found.zone,
            unconfirmed=found.unconfirmed,
            counts=_counts(found, _tallies([found], now), now),
            amounts=[_amount(one) for one in open_amounts[:AMOUNTS]],
            later_amounts=open_amounts[AMOUNTS].pk if len(open_amounts) > AMOUNTS else None,
            operations=_operations(listed[:OPERATIONS]),
            next=str(listed[OPERATIONS - 1].pk) if len(listed) > OPERATIONS else "",
            keys=[_key(key, live, now) for key in keys[:KEYS]],
            events=[_event(event) for event in events],
            now=now,
        )


def operation_page(tenant: UUID, operation: UUID) -> OperationPage | None:
    """An operation's page; None when there is none."""
    with db.read(tenant) as now:
        row = Operation.objects.select_related("project", "key").filter(pk=operation).first()
        if row is None:
            return None
        calls = [str(identity.denial_call_id(row.pk, index)) for index in range(row.size)]
        told = set(SpendEvent.objects.filter(project=row.project, call_id__in=calls).values_list("call_id", flat=True))
        receipts = Receipt.objects.filter(reservation__operation=row, used__has_key="by")
        by_people = set(receipts.values_list("reservation_id", flat=True))
        items = Item.objects.filter(operation=row).select_related("reservation").order_by("index")
        return OperationPage(
            id=row.pk,
            project=ids.show(ids.PROJECT, row.project_id),
            project_name=row.project.name,
            standing=row.standing,
            claimed_at=row.claimed_at,
            ended_at=row.ended_at,
            expires_at=row.expires_at,
            by=row.key.name if row.key else "",
            job=_job(row.of_job),
            turn=_turn(row.of_turn),
            items=[_item(item, calls[item.index] in told, item.reservation_id in by_people) for item in items],
            now=now,
        )


def project_of_reservation(tenant: UUID, reservation: UUID) -> str | None:
    """The project of an amount, as its page's address names it."""
    with db.read(tenant):
        found = Reservation.objects.filter(pk=reservation).values_list("project_id", flat=True).first()
    return None if found is None else ids.show(ids.PROJECT, found)


def project_of_key(tenant: UUID, key: UUID) -> str:
    """The project of a key, as its page's address names it."""
    with db.read(tenant):
        return ids.show(ids.PROJECT, Key.objects.values_list("project_id", flat=True).get(pk=key))


type _Tallies = Mapping[tuple[UUID, str, datetime], Tally]


def _tallies(projects: Sequence[Project], now: datetime) -> _Tallies:
    """What is counted in the hour, day and month of now."""
    since = now - timedelta(days=33)
    rows = Tally.objects.filter(project__in=projects, starts_at__gte=since)
    return {(row.project_id, row.period, row.starts_at): row for row in rows}


def _rows(projects: Sequence[Project], now: datetime) -> list[ProjectRow]:
    tallies = _tallies(projects, now)
    limits: dict[UUID, list[Limit]] = defaultdict(list)
    for limit in Limit.objects.filter(project__in=projects):
        limits[limit.project_id].append(limit)
    doubts = Reservation.objects.filter(project__in=projects, standing=ReservationState.IN_DOUBT)
    in_doubt = dict(doubts.values_list("project_id").annotate(Count("id")))
    found = []
    for project in projects:
        counts = {one.period: one for one in _counts(project, tallies, now)}
        capped = [_capped(counts[limit.period], limit) for limit in limits[project.pk]]
        capped.sort(key=lambda one: (SHORTEST_FIRST.index(Period(one.period)), one.mode))
        found.append(
            ProjectRow(
                shown_id=ids.show(ids.PROJECT, project.pk),
                name=project.name,
                agent=project.agent,
                limits=capped,
                month=counts[Period.MONTH],
                in_doubt=in_doubt.get(project.pk, 0),
            )
        )
    return found


def _counts(project: Project, tallies: _Tallies, now: datetime) -> list[Counted]:
    found = []
    for period, start in starts(now, project.zone).items():
        row = tallies.get((project.pk, period.value, start))
        parts = (row.spent, row.in_doubt, row.reserved) if row else (NOTHING, NOTHING, NOTHING)
        found.append(Counted(period.value, start, next_start(period, start, project.zone), *parts))
    return found


def _capped(of: Counted, limit: Limit) -> Counted:
    parts = (of.spent, of.in_doubt, of.reserved)
    return Counted(of.period, of.starts_at, of.ends_at, *parts, mode=limit.mode, amount=limit.amount)


def _amount(row: Reservation) -> AmountRow:
    return AmountRow(
        id=row.pk,
        standing=row.standing,
        amount=row.amount,
        model=row.model,
        provider=row.provider,
        checked_at=row.checked_at,
        due_at=row.due_at or row.checked_at,
        operation=row.operation_id,
        index=row.index,
        job=_job(row.of_job),
        turn=_turn(row.of_turn),
    )


def _operations(rows: Sequence[Operation]) -> list[OperationRow]:
    items = Item.objects.filter(operation__in=[row.pk for row in rows]).values("operation_id")
    denied = Q(standing=ItemState.COMPLETED, result__allowed=False)
    counts = {
        one["operation_id"]: one
        for one in items.annotate(
            completed=Count("id", filter=Q(standing=ItemState.COMPLETED)),
            denied=Count("id", filter=denied),
            failed=Count("id", filter=Q(standing__in=[ItemState.FAILED, ItemState.UNKNOWN])),
            unattempted=Count("id", filter=Q(standing=ItemState.UNATTEMPTED)),
        )
    }
    return [_operation(row, counts[row.pk]) for row in rows]


def _operation(row: Operation, counted: Mapping[str, Any]) -> OperationRow:
    return OperationRow(
        id=row.pk,
        standing=row.standing,
        claimed_at=row.claimed_at,
        by=row.key.name if row.key else "",
        job=_job(row.of_job),
        turn=_turn(row.of_turn),
        size=row.size,
        allowed=counted["completed"] - counted["denied"],
        denied=counted["denied"],
        failed=counted["failed"],
        unattempted=counted["unattempted"],
    )


def _key(row: Key, live: Collection[UUID], now: datetime) -> KeyRow:
    if row.pk in live:
        standing = "live"
    elif row.revoked_at is not None:
        standing = "revoked"
    else:
        standing = "logged out" if row.expires_at is None or row.expires_at > now else "expired"
    return KeyRow(
        shown_id=ids.show(ids.BUDGET_KEY, row.pk),
        name=row.name,
        ends=row.ends,
        scope=row.scope,
        is_pair=row.refresh_hash is not None,
        person=row.person.get_username(),
        used_at=row.used_at,
        expires_at=row.expires_at,
        standing=standing,
    )


def _event(row: SpendEvent) -> EventRow:
    tokens = row.input_tokens + row.output_tokens
    return EventRow(row.timestamp, row.status, row.model, row.call_id, tokens, row.cost)


def _item(row: Item, told: bool, by_person: bool) -> ItemRow:
    reservation = row.reservation
    return ItemRow(
        index=row.index,
        state=row.standing,
        model=row.asked["model"],
        provider=row.asked["provider"],
        asked=row.asked,
        estimate=row.estimate,
        decision=None if row.result is None else Decision.from_json(row.result),
        checked_at=row.checked_at,
        expires_at=row.reservation_expires_at,
        reservation=row.reservation_id,
        standing=reservation.standing if reservation else "",
        spent=reservation.spent if reservation else None,
        priced=reservation.priced if reservation else True,
        closed_by=reservation.closed_by if reservation else "",
        note=reservation.note if reservation else "",
        told=told,
        by_person=by_person,
    )


def _job(job: UUID | None) -> str:
    return "" if job is None else ids.show(ids.JOB, job)


def _turn(turn: UUID | None) -> str:
    return "" if turn is None else ids.show(ids.TURN, turn)
