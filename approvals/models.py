"""People deciding: each answer a person gave, as it was given."""

from typing import ClassVar

from django.db import models

from base.fields import TenantRow, word


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
