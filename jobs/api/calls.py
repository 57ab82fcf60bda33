"""One call with everything about it, as its person may see it (RULES A14)."""

from typing import Any

from django.http import Http404, HttpRequest
from ninja import Query, Router

from base import ids
from base.api_words import answers
from jobs.api.jobs import url_of
from jobs.api.shapes import AttemptOut, CallIn, CallOut, QuestionOut, Value
from jobs.queries import call_page
from jobs.queries.call_page import AttemptRow, CallPage, HoldRow
from jobs.rules.states import Effect
from tenants.views.programs import Needs, asker_of

router = Router(tags=["calls"])


@router.get(
    "/calls/{plain:shown}",
    response=answers(CallOut),
    auth=Needs(asked=CallIn, free=True),
    url_name="api-call",
    summary="Read a call",
)
def one(request: HttpRequest, shown: str, wanted: Query[CallIn]) -> Any:
    """One call. `?whole=arguments` or `?whole=result` loads a large value."""
    asker = asker_of(request)
    try:
        call_id = ids.parse(ids.CALL, shown)
    except ids.BadId as error:
        raise Http404 from error
    found = call_page.call_page(asker.seat.tenant, call_id, role=asker.seat.role, whole=wanted.whole)
    if found is None or (asker.agent and found.agent != asker.agent):
        raise Http404
    return _told(found)


def _told(call: CallPage) -> CallOut:
    return CallOut(
        id=call.shown_id,
        job=call.shown_job,
        function=call.name,
        kind=call.kind,
        state=call.state,
        over=call.over,
        effect=Effect(call.effect),
        why=call.why,
        detail=call.detail,
        says=f"{call.says.text} {call.says.after}".strip(),
        rule=call.rule,
        key=call.key,
        retry_safe=call.retry_safe,
        arguments=_value(call.arguments),
        result=_value(call.result),
        result_text=call.result_text,
        attempts=[_attempt(one) for one in call.attempts],
        questions=[_question(one) for one in call.holds],
        open_question=call.open_hold,
        again_of=call.again_of or None,
        created_at=call.created_at,
        ended_at=call.ended_at,
        url=url_of("calls", call.shown_id),
    )


def _value(value: call_page.Value) -> Value:
    return Value(value=value.value, size=value.size, left_out=not value.shown)


def _attempt(one: AttemptRow) -> AttemptOut:
    return AttemptOut(
        id=one.shown_id,
        number=one.number,
        state=one.state,
        why=one.why,
        wire=one.wire,
        evidence=one.evidence,
        node=one.node,
        started_at=one.started_at,
        limit_at=one.limit_at,
        ended_at=one.ended_at,
        progress=one.progress,
        began=one.began,
        retry_after=one.retry_after,
    )


def _question(one: HoldRow) -> QuestionOut:
    return QuestionOut(
        id=one.shown_id,
        kind=one.kind,
        state=one.state,
        why=one.why,
        says=one.says,
        note=one.note,
        opened_at=one.opened_at,
        closed_at=one.closed_at,
    )
