"""Projects, their limits and keys, and what is counted of them."""

from datetime import datetime
from decimal import Decimal
from typing import Any, ClassVar, Self

from django.db import models
from django.db.models import Q

from base.fields import TenantRow, one_of, word
from budgets.rules.words import DIGITS, PLACES, KeyScope, LimitMode, Period, Unconfirmed


def money(**options: Any) -> "models.DecimalField[Any, Any]":
    """An amount of US dollars, exact to its last digit."""
    return models.DecimalField(max_digits=DIGITS, decimal_places=PLACES, **options)


class Project(TenantRow):
    """What is counted together. One of an agent is made by itself, when that first asks a model.

    Its time zone stays as it is: what was counted, was counted by it.
    """

    name = models.CharField(max_length=64)
    agent = models.CharField(max_length=64, blank=True, help_text="whose requests to models are counted here")
    zone = models.CharField(max_length=64, default="UTC", help_text="where its days and months begin at midnight")
    unconfirmed = word(default=Unconfirmed.IN_DOUBT, help_text="what becomes of amounts that nobody confirms")
    made_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["tenant", "name"], condition=Q(agent=""), name="budget_name_once"),
            models.UniqueConstraint(fields=["tenant", "agent"], condition=~Q(agent=""), name="budget_agent_once"),
            one_of("unconfirmed", Unconfirmed, "budget_unconfirmed"),
        ]


class Limit(TenantRow):
    """How much a project may spend in each hour, day or month."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="limits", db_constraint=False)
    period = word()
    mode = word()
    amount = money()
    changed_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["project", "period", "mode"], name="limit_once"),
            one_of("period", Period, "limit_period"),
            one_of("mode", LimitMode, "limit_mode"),
            models.CheckConstraint(condition=Q(amount__gte=0), name="limit_not_negative"),
        ]


class Tally(TenantRow):
    """What is counted of a project in one hour, day or month, whether it has a limit or none.

    The row is the lock of whatever changes it. It equals what its reservations come to, always (RULES S9).
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="tallies", db_constraint=False)
    period = word()
    starts_at = models.DateTimeField()
    reserved = money(default=Decimal(0))
    in_doubt = money(default=Decimal(0))
    spent = money(default=Decimal(0))

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["project", "period", "starts_at"], name="tally_once"),
            one_of("period", Period, "tally_period"),
            models.CheckConstraint(
                condition=Q(reserved__gte=0, in_doubt__gte=0, spent__gte=0), name="tally_not_negative"
            ),
        ]


class KeyQuerySet(models.QuerySet["Key"]):
    """Questions about keys."""

    def live(self, now: datetime) -> Self:
        """Those that count by now: neither they nor the tokens of their logins have ended."""
        login = Q(login__isnull=True) | (Q(login__revoked_at__isnull=True) & _lasts("login__expires_at", now))
        return self.filter(_lasts("expires_at", now) & login, revoked_at__isnull=True)


def _lasts(column: str, now: datetime) -> Q:
    return Q(**{f"{column}__isnull": True}) | Q(**{f"{column}__gt": now})


class Key(TenantRow):
    """A project's key: one that lasts, or the pair that `oz0 login` has asked for, whose access is short.

    A pair counts for as long as the token of its `login` does. Only the SHA-256 of each secret is kept. A pair that was
    renewed can be renewed by its old secret until the new one has been used, since the answer that held it may have
    been lost.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="keys", db_constraint=False)
    name = models.CharField(max_length=100)
    scope = word()
    token_hash = models.CharField(max_length=64, unique=True)
    ends = models.CharField(max_length=8, help_text="its last characters, to know it by")
    refresh_hash = models.CharField(max_length=64, null=True, unique=True)  # noqa: DJ001 - none is not an empty one
    old_refresh_hash = models.CharField(max_length=64, null=True, unique=True)  # noqa: DJ001
    access_until = models.DateTimeField(null=True, help_text="when a pair's access ends, until it is renewed")
    login = models.ForeignKey(
        "tenants.ApiToken", null=True, on_delete=models.PROTECT, related_name="+", db_constraint=False
    )
    person = models.ForeignKey("tenants.User", on_delete=models.PROTECT, related_name="+")
    made_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    used_at = models.DateTimeField(null=True, help_text="when it was last used, to the minute")
    paced_until = models.DateTimeField(null=True, help_text="how far its questions reach (tenants.rules.pace)")

    objects = KeyQuerySet.as_manager()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            one_of("scope", KeyScope, "budget_key_scope"),
            models.CheckConstraint(
                condition=Q(
                    refresh_hash__isnull=True,
                    old_refresh_hash__isnull=True,
                    access_until__isnull=True,
                    login__isnull=True,
                )
                | Q(
                    refresh_hash__isnull=False,
                    access_until__isnull=False,
                    expires_at__isnull=False,
                    login__isnull=False,
                ),
                name="budget_key_or_pair",
            ),
        ]
