"""Model building blocks shared by every app: a tenanted row with a time-ordered id, and states kept to their words."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from django.db import models

from base import ids

WORD = 32  # room for a state, a kind or a reason code


class TenantRow(models.Model):
    """A row that belongs to one tenant. Row-level security hides it from every other (`base/tenancy.py`)."""

    id = models.UUIDField(primary_key=True, default=ids.new, editable=False)
    tenant = models.ForeignKey("tenants.Tenant", on_delete=models.PROTECT, related_name="+", editable=False)

    class Meta:
        abstract = True


def word(**options: Any) -> "models.CharField[str, str]":
    """A short text column for an enum's word or a reason code."""
    return models.CharField(max_length=WORD, **options)


def one_of(column: str, words: Iterable[StrEnum], name: str) -> models.CheckConstraint:
    """A check that `column` holds one of these words and nothing else."""
    return models.CheckConstraint(condition=models.Q(**{f"{column}__in": [w.value for w in words]}), name=name)
