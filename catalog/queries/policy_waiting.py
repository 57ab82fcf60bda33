"""Which functions wait for a person, why, and how to mend that."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

from base import db
from catalog.models import Function
from catalog.queries import policies
from catalog.queries.policy_entries import ground
from catalog.queries.trust import Approved, trusted_by
from catalog.rules import policy_words as words
from catalog.rules.kinds import undeclared
from catalog.rules.policy import Policy, Refuse
from catalog.rules.policy_coverage import Outlook
from catalog.rules.policy_fixes import Fix, fixes, why
from catalog.rules.policy_rules import Effect

A_PAGE: Final = 100


class Show(StrEnum):
    """Which functions are listed."""

    WAITS = "waits"
    SOMETIMES = "sometimes"
    REFUSED = "refused"
    RUNS = "runs"


@dataclass(frozen=True, slots=True)
class Sometimes:
    """A rule by which some calls of a function fare otherwise than the rest."""

    id: str
    title: str
    effect: str
    when: str


@dataclass(frozen=True, slots=True)
class WaitingRow:
    """One function: what becomes of its calls, why, and the ways out."""

    tool: str
    function: str
    kind: str
    why: str
    rule: str
    sometimes: tuple[Sometimes, ...]
    fixes: tuple[Fix, ...]

    @property
    def label(self) -> str:
        """`tool.function`, which names it everywhere."""
        return f"{self.tool}.{self.function}"


@dataclass(frozen=True, slots=True)
class WaitingPage:
    """One page of the list; `counts` are of the whole catalog, `found` of what the filters let through."""

    rows: tuple[WaitingRow, ...]
    counts: tuple[tuple[Show, int], ...]
    tools: tuple[str, ...]
    found: int
    first: int
    more: bool
    policy: int
    now: datetime

    @property
    def last(self) -> int:
        """The place of the last row."""
        return self.first + len(self.rows)


def waiting_page(tenant: UUID, *, show: Show, tool: str = "", words_: str = "", page: int = 1) -> WaitingPage:
    """The functions of one sort, of one tool when it is named, whose name has these words in it."""
    with db.read(tenant) as now:
        policy, number = policies.in_force()
        under = ground(now)
    outlooks = under.under(policy).outlooks
    counted = Counter(sort_of(outlook) for outlook in outlooks)
    kept = [
        (function, outlook)
        for function, outlook in zip(under.functions, outlooks, strict=True)
        if sort_of(outlook) is show
        and tool in ("", outlook.entry.tool)
        and words_.lower() in f"{outlook.entry.tool}.{outlook.entry.function}".lower()
    ]
    first = max(0, page - 1) * A_PAGE
    return WaitingPage(
        rows=tuple(_row(policy, one, look, under.approved, now) for one, look in kept[first : first + A_PAGE]),
        counts=tuple((sort, counted[sort]) for sort in Show),
        tools=tuple(dict.fromkeys(outlook.entry.tool for outlook in outlooks)),
        found=len(kept),
        first=first,
        more=len(kept) > first + A_PAGE,
        policy=number,
        now=now,
    )


def rows_of(tenant: UUID, tools: Collection[str]) -> list[tuple[Show, WaitingRow]]:
    """Every function of these tools with the list it stands in, by tool and name."""
    with db.read(tenant) as now:
        policy, _ = policies.in_force()
        under = ground(now)
    outlooks = zip(under.functions, under.under(policy).outlooks, strict=True)
    return [
        (sort_of(outlook), _row(policy, one, outlook, under.approved, now))
        for one, outlook in outlooks
        if outlook.entry.tool in tools
    ]


def sort_of(outlook: Outlook) -> Show:
    """The list that a function stands in."""
    if isinstance(outlook.verdict, Refuse):
        return Show.REFUSED
    if outlook.waits:
        return Show.WAITS
    return Show.SOMETIMES if outlook.sometimes else Show.RUNS


def sometimes_of(outlook: Outlook) -> tuple[Sometimes, ...]:
    """The rules by which some calls of a function fare otherwise, in words."""
    return tuple(
        Sometimes(rule.id, rule.title, Effect.ASK if rule.odd else rule.effect, ", and ".join(words.of_a_call(rule)))
        for rule in outlook.sometimes
    )


def _row(policy: Policy, function: Function, outlook: Outlook, approved: Approved, now: datetime) -> WaitingRow:
    trusted = trusted_by(function, approved)
    trouble = undeclared(function.annotations, trusted=trusted)
    return WaitingRow(
        tool=outlook.entry.tool,
        function=outlook.entry.function,
        kind=outlook.entry.kind,
        why=why(outlook, trouble) if outlook.waits else "",
        rule=outlook.verdict.rule.title,
        sometimes=sometimes_of(outlook),
        fixes=fixes(policy, outlook, trouble, now, trusted=trusted) if outlook.waits else (),
    )
