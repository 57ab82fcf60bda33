"""What a policy counts: attempts that began, and repeats of a call. Read from the attempts and calls themselves, so
that nothing has to be kept beside them and a new rule knows of what began before it (RULES A2).
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Final

from base import db, prepared
from catalog.rules.rates import Of, Rate
from jobs.models import Call

# The attempt that has to grow old before the rate has room: the last of as many as it allows.
_LAST_OF_TENANT: Final = "SELECT started_at FROM jobs_attempt WHERE started_at > %s ORDER BY started_at DESC"
_LAST_OF_TOOL: Final = """
SELECT a.started_at FROM jobs_attempt a JOIN jobs_call c ON c.id = a.call_id
WHERE a.started_at > %s AND c.tool_slug = %s ORDER BY a.started_at DESC
"""
_AT: Final = " OFFSET %s LIMIT 1"
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
_REPEATS: Final = """
SELECT count(*) FROM jobs_call
WHERE job_id = %s AND (run_number, activity) < (%s, %s) AND tool_slug = %s AND function_name = %s AND args_digest = %s
"""


def hold_rates(rates: Collection[Rate], tool: str) -> None:
    """Let no other attempt that these rates count begin until the open write commits.

    Taken by a claim that holds its job and its call, before any counter (MACHINES 2), in one order by all: so two
    claims never begin both where there was room for one.
    """
    tenant = db.writing_tenant()
    for scope in sorted({_scope(rate, tool) for rate in rates}):
        prepared.fetch_one(_LOCK, [f"oz0 rate {tenant} {scope}"])


def full(rates: Collection[Rate], tool: str, now: datetime) -> Mapping[Rate, datetime]:
    """Those of these rates that are full, each with the moment when it has room again."""
    found = {rate: _last(rate, tool, now - timedelta(seconds=rate.seconds)) for rate in rates}
    return {rate: last + timedelta(seconds=rate.seconds) for rate, last in found.items() if last is not None}


def repeats(call: Call) -> int:
    """How often the job asked for this same call by then: the same function and arguments, this one counted."""
    same = [call.job_id, call.run_number, call.activity, call.tool_slug, call.function_name, call.args_digest]
    found = prepared.fetch_one(_REPEATS, same)
    return 1 + (found[0] if found else 0)  # its own row may not be written yet


def _scope(rate: Rate, tool: str) -> str:
    return "" if rate.of is Of.TENANT else tool


def _last(rate: Rate, tool: str, since: datetime) -> datetime | None:
    if rate.of is Of.TENANT:
        found = prepared.fetch_one(_LAST_OF_TENANT + _AT, [since, rate.calls - 1])
    else:
        found = prepared.fetch_one(_LAST_OF_TOOL + _AT, [since, tool, rate.calls - 1])
    return found[0] if found else None
