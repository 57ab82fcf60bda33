"""How people decided over some days: how long it took, what was asked, by which rule and agent, and how it ended.

A handful of statements, however many questions there were; each row of the answer is bounded.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from approvals.rules.insights import Advice, Answers, Habit, Unknown, of_all, of_function, of_unknown
from base import db, prepared
from jobs.rules.states import HoldKind, HoldState

MOST: Final = 30  # rows of a table
MOST_ADVICE: Final = 8
HEIGHT: Final = 36  # of the highest bar
_APPROVALS: Final = f"h.kind IN ('{HoldKind.APPROVE}', '{HoldKind.RETRY}')"
_TOOK: Final = f"extract(epoch FROM h.closed_at - h.opened_at)) FILTER (WHERE h.state = '{HoldState.ANSWERED}'"
_FIGURES: Final = f"""
count(*), count(*) FILTER (WHERE h.answer = 'approve'), count(*) FILTER (WHERE h.answer = 'edit'),
count(*) FILTER (WHERE h.answer = 'deny'), count(*) FILTER (WHERE h.answer = 'stop'),
count(*) FILTER (WHERE h.state = '{HoldState.EXPIRED}'), count(*) FILTER (WHERE h.state = '{HoldState.WITHDRAWN}'),
percentile_cont(0.5) WITHIN GROUP (ORDER BY {_TOOK}), percentile_cont(0.9) WITHIN GROUP (ORDER BY {_TOOK})
"""
_CLOSED: Final = "FROM jobs_hold h {more} WHERE h.closed_at >= %s"
_ALL: Final = f"SELECT {_FIGURES} {_CLOSED.format(more='')} AND {_APPROVALS}"
_BY_RULE: Final = f"""
SELECT h.rule_id, {_FIGURES} {_CLOSED.format(more="")} AND {_APPROVALS} GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {MOST}
"""
_BY_AGENT: Final = f"""
SELECT j.agent_name, {_FIGURES} {_CLOSED.format(more="JOIN jobs_job j ON j.id = h.job_id")} AND {_APPROVALS}
GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {MOST}
"""
_BY_FUNCTION: Final = f"""
SELECT c.tool_slug || '.' || c.function_name, h.rule_id, {_FIGURES}, array_agg(DISTINCT c.kind),
    count(DISTINCT h.answered_by_id),
    count(DISTINCT (h.closed_at AT TIME ZONE 'UTC')::date) FILTER (WHERE h.state = '{HoldState.ANSWERED}')
{_CLOSED.format(more="JOIN jobs_call c ON c.id = h.call_id")} AND {_APPROVALS} AND c.tool_slug <> ''
GROUP BY 1, 2 ORDER BY 3 DESC, 1 LIMIT {MOST}
"""
_UNKNOWN: Final = f"""
SELECT c.tool_slug, h.why, count(*), count(*) FILTER (WHERE h.answer = 'happened'),
    count(*) FILTER (WHERE h.answer = 'again'), count(*) FILTER (WHERE h.answer = 'stop'),
    count(*) FILTER (WHERE h.closed_at IS NULL)
FROM jobs_hold h JOIN jobs_call c ON c.id = h.call_id
WHERE h.kind = '{HoldKind.UNKNOWN}' AND (h.closed_at >= %s OR h.closed_at IS NULL)
GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT {MOST}
"""  # noqa: S608 - only words of ours
_OPEN: Final = (
    "SELECT count(*), min(opened_at) FROM (SELECT opened_at FROM jobs_hold WHERE closed_at IS NULL LIMIT 1001) o"
)
_BY_DAY: Final = f"""
SELECT (h.closed_at AT TIME ZONE 'UTC')::date::text, count(*) {_CLOSED.format(more="")} AND {_APPROVALS}
GROUP BY 1 ORDER BY 1
"""


@dataclass(frozen=True, slots=True)
class Row:
    """The questions of one rule, agent or function."""

    name: str
    answers: Answers
    advice: Advice | None = None
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Day:
    """How many questions were closed on one day; `height` is that of its bar, of `HEIGHT`."""

    day: str
    count: int
    height: float

    @property
    def above(self) -> float:
        """What is left of the height above the bar."""
        return HEIGHT - self.height


@dataclass(frozen=True, slots=True)
class Insights:
    """The page: `most` is what the longest bar of each table stands for."""

    all: Answers
    rules: tuple[Row, ...]
    agents: tuple[Row, ...]
    functions: tuple[Row, ...]
    unknown: tuple[tuple[Unknown, Advice | None], ...]
    days: tuple[Day, ...]
    most_a_day: int
    open: int
    oldest: datetime | None
    advice: tuple[Advice, ...]
    now: datetime


def insights(tenant: UUID, *, days: int) -> Insights:
    """How the questions that were closed in the last `days` days went, and what is open now."""
    with db.read(tenant) as now:
        since = now - timedelta(days=days)
        whole = _answers(prepared.fetch(_ALL, [since])[0])
        rules = prepared.fetch(_BY_RULE, [since])
        agents = prepared.fetch(_BY_AGENT, [since])
        functions = prepared.fetch(_BY_FUNCTION, [since])
        unknown = [Unknown(*row) for row in prepared.fetch(_UNKNOWN, [since])]
        by_day: dict[str, int] = dict(prepared.fetch(_BY_DAY, [since]))
        waiting, oldest = prepared.fetch(_OPEN)[0]
    counted = [str((since + timedelta(days=n)).date()) for n in range(1, days + 1)]
    most = max(by_day.values(), default=0)
    found = tuple(_row_of_function(row) for row in functions)
    advice = [*of_all(whole), *(row.advice for row in found if row.advice)]
    return Insights(
        all=whole,
        rules=tuple(Row(name or "no rule", _answers(rest)) for name, *rest in rules),
        agents=tuple(Row(name, _answers(rest)) for name, *rest in agents),
        functions=found,
        unknown=tuple((one, of_unknown(one)) for one in unknown),
        days=tuple(Day(day, by_day.get(day, 0), HEIGHT * by_day.get(day, 0) / (most or 1)) for day in counted),
        most_a_day=most,
        open=waiting,
        oldest=oldest,
        advice=tuple(advice[:MOST_ADVICE]),
        now=now,
    )


def _row_of_function(row: tuple[Any, ...]) -> Row:
    name, rule, *rest, kinds, people, days = row
    answers = _answers(rest)
    return Row(name, answers, of_function(name, answers, Habit(frozenset(kinds), people, days)), rule)


def _answers(row: Any) -> Answers:
    *counts, median, p90 = row
    took = [None if value is None else float(value) for value in (median, p90)]
    return Answers(*counts, *took)
