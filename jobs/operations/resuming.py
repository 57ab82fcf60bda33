"""What a further attempt is told of those before it (RULES P2–P5)."""

import hashlib

from catalog.queries.trust import traits_now
from catalog.rules.servers import ServerSpec
from jobs.models import Attempt, Call
from jobs.rules.orders import ResumePoint
from jobs.rules.resume import Left, StartOver, how_to_go_on


def scope_of(server: ServerSpec, function: str) -> str:
    """The one connection and function that a token may be sent to; empty for a plugin's own server (RULES P5)."""
    if server.remote is None:
        return ""
    named = f"{server.tenant}\n{server.remote.connection}\n{server.remote.url}\n{function}"
    return hashlib.sha256(named.encode()).hexdigest()


def prepare(attempt: Attempt, call: Call, server: ServerSpec) -> ResumePoint | None:
    """Note on a new attempt, not yet saved, where it goes on or why it starts over; where it goes on."""
    attempt.resume_scope = scope_of(server, call.function_name)
    if attempt.number == 1 or call.function is None:
        return None
    before = Attempt.objects.filter(call_id=call.pk).order_by("number")
    how = how_to_go_on(
        [_left(one) for one in before],
        remote=server.remote is not None,
        takes_part=call.retry_safe and traits_now(call.function).resumes,
        scope=attempt.resume_scope,
    )
    if isinstance(how, StartOver):
        attempt.started_over_because = how
        return None
    attempt.resumed_from, attempt.resumed_of = how.progress, how.total
    return how


def _left(one: Attempt) -> Left:
    point = (
        ResumePoint(one.resume_token, one.resume_progress, one.resume_total)
        if one.resume_token and one.resume_progress is not None
        else None
    )
    return Left(point, one.resume_scope, reported=one.progress is not None, odd_token=one.odd_token)
