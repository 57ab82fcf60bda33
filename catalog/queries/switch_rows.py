"""Switches as people see them: who turned which on, when, why, and who lifted it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet

from base import ids
from catalog.models import KillSwitch
from catalog.rules.switching import Mode, Scope


@dataclass(frozen=True, slots=True)
class SwitchRow:
    """One switch, on or lifted. Without `on_by` it was turned on by a line of SQL."""

    shown_id: str
    scope: Scope
    target: str
    mode: Mode
    reason: str
    on_at: datetime
    on_by: str
    off_at: datetime | None
    off_by: str

    @property
    def named(self) -> str:
        """`tool shop`, `function shop.note`, or `the whole workspace`."""
        return "the whole workspace" if self.scope is Scope.TENANT else f"{self.scope} {self.target}"


def row_of(one: KillSwitch) -> SwitchRow:
    """The row of a switch; its people are loaded."""
    return SwitchRow(
        shown_id=ids.show(ids.SWITCH, one.pk),
        scope=Scope(one.scope),
        target=one.target,
        mode=Mode(one.mode),
        reason=one.reason,
        on_at=one.on_at,
        on_by=one.on_by.get_username() if one.on_by else "",
        off_at=one.off_at,
        off_by=one.off_by.get_username() if one.off_by else "",
    )


def with_people() -> QuerySet[KillSwitch]:
    """Switches with what `row_of` needs."""
    return KillSwitch.objects.select_related("on_by", "off_by")


def on_now() -> tuple[SwitchRow, ...]:
    """Every switch of the tenant that is on, kill switches first. Demands an open read."""
    return tuple(map(row_of, with_people().filter(off_at__isnull=True).order_by("mode", "-on_at")))


def on_over(*targets: tuple[Scope, str], inside: Iterable[str] = ()) -> tuple[SwitchRow, ...]:
    """The switches that are on over the tenant or these targets, and over any function `inside`.

    Demands an open read.
    """
    wanted = Q(scope=Scope.TENANT)
    for scope, target in targets:
        wanted |= Q(scope=scope, target=target)
    if names := list(inside):
        wanted |= Q(scope=Scope.FUNCTION, target__in=names)
    return tuple(map(row_of, with_people().filter(wanted, off_at__isnull=True).order_by("mode", "-on_at")))
