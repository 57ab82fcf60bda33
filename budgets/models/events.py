"""What programs tell of their calls afterwards. None of it is counted against a limit: that is what was admitted."""

from decimal import Decimal
from typing import ClassVar

from django.db import models
from django.db.models import Q

from base.fields import TenantRow, one_of, word
from budgets.models.projects import Project, money
from budgets.rules.words import EventStatus


class Run(TenantRow):
    """Events of one run of a program, as that names it, and what they come to."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="runs", db_constraint=False)
    name = models.CharField(max_length=256)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    calls = models.PositiveIntegerField(default=0)
    denied = models.PositiveIntegerField(default=0)
    input_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)
    cost = money(default=Decimal(0))

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["project", "name"], name="run_of_program_once"),
        ]
        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["project", "-id"], name="run_newest")]


class SpendEvent(TenantRow):
    """One call as a program tells of it, once for each attempt, and once for each moment of one program."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="events", db_constraint=False)
    call_id = models.CharField(max_length=256)
    attempt_index = models.PositiveIntegerField()
    instance_id = models.CharField(max_length=256)
    timestamp = models.DateTimeField()
    status = word()
    model = models.TextField()
    provider = models.TextField()
    modality = word()
    input_tokens = models.BigIntegerField()
    output_tokens = models.BigIntegerField()
    cost = money(null=True)
    tags = models.JSONField(default=dict)
    run = models.ForeignKey(Run, null=True, on_delete=models.PROTECT, related_name="events", db_constraint=False)
    digest = models.CharField(max_length=64, help_text="of all that was told")
    received_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["project", "call_id", "attempt_index"], name="spend_event_once"),
            models.UniqueConstraint(fields=["project", "timestamp", "instance_id"], name="spend_event_legacy_once"),
            one_of("status", EventStatus, "spend_event_status"),
            models.CheckConstraint(
                condition=Q(input_tokens__gte=0, output_tokens__gte=0), name="spend_event_not_negative"
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["project", "-id"], name="spend_event_newest")]


class TagValue(TenantRow):
    """That a tag has had this value in a project: there may only be so many."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+", db_constraint=False)
    key = models.CharField(max_length=64)
    value = models.CharField(max_length=256)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["project", "key", "value"], name="tag_value_once"),
        ]
