"""What starts jobs by itself: routines by the clock, hooks when an event comes (RULES G1)."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from base.fields import TenantRow, one_of, word
from jobs.rules.starters import WITH_JOB, Arrived, Missed, Overlap, Ran, Signing, Standing


class Routine(TenantRow):
    """An agent started by the clock. Its jobs count as its person's, who is whoever saved it last (RULES A10)."""

    name = models.CharField(max_length=64)
    agent_name = models.CharField(max_length=64)
    title = models.CharField(max_length=200, blank=True)
    input = models.JSONField(default=dict)
    cron = models.CharField(max_length=100)
    zone = models.CharField(max_length=64, help_text="an IANA time zone, which the expression is read in")
    missed = word(default=Missed.ONCE)
    overlap = word(default=Overlap.SKIP)
    standing = word(default=Standing.ON)
    because = models.TextField(blank=True, help_text="why the studio stopped it")
    due_at = models.DateTimeField(null=True, help_text="when it starts its next job")
    person = models.ForeignKey("tenants.User", on_delete=models.PROTECT, related_name="+")
    changed_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["tenant", "name"], condition=~Q(standing=Standing.REMOVED), name="routine_name_once"
            ),
            one_of("missed", Missed, "routine_missed"),
            one_of("overlap", Overlap, "routine_overlap"),
            one_of("standing", Standing, "routine_standing"),
            models.CheckConstraint(
                condition=Q(standing=Standing.ON, due_at__isnull=False)
                | (~Q(standing=Standing.ON) & Q(due_at__isnull=True)),
                name="routine_due_while_on",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["due_at"], condition=Q(due_at__isnull=False), name="routine_due"),
        ]


class RoutineRun(TenantRow):
    """What became of one due time of a routine; it is there once for each, and `skipped` others before it."""

    routine = models.ForeignKey(Routine, on_delete=models.PROTECT, related_name="runs", db_constraint=False)
    due_at = models.DateTimeField()
    came = word()
    job = models.ForeignKey("jobs.Job", null=True, on_delete=models.PROTECT, related_name="+", db_constraint=False)
    skipped = models.PositiveIntegerField(
        default=0, help_text="due times before this one that were missed, and not run"
    )
    detail = models.TextField(blank=True)
    at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["routine", "due_at"], name="routine_run_once"),
            one_of("came", Ran, "routine_run_came"),
            models.CheckConstraint(
                condition=Q(came__in=sorted(WITH_JOB), job__isnull=False)
                | (~Q(came__in=sorted(WITH_JOB)) & Q(job__isnull=True)),
                name="routine_run_has_its_job",
            ),
        ]


class Hook(TenantRow):
    """An address that starts an agent for each event that comes to it signed. Its jobs count as its person's."""

    name = models.CharField(max_length=64)
    agent_name = models.CharField(max_length=64)
    signing = word(default=Signing.STANDARD)
    mapping = models.JSONField(default=dict, help_text="where each input comes from (rules.event_mapping)")
    standing = word(default=Standing.ON)
    because = models.TextField(blank=True, help_text="why the studio stopped it")
    old_secret_until = models.DateTimeField(null=True, help_text="how long the secret before this one still counts")
    unsigned_at = models.DateTimeField(null=True, help_text="when something came last that is not signed rightly")
    unsigned_why = models.CharField(max_length=200, blank=True)
    person = models.ForeignKey("tenants.User", on_delete=models.PROTECT, related_name="+")
    changed_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["tenant", "name"], condition=~Q(standing=Standing.REMOVED), name="hook_name_once"
            ),
            one_of("signing", Signing, "hook_signing"),
            one_of("standing", Standing, "hook_standing"),
        ]


class HookDelivery(TenantRow):
    """One event that came rightly signed, however often: by the name that its sender gave it."""

    hook = models.ForeignKey(Hook, on_delete=models.PROTECT, related_name="deliveries", db_constraint=False)
    delivery = models.CharField(max_length=200)
    digest = models.CharField(max_length=64, help_text="SHA-256 of its body")
    kind = models.CharField(max_length=100, blank=True, help_text="what its sender calls this kind of event")
    came = word()
    detail = models.TextField(blank=True)
    times = models.PositiveIntegerField(default=1, help_text="how often it came")
    job = models.ForeignKey("jobs.Job", null=True, on_delete=models.PROTECT, related_name="+", db_constraint=False)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["hook", "delivery"], name="hook_delivery_once"),
            one_of("came", Arrived, "hook_delivery_came"),
            models.CheckConstraint(
                condition=Q(came=Arrived.STARTED, job__isnull=False) | (~Q(came=Arrived.STARTED) & Q(job__isnull=True)),
                name="hook_delivery_has_its_job",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["hook", "-last_at"], name="hook_delivery_newest"),
        ]
