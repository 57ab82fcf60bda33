"""Unknown outcomes that came together: of one tool, with one cause, one soon after the other (RULES U7)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import CharField, F, Q, QuerySet
from django.db.models.functions import Cast, Left

from approvals.queries.deciding_rules import deciding_rules, question_of
from approvals.rules.deciding import DecidingRules, Question, set_digest, shown_digest
from base import db, ids, prepared
from jobs.models import Attempt, Hold
from jobs.queries.trace import name_of
from jobs.queries.veil import Veil
from jobs.rules.limits import KEY_LIFE
from jobs.rules.states import HoldKind

LEAST: Final = 3  # questions that make a group
GAP: Final = timedelta(minutes=5)  # without a further one, after which the next belongs to another incident
MOST: Final = 250  # that are shown, and answered, at once
ARGUMENTS: Final = 160  # characters of a call's arguments in the list

_FLOODS: Final = f"""
SELECT tool, why, (array_agg(id ORDER BY opened_at, id))[1], count(*), min(opened_at), max(opened_at),
    array_agg(DISTINCT function)
FROM (
    SELECT *, count(*) FILTER (WHERE fresh) OVER (PARTITION BY tool, why ORDER BY opened_at, id) AS flood
    FROM (
        SELECT h.id, h.why, h.opened_at, c.tool_slug AS tool, c.function_name AS function,
            h.opened_at - lag(h.opened_at) OVER (PARTITION BY c.tool_slug, h.why ORDER BY h.opened_at, h.id)
                > %s::interval AS fresh
        FROM jobs_hold h JOIN jobs_call c ON c.id = h.call_id JOIN jobs_job j ON j.id = h.job_id
        WHERE h.closed_at IS NULL AND h.kind = '{HoldKind.UNKNOWN}'
            AND %s IN ('', j.agent_name) AND %s IN ('', c.tool_slug) AND %s IN ('', c.function_name)
    ) open
) apart GROUP BY tool, why, flood HAVING count(*) >= {LEAST} ORDER BY 3
"""  # noqa: S608 - only words of ours


@dataclass(frozen=True, slots=True)
class Flood:
    """One group of open questions, named by its oldest."""

    oldest: UUID
    tool: str
    why: str
    count: int
    first_at: datetime
    last_at: datetime
    functions: tuple[str, ...]

    @property
    def shown_id(self) -> str:
        """The id of its oldest question."""
        return ids.show(ids.HOLD, self.oldest)

    @property
    def members(self) -> Q:
        """The condition on holds that are open: every one of its tool and cause in its time belongs to it."""
        when = (self.first_at, self.last_at)
        return Q(kind=HoldKind.UNKNOWN, call__tool_slug=self.tool, why=self.why, opened_at__range=when)


def floods(*, agent: str = "", tool: str = "", function: str = "") -> list[Flood]:
    """The groups there are now, the oldest first; of one agent, tool or function alone when named.

    Demands an open read.
    """
    rows = prepared.fetch(_FLOODS, [GAP, agent, tool, function])
    return [
        Flood(oldest, of, why, count, first, last, tuple(sorted(functions)))
        for of, why, oldest, count, first, last, functions in rows
    ]


@dataclass(frozen=True, slots=True)
class Member:
    """One question of the group."""

    shown_id: str
    name: str
    arguments: str
    agent: str
    shown_job: str
    opened_at: datetime
    honours_key: bool
    question: Question


@dataclass(frozen=True, slots=True)
class Together:
    """A group as it can be answered at once: exactly the questions in `members`, and what is known of them.

    `newer` came since the page was shown, `rest` did not fit on it; neither is among the members. `shown` is the
    digest of all that is shown. `old_keys` are older than 24 h.
    """

    flood: Flood
    members: tuple[Member, ...]
    of_function: tuple[tuple[str, int], ...]
    function: str
    jobs: int
    evidence: tuple[tuple[str, int], ...]
    keyless: int
    old_keys: int
    upto: str
    newer: int
    rest: int
    shown: str
    now: datetime

    @property
    def ids(self) -> str:
        """The ids of its questions, as the form sends them back."""
        return " ".join(member.shown_id for member in self.members)


def together(
    tenant: UUID,
    anchor: UUID,
    *,
    role: str = "",
    agent: str = "",
    tool: str = "",
    function: str = "",
    upto: UUID | None = None,
) -> Together | None:
    """The group that a question belongs, or belonged, to, as `role` may see it; None when nothing of it is open.

    `function` narrows it, `upto` leaves out what came after that question. Raises `Hold.DoesNotExist`.
    """
    with db.read(tenant) as now:
        named = Hold.objects.select_related("call").get(pk=anchor)
        found = (one for one in floods(agent=agent, tool=tool) if _belongs(named, one))
        flood = next(found, None)
        if flood is None:
            return None
        everything = Hold.objects.filter(flood.members, closed_at__isnull=True)
        if agent:
            everything = everything.filter(job__agent_name=agent)
        of_function = Counter(everything.values_list("call__function_name", flat=True))
        fitting = everything.filter(call__function_name=function) if function else everything
        pinned = fitting.filter(pk__lte=upto) if upto else fitting
        holds = _loaded(pinned)
        if not holds:
            return None
        last = upto or holds[-1].pk
        count, older = fitting.count(), pinned.count()
        rules, veil = deciding_rules(tenant), Veil.over(role)
        return Together(
            flood=flood,
            members=tuple(_member(hold, rules, veil) for hold in holds),
            of_function=tuple(sorted(of_function.items())),
            function=function,
            jobs=len({hold.job_id for hold in holds}),
            evidence=() if veil.hides(flood.tool) else _evidence([hold.call_id for hold in holds]),
            keyless=sum(not hold.call.honours_key for hold in holds),
            old_keys=sum(hold.call.honours_key and now - hold.call.created_at > KEY_LIFE for hold in holds),
            upto=ids.show(ids.HOLD, last),
            newer=count - older if upto else 0,
            rest=(older if upto else count) - len(holds),
            shown=digest_of(holds),
            now=now,
        )


def digest_of(holds: Sequence[Hold]) -> str:
    """The digest of the cards of these questions, in this order; their calls are loaded."""
    return set_digest([card_digest(hold) for hold in holds])


def card_digest(hold: Hold) -> str:
    """The digest of one question's card; its call is loaded."""
    return shown_digest(hold=hold.pk, kind=hold.kind, binding=hold.binding, arguments=hold.call.args_digest)


