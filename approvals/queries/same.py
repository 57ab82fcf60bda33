"""Calls that were made already with exactly the same function and arguments as one that waits: facts (RULES A3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import OuterRef, Q
from django.db.models.expressions import Subquery

from base import ids
from jobs.models import Call
from jobs.rules.states import CallState, Effect

_ACTED = (CallState.SUCCEEDED, CallState.HAPPENED)
_ON_ITS_WAY = (CallState.QUEUED, CallState.RUNNING, CallState.RETRYING, CallState.CANCELLING, CallState.UNKNOWN)


@dataclass(frozen=True, slots=True)
class SameCall:
    """The newest call with the same arguments that acted, may have, or is on its way. `at` is when it ended or, while
    it has not, when it was asked for."""

    shown_id: str
    state: CallState
    may_have_acted: bool
    at: datetime


def same_calls(calls: Sequence[Call]) -> dict[UUID, SameCall]:
    """For each of these calls the same one that was made; none for a call that only reads, which may be repeated.

    At most two statements. Demands an open read.
    """
    asked = [call for call in calls if not call.read_only and call.args_digest]
    if not asked:
        return {}
    same = Call.objects.filter(
        Q(state__in=[*_ACTED, *_ON_ITS_WAY]) | Q(effect=Effect.MAYBE),
        args_digest=OuterRef("args_digest"),
        tool_slug=OuterRef("tool_slug"),
        function_name=OuterRef("function_name"),
        read_only=False,
    )
    newest = same.exclude(pk=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    pairs = dict(Call.objects.filter(pk__in=[call.pk for call in asked]).values_list("pk", Subquery(newest)))
    columns = ("pk", "state", "effect", "created_at", "ended_at")
    found = Call.objects.filter(pk__in=[pk for pk in pairs.values() if pk]).values_list(*columns)
    by_id = {pk: _same(pk, *rest) for pk, *rest in found}
    return {pk: by_id[other] for pk, other in pairs.items() if other}


def _same(pk: UUID, state: str, effect: str, created_at: datetime, ended_at: datetime | None) -> SameCall:
    maybe = effect == Effect.MAYBE and state not in _ACTED
    return SameCall(ids.show(ids.CALL, pk), CallState(state), maybe, ended_at or created_at)
