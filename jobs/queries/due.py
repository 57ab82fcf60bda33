"""What is due now, across tenants and fairly between them. To be claimed afterwards, each in a write of its tenant."""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from base import db, prepared
from catalog.models import Stage, Tool
from jobs.models import Job
from jobs.queries import paused
from jobs.rules.states import JOB_FINAL

type Work = tuple[UUID, UUID]  # (tenant, call, job or session)

# The n-th due row of every tenant comes before any tenant's n+1-th (MACHINES 4). What is paused is not due: it would
# take the places of what may start (RULES L11).
_CALLS = f"""
SELECT tenant_id, id FROM (
    SELECT c.tenant_id, c.id, c.due_at, row_number() OVER (PARTITION BY c.tenant_id ORDER BY c.due_at, c.id) AS place
    FROM jobs_call c JOIN jobs_job j ON j.id = c.job_id JOIN catalog_function f ON f.id = c.function_id
        JOIN catalog_tool t ON t.id = f.tool_id
    WHERE c.due_at <= %s AND j.state = 'running' AND NOT f.tool_id = ANY(%s)
        AND NOT (t.transport = 'sandbox' AND ((f.tool_id, j.id) IN (SELECT * FROM unnest(%s::uuid[], %s::uuid[]))
            OR EXISTS (SELECT 1 FROM jobs_attempt a JOIN jobs_call o ON o.id = a.call_id
                JOIN catalog_function g ON g.id = o.function_id
                WHERE a.job_id = j.id AND g.tool_id = f.tool_id AND a.ended_at IS NULL)))
        AND {paused.NOT_CALL}
) due ORDER BY place, due_at LIMIT %s
"""  # noqa: S608 - only names of ours
_TURNS = f"""
SELECT tenant_id, id FROM (
    SELECT tenant_id, id, turn_due_at, row_number() OVER (PARTITION BY tenant_id ORDER BY turn_due_at, id) AS place
    FROM jobs_job j WHERE turn_due_at <= %s AND {paused.NOT_JOB}
) due ORDER BY place, turn_due_at LIMIT %s
"""  # noqa: S608 - only names of ours
_SESSIONS = f"""
SELECT tenant_id, id FROM (
    SELECT s.tenant_id, s.id, s.due_at, row_number() OVER (PARTITION BY s.tenant_id ORDER BY s.due_at, s.id) AS place
    FROM jobs_session s JOIN jobs_job j ON j.id = s.job_id
    WHERE s.state = 'starting' AND s.due_at <= %s AND {paused.NOT_JOB}
) due ORDER BY place, due_at LIMIT %s
"""  # noqa: S608 - only names of ours


@dataclass(frozen=True, slots=True)
class Found:
    """Due work: calls, jobs whose turn is due, and harness sessions that may be started."""

    calls: list[Work]
    turns: list[Work]
    sessions: list[Work]


def work(
    *,
    calls: int = 0,
    turns: int = 0,
    sessions: int = 0,
    full_tools: Collection[UUID] = (),
    taken: Collection[tuple[UUID, UUID]] = (),
) -> Found:
    """What is due, at most so many of each kind, by one look. No call of a tool in `full_tools` (without a free slot).

    Nor any of a sandboxed tool whose one server for the job is busy: here, as `taken` says in (tool, job), or anywhere.
    """
    if not calls + turns + sessions:
        return Found([], [], [])
    tools, jobs = [tool for tool, _ in taken], [job for _, job in taken]

    def fetched(sql: str, most: int, *about: list[UUID]) -> list[Work]:
        return [(tenant, row) for tenant, row in prepared.fetch(sql, [now, *about, most])] if most else []

    with db.sweep() as now:
        return Found(
            fetched(_CALLS, calls, list(full_tools), tools, jobs),
            fetched(_TURNS, turns),
            fetched(_SESSIONS, sessions),
        )


def over(jobs: Collection[UUID]) -> set[UUID]:
    """Which of these jobs have ended."""
    with db.sweep():
        return set(Job.objects.filter(pk__in=jobs, state__in=JOB_FINAL).values_list("pk", flat=True))


def removed(tools: Collection[UUID]) -> set[UUID]:
    """Which of these tools are of a plugin that has left the catalog."""
    with db.sweep():
        gone = Tool.objects.filter(pk__in=tools, plugin_version__stage=Stage.REMOVED)
        return set(gone.values_list("pk", flat=True))


def measurements(*, most: int) -> list[Work]:
    """At most `most` tools whose listing should be read now, as (tenant, tool)."""
    with db.sweep() as now:
        due = Tool.objects.filter(measure_due_at__lte=now).order_by("measure_due_at")
        return list(due.values_list("tenant_id", "pk")[:most])