def _belongs(hold: Hold, flood: Flood) -> bool:
    if (hold.call.tool_slug, hold.why) != (flood.tool, flood.why):
        return False
    return flood.first_at - GAP <= hold.opened_at <= flood.last_at + GAP


def _loaded(holds: QuerySet[Hold]) -> list[Hold]:
    rows = holds.select_related("call", "job").defer(
        "call__arguments", "job__input", "job__output", "call__result_text"
    )
    shown = Left(Cast(F("call__arguments"), CharField()), ARGUMENTS)
    return list(rows.annotate(arguments_text=shown).order_by("pk")[:MOST])


def _member(hold: Hold, rules: DecidingRules, veil: Veil) -> Member:
    text: Any = veil.any(hold.call.tool_slug, getattr(hold, "arguments_text", None))
    return Member(
        shown_id=ids.show(ids.HOLD, hold.pk),
        name=name_of(hold.call),
        arguments=text or "",
        agent=hold.job.agent_name,
        shown_job=ids.show(ids.JOB, hold.job_id),
        opened_at=hold.opened_at,
        honours_key=hold.call.honours_key,
        question=question_of(hold, rules),
    )


def _evidence(calls: list[UUID]) -> tuple[tuple[str, int], ...]:
    """What was seen of the last attempts, the most frequent first."""
    last: dict[UUID, str] = {}
    for call, wire in Attempt.objects.filter(call__in=calls).order_by("number").values_list("call_id", "wire"):
        last[call] = str((wire or {}).get("detail", ""))
    seen = Counter(text for text in last.values() if text)
    return tuple(seen.most_common(3))
