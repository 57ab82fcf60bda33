"""People deciding: each answer a person gave, as it was given; and how they are told that something waits."""

from enum import StrEnum
from typing import ClassVar

from django.db import models
from django.db.models import Q

from base.fields import TenantRow, one_of, word


class Decision(TenantRow):
    """One person's answer to one hold. Append-only; the hold itself closes once.

    Where several must approve, each of them has a row. Who approved and then denies or stops has no second one: how
    the hold closed stands in the hold and in the audit log.
    """

    hold = models.ForeignKey("jobs.Hold", on_delete=models.PROTECT, related_name="decisions", db_constraint=False)
    person = models.ForeignKey("tenants.User", on_delete=models.PROTECT, related_name="+")
    answer = word()
    note = models.TextField(blank=True)
    channel = word(help_text="how it reached us: page, group with others, or edit")
    binding = models.CharField(max_length=64, blank=True, help_text="what an approval is bound to (RULES A4)")
    shown = models.CharField(max_length=64, help_text="digest of what the person was shown")
    at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["hold", "person"], name="decision_once"),
        ]


class Way(StrEnum):
    """How a channel reaches people."""

    EMAIL = "email"
    WEBHOOK = "webhook"


class Sending(StrEnum):
    """What became of a notice. `carried` went out inside another one; `dropped` was not needed any more."""

    DUE = "due"
    SENT = "sent"
    CARRIED = "carried"
    FAILED = "failed"
    DROPPED = "dropped"


class Channel(TenantRow):
    """Where notices of questions go. It tells of what opened after `since`; no link in it decides (RULES A5)."""

    name = models.CharField(max_length=64)
    way = word()
    url = models.TextField(blank=True, help_text="of a webhook")
    allowed = models.JSONField(default=list, help_text="host:port entries that a webhook may reach besides public ones")
    slack = models.BooleanField(default=False, help_text="a webhook that takes a text, as chat services do")
    to = models.JSONField(default=list, help_text="the addresses of an email")
    agent = models.CharField(max_length=64, blank=True, help_text="only questions of this agent")
    tool = models.CharField(max_length=48, blank=True, help_text="only questions about this tool")
    after = models.PositiveIntegerField(default=0, help_text="seconds a question has waited before it is told here")
    remind = models.PositiveIntegerField(default=0, help_text="seconds before it expires to tell again; 0: never")
    tells_end = models.BooleanField(default=False, help_text="also tell how it was closed")
    with_arguments = models.BooleanField(default=False)
    since = models.DateTimeField()
    on = models.BooleanField(default=True)
    off_because = models.TextField(blank=True, help_text="why it was turned off, when the studio did")
    failing_since = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField(default=0, help_text="tries that failed in a row")
    changed_at = models.DateTimeField()
    removed_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["tenant", "name"], condition=Q(removed_at__isnull=True), name="channel_name_once"
            ),
            one_of("way", Way, "channel_way"),
            models.CheckConstraint(condition=Q(removed_at__isnull=True) | Q(on=False), name="channel_removed_is_off"),
        ]


class Delivery(TenantRow):
    """One notice to one channel: what it is about, its tries, and what came of them. Its id is the same in each try."""

    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, related_name="deliveries", db_constraint=False)
    hold = models.ForeignKey(
        "jobs.Hold", null=True, on_delete=models.PROTECT, related_name="+", db_constraint=False
    )  # none for a test
    about = word(help_text="asked, expiring, day 2, closed, or test")
    standing = word(default=Sending.DUE)
    carried_by = models.ForeignKey(
        "self", null=True, on_delete=models.PROTECT, related_name="carried", db_constraint=False
    )
    made_at = models.DateTimeField()
    due_at = models.DateTimeField(null=True)
    taken_until = models.DateTimeField(null=True, help_text="while one process tries it, no other does")
    tries = models.PositiveIntegerField(default=0)
    ended_at = models.DateTimeField(null=True)
    status = models.PositiveIntegerField(null=True, help_text="what the last try was answered with")
    took = models.FloatField(null=True, help_text="seconds of the last try")
    trouble = models.TextField(blank=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            one_of("standing", Sending, "delivery_state"),
            models.UniqueConstraint(
                fields=["channel", "hold", "about"], condition=Q(hold__isnull=False), name="delivery_once"
            ),
            models.CheckConstraint(
                condition=Q(standing=Sending.DUE, due_at__isnull=False, ended_at__isnull=True)
                | (~Q(standing=Sending.DUE) & Q(due_at__isnull=True, ended_at__isnull=False)),
                name="delivery_due_until_ended",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["due_at"], condition=Q(due_at__isnull=False), name="delivery_due"),
            models.Index(fields=["tenant", "-id"], name="delivery_newest"),
            models.Index(fields=["channel", "-id"], name="delivery_of_channel"),
        ]
