"""Jobs that are over as their traces tell of them: the rows alone, without a body, and hidden characters visible."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import Q

from base import db, ids
from base.visible import visible
from catalog.models import Transport
from jobs.models import Attempt, Call, Exporter, Job, Turn
from jobs.queries.trace import name_of
from jobs.rules.spans import AttemptFacts, CallFacts, JobFacts, TurnFacts
from jobs.rules.states import AttemptState, CallState, TurnState

JOBS: Final = 20  # of one sending at most
SPANS: Final = 2_000  # after which a sending holds no further job
FAILED_CALLS: Final = frozenset({CallState.ERRORED, CallState.FAILED, CallState.REFUSED})
GOOD_ENDS: Final = frozenset({AttemptState.ANSWERED, AttemptState.STOPPED})


def exporters_due(*, most: int) -> list[tuple[UUID, UUID]]:
    """(tenant, exporter) of those that are to look whether there is something to send."""
    with db.sweep() as now:
        due = Exporter.objects.filter(on=True, due_at__lte=now).order_by("due_at")
        return list(due.values_list("tenant_id", "pk")[:most])


def ended_after(since: datetime, last: UUID | None, *, until: datetime) -> list[JobFacts]:
    """The jobs that ended after that one, to that moment, in order: as many as one sending holds, at least one.

    Demands an open read or write.
    """
    after = Q(ended_at__gt=since) | (Q(ended_at=since, pk__gt=last) if last else Q(ended_at=since))
    rows = Job.objects.filter(after, ended_at__lte=until).defer("input", "output").order_by("ended_at", "pk")[:JOBS]
    found: list[JobFacts] = []
    for row in rows:
        found.append(_job(row))
        if sum(job.weight for job in found) >= SPANS:
            break
    return found


def _job(row: Job) -> JobFacts:
    ended = row.ended_at or row.created_at
    attempts: dict[UUID, list[AttemptFacts]] = defaultdict(list)
    remote = dict(Call.objects.filter(job=row).values_list("pk", "function__tool__transport"))
    for attempt in Attempt.objects.filter(job=row).defer("late").order_by("number"):
        attempts[attempt.call_id].append(_attempt(attempt, ended, remote.get(attempt.call_id) == Transport.URL))
    calls = Call.objects.filter(job=row).defer("arguments", "result_text").order_by("activity")
    turns = Turn.objects.filter(job=row).defer("say", "wanted", "notes").order_by("number")
    return JobFacts(
        id=row.pk,
        agent=row.agent_name,
        title=visible(row.title, 200),
        starter=row.starter,
        state=row.state,
        failure_kind=row.failure_kind,
        shown=ids.show(ids.JOB, row.pk),
        began=row.created_at,
        ended=ended,
        turns=[_turn(turn, ended) for turn in turns],
        calls=[_call(call, attempts[call.pk], ended) for call in calls],
    )


def _turn(row: Turn, ended: datetime) -> TurnFacts:
    return TurnFacts(
        id=row.pk,
        number=row.number,
        model=visible(row.model, 200),
        began=row.asked_at,
        ended=row.ended_at or ended,
        state=row.state,
        usage=row.usage,
        failed=row.state != TurnState.ANSWERED,
    )


def _call(row: Call, attempts: Sequence[AttemptFacts], ended: datetime) -> CallFacts:
    tool, _, function = visible(name_of(row), 200).partition(".")
    return CallFacts(
        id=row.pk,
        tool=tool,
        function=function or tool,
        model_call_id=visible(row.model_call_id, 128),
        kind=row.kind,
        state=row.state,
        effect=row.effect,
        reason=row.reason,
        rule=row.rule_id,
        began=row.created_at,
        ended=row.ended_at or ended,
        failed=row.state in FAILED_CALLS,
        attempts=attempts,
    )


def _attempt(row: Attempt, ended: datetime, remote: bool) -> AttemptFacts:
    wire = row.wire or {}
    return AttemptFacts(
        id=row.pk,
        number=row.number,
        began=row.started_at,
        ended=row.ended_at or ended,
        end=row.state,
        reason=row.reason,
        went_out=bool(wire.get("went_out")),
        status=wire.get("status") or None,
        remote=remote,
        failed=row.state not in GOOD_ENDS or row.reason == "tool_error",
    )
