"""What outside clients wait for: where their calls stand, and what they came to (RULES G5)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Q

from base import db
from jobs.models import Attempt, Call
from jobs.queries import history
from jobs.rules.states import CALL_FINAL, CallState


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a call stands. `progress` and `total` are its newest attempt's (RULES P1)."""

    state: CallState
    progress: float | None = None
    total: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes of it."""
        return self.state in CALL_FINAL


@dataclass(frozen=True, slots=True)
class Answered:
    """What a call came to. `text` is what a model reads of it; `content` and `structured` are as its tool wrote them.

    They are empty where the tool's own answer is not the whole of it.
    """

    state: CallState
    text: str
    is_error: bool
    content: tuple[Mapping[str, Any], ...] = ()
    structured: Any = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes of it."""
        return self.state in CALL_FINAL


def standings(calls: Collection[UUID]) -> Mapping[UUID, Standing]:
    """Where these calls, of whatever tenants, stand now."""
    with db.sweep():
        states = dict(Call.objects.filter(pk__in=calls).values_list("pk", "state"))
        newest = Attempt.objects.filter(call_id__in=calls).order_by("call_id", "-number").distinct("call_id")
        got = {call: (progress, total) for call, progress, total in newest.values_list("call_id", "progress", "total")}
    return {call: Standing(CallState(state), *got.get(call, (None, None))) for call, state in states.items()}


def answered(tenant: UUID, token_id: UUID, call_id: UUID) -> Answered | None:
    """What a call of this token stands at or came to; None when the token has made no such call."""
    with db.read(tenant):
        found = Call.objects.filter(Q(job__token_id=token_id) | Q(session__token_id=token_id), pk=call_id)
        call = found.select_related("result_body", "arguments_body").first()
        if call is None:
            return None
        text = history.text_for_model(call)
        body = call.result_body.data if call.result_body else None
        state = CallState(call.state)
        own = body is not None and text == body["text"]
        return Answered(
            state=state,
            text=text,
            is_error=state not in (CallState.SUCCEEDED, CallState.HAPPENED),
            content=tuple(body["content"]) if own and body else (),
            structured=body["structured"] if own and body else None,
        )
