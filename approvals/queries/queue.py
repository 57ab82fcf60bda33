"""The queue of open questions, oldest first, without any body."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from approvals.queries.floods import Flood, floods
from base import db, ids
from jobs.models import Hold
from jobs.queries.trace import name_of
from jobs.rules.states import HoldKind

PAGE: Final = 50
MOST_COUNTED: Final = 1_001


@dataclass(frozen=True, slots=True)
class QueueFilter:
    """Which questions; empty is all."""

    kind: str = ""
    agent: str = ""
    tool: str = ""
    after: UUID | None = None


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One open question."""

    shown_id: str
    kind: HoldKind
    name: str
    function_kind: str
    agent: str
    why: str
    opened_at: datetime
    expires_at: datetime | None
    count: int = 1


@dataclass(frozen=True, slots=True)
class Queue:
    """A page of the queue: questions, and groups of them at the place of their oldest.

    `total` counts every question that fits, at most 1,001.
    """

    rows: tuple[QueueRow | Flood, ...]
    total: int
    oldest: datetime | None
    agents: tuple[str, ...]
    tools: tuple[str, ...]
    next_after: str | None
    now: datetime


def queue(tenant: UUID, wanted: QueueFilter) -> Queue:
    """The open questions that fit, oldest first."""
    with db.read(tenant) as now:
        every = Hold.objects.filter(closed_at__isnull=True)
        fitting = every
        if wanted.kind:
            fitting = fitting.filter(kind=wanted.kind)
        if wanted.agent:
            fitting = fitting.filter(job__agent_name=wanted.agent)
        if wanted.tool:
            fitting = fitting.filter(call__tool_slug=wanted.tool)
        grouped = floods(agent=wanted.agent, tool=wanted.tool) if wanted.kind in ("", HoldKind.UNKNOWN) else []
        alone = fitting.filter(pk__gt=wanted.after) if wanted.after else fitting
        for flood in grouped:
            alone = alone.exclude(flood.members)
        found = list(
            alone.select_related("call", "job")
            .defer("call__arguments", "job__input", "job__output")
            .order_by("pk")[: PAGE + 1]
        )
        return Queue(
            rows=_merged(found, grouped, wanted.after),
            total=fitting[:MOST_COUNTED].count(),
            oldest=fitting.order_by("pk").values_list("opened_at", flat=True).first(),
            agents=tuple(sorted(set(every.values_list("job__agent_name", flat=True).distinct()[:100]))),
            tools=tuple(sorted(set(every.values_list("call__tool_slug", flat=True).distinct()[:100]))),
            next_after=ids.show(ids.HOLD, found[PAGE - 1].pk) if len(found) > PAGE else None,
            now=now,
        )


def _merged(found: list[Hold], grouped: list[Flood], after: UUID | None) -> tuple[QueueRow | Flood, ...]:
    """The page's questions and the groups between them, by their oldest."""
    page = found[:PAGE]
    end = page[-1].pk if len(found) > PAGE else None
    here = [one for one in grouped if (not after or one.oldest > after) and (end is None or one.oldest < end)]
    placed: list[tuple[UUID, QueueRow | Flood]] = [(hold.pk, _row(hold)) for hold in page]
    placed += [(one.oldest, one) for one in here]
    return tuple(row for _, row in sorted(placed, key=lambda one: one[0]))


def _row(hold: Hold) -> QueueRow:
    return QueueRow(
        shown_id=ids.show(ids.HOLD, hold.pk),
        kind=HoldKind(hold.kind),
        name=name_of(hold.call),
        function_kind=hold.call.kind,
        agent=hold.job.agent_name,
        why=hold.why,
        opened_at=hold.opened_at,
        expires_at=hold.expires_at,
    )
