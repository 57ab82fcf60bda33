"""The open questions for pagers. There is no way to answer one here, whoever asks (RULES A5)."""

from http import HTTPStatus
from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import Field

from approvals.queries.open_holds import open_holds as read
from base import ids
from base.api_words import answers, cursor
from jobs.rules.states import HoldKind
from tenants.views.programs import Needs, Refused, asker_of

router = Router(tags=["questions"])


class HoldsIn(Schema):
    """Which questions."""

    after: str = cursor(ids.HOLD)
    kind: Annotated[str, Field(json_schema_extra={"enum": ["", *HoldKind]})] = ""


class HoldLine(Schema):
    """One open question, without arguments."""

    id: str
    kind: HoldKind
    function: str
    function_kind: str
    agent: str
    job: str
    call: str
    why: str
    opened_at: str
    waiting_seconds: float
    expires_at: str | None
    url: str


class HoldsOut(Schema):
    """The open questions, oldest first; `waiting` counts them to 1,001."""

    now: str
    waiting: int
    oldest_seconds: float | None
    holds: list[HoldLine]
    next: str | None


@router.get(
    "/holds",
    response=answers(HoldsOut),
    auth=Needs(asked=HoldsIn),
    url_name="api-holds",
    summary="List what waits for a person",
)
def open_holds(request: HttpRequest, wanted: Query[HoldsIn]) -> Any:
    """What waits for a person, oldest first, a hundred at a time. Nothing here answers a question."""
    if wanted.kind and wanted.kind not in set(HoldKind):
        raise Refused(HTTPStatus.BAD_REQUEST, f"kind is one of {', '.join(HoldKind)}, or is left out.")
    try:
        last = ids.parse(ids.HOLD, wanted.after) if wanted.after else None
    except ids.BadId as error:
        raise Refused(HTTPStatus.BAD_REQUEST, "after is what an answer before said under next.") from error
    return read(asker_of(request).seat.tenant, after=last, kind=wanted.kind)
