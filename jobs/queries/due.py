"""What is due now, across tenants and fairly between them. To be claimed afterwards, each in a write of its tenant."""

from collections.abc import Collection
from uuid import UUID

from django.db import connection

from base import db
from catalog.models import Tool

type Work = tuple[UUID, UUID]  # (tenant, call or job)

# The n-th due row of every tenant comes before any tenant's n+1-th (MACHINES 4).
_CALLS = """
SELECT tenant_id, id FROM (
    SELECT c.tenant_id, c.id, c.due_at, row_number() OVER (PARTITION BY c.tenant_id ORDER BY c.due_at, c.id) AS place
    FROM jobs_call c JOIN jobs_job j ON j.id = c.job_id JOIN catalog_function f ON f.id = c.function_id
    WHERE c.due_at <= %s AND j.state = 'running' AND NOT f.tool_id = ANY(%s)
) due ORDER BY place, due_at LIMIT %s
"""
_TURNS = """
SELECT tenant_id, id FROM (
    SELECT tenant_id, id, turn_due_at, row_number() OVER (PARTITION BY tenant_id ORDER BY turn_due_at, id) AS place
    FROM jobs_job WHERE turn_due_at <= %s
) due ORDER BY place, turn_due_at LIMIT %s
"""


def calls(*, most: int, full_tools: Collection[UUID] = ()) -> list[Work]:
    """At most `most` due calls, none of a tool in `full_tools` (those without a free slot here)."""
    with db.sweep() as now, connection.cursor() as cursor:
        cursor.execute(_CALLS, [now, list(full_tools), most])
        return list(cursor.fetchall())


def turns(*, most: int) -> list[Work]:
    """At most `most` jobs whose turn is due."""
    with db.sweep() as now, connection.cursor() as cursor:
        cursor.execute(_TURNS, [now, most])
        return list(cursor.fetchall())


def measurements(*, most: int) -> list[Work]:
    """At most `most` tools whose listing should be read now, as (tenant, tool)."""
    with db.sweep() as now:
        due = Tool.objects.filter(measure_due_at__lte=now).order_by("measure_due_at")
        return list(due.values_list("tenant_id", "pk")[:most])
