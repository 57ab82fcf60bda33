"""A job's journal for programs: a page of it, or the whole of it as it grows (server-sent events)."""

import json
from http import HTTPStatus
from typing import Annotated, Any, Final
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from ninja import Header, Query, Router

from base import ids
from base.api_words import MOST_SEQ, answers
from base.streaming import Following
from jobs.api import following
from jobs.api.jobs import job_id_of
from jobs.api.shapes import EventOut, EventsIn, EventsOut
from jobs.queries.journal import BY, Entry, JournalPage, journal_page
from tenants.views.programs import JSON, SOON, Asker, Needs, Refused, asker_of

router = Router(tags=["jobs"])
STREAM: Final = "text/event-stream"
IDS: Final = {
    "attempt": ids.ATTEMPT,
    "hold": ids.HOLD,
    "node": ids.NODE,
    "again_of": ids.CALL,
    "start_token": ids.TOKEN,
    "routine": ids.ROUTINE,
    "hook": ids.HOOK,
}
FULL: Final = "As many follow a job here as may at a time. Ask for pages, or again later."
YOURS: Final = "You have as many streams open here as one may: end one that is not read any more, or ask for pages."
STREAMED: Final = {
    "responses": {
        200: {
            "content": {
                STREAM: {
                    "schema": {"type": "string"},
                    "example": 'id: 7\nevent: call.moved\ndata: {"seq":7,"kind":"call.moved"}\n\n',
                }
            }
        },
        204: {"description": "The job is over and every event was read: nothing is left to follow."},
    }
}


@router.get(
    "/jobs/{plain:shown}/events",
    response={**answers(EventsOut), 204: None},
    auth=Needs(asked=EventsIn, free=True, gives=(JSON, STREAM)),
    url_name="api-job-events",
    summary="Read or follow a job's events",
    openapi_extra=STREAMED,
)
def events(
    request: HttpRequest,
    shown: str,
    wanted: Query[EventsIn],
    last: Annotated[
        str | None, Header(alias="Last-Event-ID", description="In place of `after`, as a browser says it.")
    ] = None,
) -> Any:
    """The events after a number: a page as JSON, or with `Accept: text/event-stream` each as it comes.

    A stream ends when the job is over, and answers 204 to who has read all of that.
    """
    asker, job_id = asker_of(request), job_id_of(shown)
    streamed = request.get_preferred_type([JSON, STREAM]) == STREAM
    after = _number(last) if streamed and last is not None else wanted.after
    page = journal_page(asker.seat.tenant, job_id, after, agent=asker.agent)
    if page is None:
        raise Http404
    if not streamed:
        told = _told(page)
        return EventsOut(events=told, next=told[-1].seq if told else after, more=page.more, over=page.over)
    if page.over and not page.entries:
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    return Following(_follow(asker, job_id, after), content_type=STREAM)


def _follow(asker: Asker, job_id: UUID, after: int) -> following.Followed:
    def frames(seq: int) -> following.Frames | None:
        page = journal_page(asker.seat.tenant, job_id, seq, agent=asker.agent)
        if page is None:
            return None
        told = _told(page)
        return following.Frames(tuple(map(_frame, told)), told[-1].seq if told else seq, more=page.more, over=page.over)

    try:
        return following.begin(job_id, after, frames, asker.counts, whose=asker.token_id or asker.seat.person_id)
    except following.Full as error:
        if error.of_one:
            raise Refused(HTTPStatus.TOO_MANY_REQUESTS, YOURS, {"Retry-After": SOON}) from error
        raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, FULL, {"Retry-After": SOON}) from error


def _frame(event: EventOut) -> bytes:
    said = json.dumps(event.model_dump(mode="json"), separators=(",", ":"))
    return f"id: {event.seq}\nevent: {event.kind}\ndata: {said}\n\n".encode()


def _told(page: JournalPage) -> list[EventOut]:
    return [
        EventOut(
            seq=entry.seq,
            kind=entry.kind,
            at=entry.at,
            call=ids.show(ids.CALL, entry.call) if entry.call else None,
            data=_data(entry, page),
        )
        for entry in page.entries
    ]


def _data(entry: Entry, page: JournalPage) -> dict[str, Any]:
    """What an entry holds, with people by name and rows by the ids that programs know."""
    found = dict(entry.data)
    for word in BY:
        if isinstance(number := found.get(word), int):
            found[word] = page.people.get(number, "")
    for word, prefix in IDS.items():
        if isinstance(text := found.get(word), str):
            found[word] = ids.show(prefix, UUID(text))
    return found


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:17]) <= MOST_SEQ and len(text) <= 16):
        raise Refused(HTTPStatus.BAD_REQUEST, "Last-Event-ID is the number of an event, as its line `id:` said.")
    return int(text)
