"""The pages of the policy: the version in force with its coverage, older versions, and what changed between two."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from base import db
from catalog.models import PolicyVersion
from catalog.queries.policy_entries import ground
from catalog.rules import policy_words as words
from catalog.rules.policy import DEFAULTS, Policy
from catalog.rules.policy_coverage import Coverage, Outlook, Reach
from catalog.rules.policy_diff import RuleChange, compare
from catalog.rules.policy_rules import Rule

UNNAMED_SHOWN: Final = 30
VERSIONS_SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class RuleRow:
    """One rule in its place, in words, with what it is about."""

    place: int
    rule: Rule
    conditions: tuple[str, ...]
    reach: Reach

    @property
    def effect(self) -> str:
        """What it does: a rule that cannot be read asks."""
        return "ask" if self.rule.odd else self.rule.effect


@dataclass(frozen=True, slots=True)
class VersionRow:
    """One version: who made it, when and why. Number 0 is the studio's own, which nobody made."""

    number: int
    rules: int
    made_by: str
    made_at: datetime | None
    note: str
    restores: int | None


@dataclass(frozen=True, slots=True)
class PolicyPage:
    """The policy in force. `unnamed` are some of the functions that no rule is about."""

    version: VersionRow
    rows: tuple[RuleRow, ...]
    defaults: tuple[RuleRow, ...]
    unnamed: tuple[Outlook, ...]
    unnamed_in_all: int
    functions: int
    waits: int
    versions: tuple[VersionRow, ...]
    now: datetime

    @property
    def odd(self) -> int:
        """How many rules cannot be read."""
        return sum(bool(row.rule.odd) for row in self.rows)

    @property
    def idle(self) -> int:
        """How many rules are about nothing, or over."""
        return sum(bool(row.reach.idle) for row in self.rows)


@dataclass(frozen=True, slots=True)
class VersionPage:
    """One version beside another one. `changes` lead from `beside` to it."""

    version: VersionRow
    beside: VersionRow
    in_force: int
    rows: tuple[RuleRow, ...]
    changes: tuple[RuleChange, ...]
    numbers: tuple[int, ...]
    raw: Any
    now: datetime


def policy_page(tenant: UUID) -> PolicyPage:
    """The page of the policy in force."""
    with db.read(tenant) as now:
        newest, raw = version_row()
        versions, under = _versions(), ground(now)
    found = under.under(Policy.read(raw))
    unnamed = found.unnamed
    return PolicyPage(
        version=newest,
        rows=rule_rows(raw, found),
        defaults=_default_rows(),
        unnamed=unnamed[:UNNAMED_SHOWN],
        unnamed_in_all=len(unnamed),
        functions=len(found.outlooks),
        waits=sum(outlook.waits for outlook in found.outlooks),
        versions=versions[:5],
        now=now,
    )


def versions_page(tenant: UUID) -> tuple[tuple[VersionRow, ...], datetime]:
    """The newest versions, newest first, and the time."""
    with db.read(tenant) as now:
        return _versions(), now


def version_page(tenant: UUID, number: int, beside: int | None = None) -> VersionPage | None:
    """A version beside the one before it, or beside another one; None when there is none of a number."""
    with db.read(tenant) as now:
        newest, _ = version_row()
        one, other = _found(number), _found(number - 1 if beside is None else beside)
        if one is None or other is None or number == 0:
            return None
        under = ground(now)
    (row, raw), (before, raw_before) = one, other
    return VersionPage(
        version=row,
        beside=before,
        in_force=newest.number,
        rows=rule_rows(raw, under.under(Policy.read(raw))),
        changes=compare(raw_before, raw),
        numbers=tuple(range(newest.number, -1, -1))[:VERSIONS_SHOWN],
        raw=raw,
        now=now,
    )


def draft_from(tenant: UUID, number: int | None = None) -> tuple[VersionRow, Any] | None:
    """A version and its rules as they were written: the one in force, or one of this number; None without it."""
    with db.read(tenant):
        return version_row() if number is None else _found(number)


def rows_of(tenant: UUID, rules: Any) -> tuple[RuleRow, ...]:
    """The rules of a draft in words, laid over what there is."""
    with db.read(tenant) as now:
        under = ground(now)
    return rule_rows(rules, under.under(Policy.read(rules)))


def rule_rows(raw: Any, found: Coverage) -> tuple[RuleRow, ...]:
    """Each rule in words with its reach."""
    rules = Policy.read(raw).rules
    return tuple(
        RuleRow(at + 1, rule, words.conditions(rule), reach)
        for at, (rule, reach) in enumerate(zip(rules, found.reaches, strict=True))
    )


def version_row() -> tuple[VersionRow, Any]:
    """The version in force and its rules as they were written. Demands an open read."""
    newest = PolicyVersion.objects.select_related("made_by").order_by("-number").first()
    return (_row(newest), newest.rules) if newest else (_NOBODYS, [])


_NOBODYS: Final = VersionRow(0, 0, "", None, "", None)


def _found(number: int) -> tuple[VersionRow, Any] | None:
    if number == 0:
        return _NOBODYS, []
    found = PolicyVersion.objects.select_related("made_by").filter(number=number).first()
    return (_row(found), found.rules) if found else None


def _versions() -> tuple[VersionRow, ...]:
    found = PolicyVersion.objects.select_related("made_by").order_by("-number")
    return tuple(map(_row, found[:VERSIONS_SHOWN]))


def _row(version: PolicyVersion) -> VersionRow:
    return VersionRow(
        number=version.number,
        rules=len(version.rules) if isinstance(version.rules, list) else 1,
        made_by=version.made_by.get_username() if version.made_by else "",
        made_at=version.made_at,
        note=version.note,
        restores=version.restores,
    )


def _default_rows() -> tuple[RuleRow, ...]:
    return tuple(RuleRow(0, rule, words.conditions(rule), Reach(0)) for rule in DEFAULTS)
