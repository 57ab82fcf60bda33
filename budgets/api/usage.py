"""Telling of calls afterwards, and reading what was told."""

from decimal import Decimal
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Query, Router
from ninja.responses import Status

from base import ids
from budgets import errors
from budgets.api.door import Takes, Trouble, holder_of
from budgets.api.shapes import (
    DuplicateOut,
    IngestIn,
    IngestOut,
    KeyOut,
    RejectedOut,
    RunLine,
    RunsIn,
    RunsOut,
    UsageIn,
    UsageLine,
    UsageOut,
    answers,
)
from budgets.models import Run, SpendEvent
from budgets.operations.ingesting import ingest
from budgets.queries import usage as queries
from budgets.queries.journal import shown_project
from budgets.rules.words import EventStatus

router = Router(tags=["budgets"])


@router.post(
    "/budgets/ingest",
    response=answers(IngestOut, 413, 415, status=202),
    auth=Takes(writes=True),
    url_name="api-budget-ingest",
    summary="Tell of calls",
)
def tell(request: HttpRequest, sent: IngestIn) -> Any:
    """Take up to 1,000 events. Each is taken once, by its call and attempt; none of them changes what is counted."""
    holder = holder_of(request)
    found = ingest(tenant=holder.tenant, project=holder.project, told=[one.as_told() for one in sent.events])
    rejections = [
        RejectedOut(index=index, call_id=one.told.call_id, attempt_index=one.told.attempt_index, code=one.rejection)
        for index, one in enumerate(found)
        if one.rejection is not None
    ]
    duplicates = [
        DuplicateOut(
            index=index,
            call_id=one.told.call_id,
            attempt_index=one.told.attempt_index,
            matched_by=one.by,
            same=one.same,
        )
        for index, one in enumerate(found)
        if one.by is not None
    ]
    told = IngestOut(
        submitted=len(found),
        ingested=len(found) - len(rejections) - len(duplicates),
        rejected=len(rejections),
        duplicates=len(duplicates),
        rejections=rejections,
        duplicate_events=duplicates,
    )
    return Status(202, told)


@router.get(
    "/budgets/usage",
    response=answers(UsageOut),
    auth=Takes(asked=UsageIn),
    url_name="api-budget-usage",
    summary="List what was told",
)
def usage(request: HttpRequest, wanted: Query[UsageIn]) -> Any:
    """Events of this project, the newest first."""
    filtered = queries.UsageFilter(
        run=_id(ids.PROGRAM_RUN, wanted.run_id, "run_id"),
        status=wanted.status,
        since=wanted.since,
        until=wanted.until,
    )
    page = queries.usage(wanted=filtered, **_asked(request, wanted, ids.SPEND_EVENT))
    return UsageOut(usage=[_event(row) for row in page.rows], next=page.next)


@router.get(
    "/budgets/runs",
    response=answers(RunsOut),
    auth=Takes(asked=RunsIn),
    url_name="api-budget-runs",
    summary="List runs",
)
def runs(request: HttpRequest, wanted: Query[RunsIn]) -> Any:
    """Runs of this project that events have named, the newest first."""
    page = queries.runs(name=wanted.name, **_asked(request, wanted, ids.PROGRAM_RUN))
    return RunsOut(runs=[_run(row) for row in page.rows], next=page.next)


@router.get(
    "/budgets/key", response=answers(KeyOut), auth=Takes(), url_name="api-budget-key", summary="Whose key this is"
)
def key(request: HttpRequest) -> Any:
    """The project of this key, and what the key may."""
    holder = holder_of(request)
    return KeyOut(project_id=shown_project(holder.project), scope=holder.scope)


def _asked(request: HttpRequest, wanted: UsageIn | RunsIn, prefix: str) -> dict[str, Any]:
    """Whose page of a list is asked for, and which."""
    holder, before = holder_of(request), _id(prefix, wanted.cursor, "cursor")
    return {"tenant": holder.tenant, "project": holder.project, "before": before, "most": wanted.limit}


def _id(prefix: str, text: str, name: str) -> UUID | None:
    try:
        return ids.parse(prefix, text) if text else None
    except ids.BadId as error:
        raise Trouble(422, errors.Busy.code, f"{name} is what an answer before said.") from error


def _event(row: SpendEvent) -> UsageLine:
    return UsageLine(
        event_id=ids.show(ids.SPEND_EVENT, row.pk),
        call_id=row.call_id,
        instance_id=row.instance_id,
        attempt_index=row.attempt_index,
        timestamp=row.timestamp,
        received_at=row.received_at,
        status=EventStatus(row.status),
        model=row.model,
        provider=row.provider,
        modality=row.modality,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        cost=None if row.cost is None else _money(row.cost),
        tags=row.tags,
        run_id=None if row.run is None else ids.show(ids.PROGRAM_RUN, row.run.pk),
        agent_run_id=None if row.run is None else row.run.name,
    )


def _run(row: Run) -> RunLine:
    return RunLine(
        run_id=ids.show(ids.PROGRAM_RUN, row.pk),
        agent_run_id=row.name,
        name=row.name,
        first_at=row.first_at,
        last_at=row.last_at,
        calls=row.calls,
        denied=row.denied,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        cost=_money(row.cost),
    )


def _money(amount: Decimal) -> str:
    return f"{amount.normalize():f}"
