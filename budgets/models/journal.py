"""The journal of admissions: operations with their checks, what they reserved, and how that was confirmed.

What holds between the rows of one operation (its items are completed ones, then at most one that failed, then those
that were never attempted; an item that was attempted never changes) is kept by triggers, in the migrations.
"""

from typing import Any, ClassVar, Final

from django.db import models
from django.db.models import DurationField, F, Func, Q, Value
from django.db.models.expressions import Combinable, CombinedExpression

from base.fields import TenantRow, one_of, word
from budgets.models.projects import Key, Project, money
from budgets.rules.words import (
    AUTHORITY,
    DOUBT,
    LIFETIME,
    MOST_CHECKS,
    OPEN,
    ItemError,
    ItemState,
    OperationState,
    ReservationState,
)

OF_ID: Final = "oz0_id_time"  # the SQL function that reads an id's own time


def _time_of(column: str) -> Func:
    return Func(F(column), function=OF_ID, output_field=models.DateTimeField())


def _after(moment: Any, span: Any) -> CombinedExpression:
    return CombinedExpression(
        moment, Combinable.ADD, Value(span, output_field=DurationField()), output_field=models.DateTimeField()
    )


class Operation(TenantRow):
    """One asking of up to 32 checks; its id is its caller's, a UUIDv7. Whoever inserts the row executes it (RULES S1).

    `of_job` and `of_turn` name the request to a model that the studio's own loop made it for.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="operations", db_constraint=False)
    key = models.ForeignKey(Key, null=True, on_delete=models.PROTECT, related_name="+", db_constraint=False)
    digest = models.CharField(max_length=64, help_text="of its checks in their order (rules.checks)")
    size = models.PositiveSmallIntegerField()
    standing = word(default=OperationState.RUNNING)
    expires_at = models.DateTimeField(help_text="a day after its id's own time")
    claimed_at = models.DateTimeField()
    touched_at = models.DateTimeField(help_text="when whoever executes it was last heard of")
    ended_at = models.DateTimeField(null=True)
    of_job = models.UUIDField(null=True)
    of_turn = models.UUIDField(null=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            one_of("standing", OperationState, "operation_standing"),
            models.CheckConstraint(condition=Q(size__gte=1, size__lte=MOST_CHECKS), name="operation_size"),
            models.CheckConstraint(
                condition=Q(expires_at=_after(_time_of("id"), LIFETIME)), name="operation_lives_a_day"
            ),
            models.CheckConstraint(
                condition=Q(standing=OperationState.RUNNING, ended_at__isnull=True)
                | (~Q(standing=OperationState.RUNNING) & Q(ended_at__isnull=False)),
                name="operation_ended_when_not_running",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["project", "-id"], name="operation_newest"),
            models.Index(fields=["touched_at"], condition=Q(standing=OperationState.RUNNING), name="operation_running"),
            models.Index(fields=["expires_at"], name="operation_expiry"),
        ]


class Reservation(TenantRow):
    """An amount that was set aside for one call, and what became of it. Its id is a UUIDv7 of its check's moment.

    It is counted in the periods of `counted_at`, its operation's own time. `due_at` is when time alone moves it on.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="reservations", db_constraint=False)
    operation = models.ForeignKey(
        Operation, null=True, on_delete=models.PROTECT, related_name="reservations", db_constraint=False
    )
    index = models.PositiveSmallIntegerField()
    standing = word(default=ReservationState.LIVE)
    amount = money()
    counted_at = models.DateTimeField()
    checked_at = models.DateTimeField()
    due_at = models.DateTimeField(null=True)
    spent = money(null=True)
    priced = models.BooleanField(default=True, help_text="what it cost is known, and not only what was estimated")
    closed_at = models.DateTimeField(null=True)
    closed_by = models.CharField(max_length=200, blank=True, help_text="who confirmed or released it")
    note = models.TextField(blank=True)
    model = models.TextField()
    provider = models.TextField()
    of_job = models.UUIDField(null=True)
    of_turn = models.UUIDField(null=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["operation", "index"], name="reservation_once"),
            one_of("standing", ReservationState, "reservation_standing"),
            models.CheckConstraint(condition=Q(amount__gte=0), name="reservation_not_negative"),
            models.CheckConstraint(
                condition=Q(standing=ReservationState.LIVE, due_at=_after(F("checked_at"), AUTHORITY))
                | Q(standing=ReservationState.IN_DOUBT, due_at=_after(F("checked_at"), DOUBT))
                | (~Q(standing__in=sorted(OPEN)) & Q(due_at__isnull=True)),
                name="reservation_due_while_open",
            ),
            models.CheckConstraint(
                condition=Q(standing__in=sorted(OPEN), closed_at__isnull=True)
                | (~Q(standing__in=sorted(OPEN)) & Q(closed_at__isnull=False)),
                name="reservation_closed_when_not_open",
            ),
            models.CheckConstraint(
                condition=Q(standing=ReservationState.CONFIRMED, spent__isnull=False, spent__gte=0)
                | (~Q(standing=ReservationState.CONFIRMED) & Q(spent__isnull=True)),
                name="reservation_spent_when_confirmed",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["due_at"], condition=Q(due_at__isnull=False), name="reservation_due"),
            models.Index(fields=["project", "-id"], condition=Q(due_at__isnull=False), name="reservation_open"),
            models.Index(fields=["project", "counted_at"], name="reservation_counted"),
        ]


class Item(TenantRow):
    """One check of an operation, and what is known of it (RULES S3). What the journal tells of it is in here alone."""

    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="items", db_constraint=False)
    index = models.PositiveSmallIntegerField()
    asked = models.JSONField(help_text="the whole check")
    standing = word(default=ItemState.UNATTEMPTED)
    error_code = word(blank=True)
    result: "models.JSONField[Any, Any]" = models.JSONField(null=True)
    checked_at = models.DateTimeField(null=True)
    estimate = money(null=True)
    reservation = models.ForeignKey(
        Reservation, null=True, on_delete=models.PROTECT, related_name="+", db_constraint=False
    )
    reservation_expires_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["operation", "index"], name="item_once"),
            models.CheckConstraint(condition=Q(index__lt=MOST_CHECKS), name="item_index"),
            models.CheckConstraint(
                condition=Q(standing=ItemState.COMPLETED, result__isnull=False, error_code="", checked_at__isnull=False)
                | Q(standing=ItemState.FAILED, result__isnull=True, error_code=ItemError.CHECK_FAILED)
                | Q(standing=ItemState.UNKNOWN, result__isnull=True, error_code=ItemError.RESERVATION_UNKNOWN)
                | Q(standing=ItemState.UNATTEMPTED, result__isnull=True, error_code="", checked_at__isnull=True),
                name="item_carries_what_it_says",
            ),
            models.CheckConstraint(
                condition=Q(reservation__isnull=True, reservation_expires_at__isnull=True)
                | Q(
                    reservation__isnull=False,
                    standing=ItemState.COMPLETED,
                    reservation_expires_at=_after(F("checked_at"), AUTHORITY),
                ),
                name="item_authority_ends",
            ),
        ]


class Receipt(TenantRow):
    """That a reservation was confirmed, by what, and when: one that is sent again is compared with it (RULES S8)."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+", db_constraint=False)
    reservation = models.ForeignKey(Reservation, on_delete=models.PROTECT, related_name="receipts", db_constraint=False)
    digest = models.CharField(max_length=64)
    used = models.JSONField(help_text="what was sent")
    confirmed_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["reservation"], name="receipt_once"),
        ]
