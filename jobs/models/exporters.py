"""Where the traces of jobs go."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from base.fields import TenantRow


class Exporter(TenantRow):
    """Where the traces of a tenant's jobs go (OpenTelemetry): of those after the job `last`, which ended at `since`."""

    url = models.TextField()
    allowed = models.JSONField(default=list, help_text="host:port entries that may be reached besides public ones")
    header = models.CharField(
        max_length=100, blank=True, help_text="the name of the header that the vault's value is of"
    )
    on = models.BooleanField(default=True)
    since = models.DateTimeField()
    last = models.UUIDField(null=True)
    due_at = models.DateTimeField(
        help_text="when it is looked for something to send; after a claim, for who claims anew"
    )
    tries = models.PositiveIntegerField(default=0, help_text="how often the same was sent in vain")
    trouble = models.TextField(blank=True)
    sent = models.PositiveBigIntegerField(default=0, help_text="jobs")
    sent_at = models.DateTimeField(null=True)
    made_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["tenant"], name="exporter_one"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["due_at"], condition=Q(on=True), name="exporter_due"),
        ]
