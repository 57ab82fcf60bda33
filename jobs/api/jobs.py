"""Starting, listing, reading and stopping jobs."""

from hashlib import sha256
from http import HTTPStatus
from typing import Annotated, Any, Final
from uuid import UUID

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from ninja import Header, Query, Router
from ninja.responses import Status

from base import ids
from base.api_words import answers
from jobs.api.shapes import JobLine, JobOut, JobsIn, JobsOut, StartIn
from jobs.models import Job, Starter
from jobs.operations.cancel import AlreadyOver, cancel_job
from jobs.operations.intake import CannotStart, StartedOtherwise, start_job
from jobs.queries.lists import OVER, JobFilter, JobRow, jobs_page
from jobs.queries.trace import JobHead, head
from jobs.rules.permits import why_not_start, why_not_stop
from jobs.rules.states import JOB_FINAL, JobState
from tenants.models import Role
from tenants.rules.bearers import Scope
from tenants.views.programs import Asker, Needs, Refused, asker_of

router = Router(tags=["jobs"])
OTHER_KEY: Final = "This Idempotency-Key has started another job already, with another agent, title or input."


@router.post(
    "/jobs",
    response=answers(JobOut, 409, 413, 415, status=201),
    auth=Needs(Scope.START, free=True),
    url_name="api-jobs",
    summary="Start a job",
)
def start(
    request: HttpRequest,
    response: HttpResponse,
    job: StartIn,
    key: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            description="The same key of the same token starts one job, however often it comes.",
            min_length=1,
            max_length=255,
            pattern="^[!-~]+$",
        ),
    ] = None,
) -> Any:
    """Start a job of an agent, as the token's person. It passes the same gate as the form."""
    asker = asker_of(request)
    if asker.agent and asker.agent != job.agent:
        raise Refused(HTTPStatus.FORBIDDEN, f"This token is bound to the agent {asker.agent}, and starts only that.")
    if why_not := why_not_start(operator=asker.seat.may(Role.OPERATOR)):
        raise Refused(HTTPStatus.FORBIDDEN, why_not)
    try:
        job_id = start_job(
            tenant=asker.seat.tenant,
            agent=job.agent,
            given=job.input,
            starter=Starter.PERSON if asker.as_person else Starter.API_KEY,
            person=asker.seat.person_id,
            title=job.title.strip(),
            start_key=sha256(f"{asker.token_id} {key}".encode()).hexdigest() if key else "",
            token=asker.token_id,
        )
    except StartedOtherwise as error:
        raise Refused(HTTPStatus.CONFLICT, OTHER_KEY) from error
    except CannotStart as error:
        raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, f"It was not started: {error}", errors=error.troubles) from error
    told = _told(_head(asker, job_id))
    response["Location"] = f"/api/v1/jobs/{told.id}"
    return Status(HTTPStatus.CREATED, told)


@router.get(
    "/jobs", response=answers(JobsOut), auth=Needs(asked=JobsIn, free=True), url_name="api-jobs", summary="List jobs"
)
def listed(request: HttpRequest, wanted: Query[JobsIn]) -> Any:
    """Jobs, the newest first. A token that is bound to an agent reads of that one's alone."""
    asker = asker_of(request)
    if asker.agent and wanted.agent not in ("", asker.agent):
        raise Refused(HTTPStatus.FORBIDDEN, f"This token is bound to the agent {asker.agent}, and reads only of that.")
    view = "all" if wanted.live is None else "live" if wanted.live else OVER
    page = jobs_page(
        asker.seat.tenant,
        JobFilter(
            view=view,
            agent=asker.agent or wanted.agent,
            words=wanted.q,
            function=wanted.function,
            state=wanted.state or "",
            starter=wanted.starter or "",
            before=_after(wanted.after),
            most=wanted.limit,
        ),
    )
    return JobsOut(now=page.now, jobs=[_line(row) for row in page.rows], next=page.next_before)


@router.get(
    "/jobs/{plain:shown}", response=answers(JobOut), auth=Needs(free=True), url_name="api-job", summary="Read a job"
)
def one(request: HttpRequest, shown: str) -> Any:
    """One job."""
    return _told(_head(asker_of(request), job_id_of(shown)))


@router.post(
    "/jobs/{plain:shown}/cancel",
    response=answers(JobOut, 409, 413, 415, status=202),
    auth=Needs(Scope.START, free=True),
    url_name="api-cancel-job",
    summary="Stop a job",
)
def cancel(request: HttpRequest, shown: str) -> Any:
    """Stop a job that this token started. It is `cancelling` until every call has really stopped."""
    asker, job_id = asker_of(request), job_id_of(shown)
    found = _head(asker, job_id)
    started_it = found.started.token_id is not None and found.started.token_id == asker.token_id
    if started_it and found.state is JobState.CANCELLING:
        return Status(HTTPStatus.ACCEPTED, _told(found))
    if why_not := why_not_stop(found.state, operator=False, started_it=started_it):
        if found.over:
            raise Refused(HTTPStatus.CONFLICT, why_not)
        raise Refused(HTTPStatus.FORBIDDEN, "A token stops only jobs that it has started itself.")
    try:
        cancel_job(tenant=asker.seat.tenant, job_id=job_id, by=asker.actor)
    except AlreadyOver as error:
        raise Refused(HTTPStatus.CONFLICT, f"It was not stopped: {error}.") from error
    except Job.DoesNotExist as error:
        raise Http404 from error
    return Status(HTTPStatus.ACCEPTED, _told(_head(asker, job_id)))


def job_id_of(shown: str) -> UUID:
    """The job that an address names. What names none is not there."""
    try:
        return ids.parse(ids.JOB, shown)
    except ids.BadId as error:
        raise Http404 from error


def url_of(page: str, shown: str) -> str:
    """Where a person sees it."""
    return f"{settings.OZ0_URL.rstrip('/')}/{page}/{shown}/"


def _after(cursor: str) -> UUID | None:
    try:
        return ids.parse(ids.JOB, cursor) if cursor else None
    except ids.BadId as error:
        raise Refused(HTTPStatus.BAD_REQUEST, "after is what an answer before said under next.") from error


def _head(asker: Asker, job_id: UUID) -> JobHead:
    found = head(asker.seat.tenant, job_id)
    if found is None or (asker.agent and found.agent != asker.agent):
        raise Http404
    return found


def _told(job: JobHead) -> JobOut:
    return JobOut(
        id=job.shown_id,
        title=job.title,
        agent=job.agent,
        plugin_version=job.plugin_version,
        state=job.state,
        over=job.over,
        why=job.why,
        failure_kind=job.failure_kind,
        starter=Starter(job.started.starter),
        started_by=job.started.person,
        through=job.started.name,
        input=job.input,
        output=job.output,
        calls=job.calls,
        turns=job.turns,
        tokens=job.tokens,
        may_have_done=job.may_have_done,
        stop_asked_by=job.stop_asked_by,
        stop_asked_at=job.stop_asked_at,
        created_at=job.created_at,
        started_at=job.started_at,
        ended_at=job.ended_at,
        url=url_of("jobs", job.shown_id),
    )


def _line(row: JobRow) -> JobLine:
    return JobLine(
        id=row.shown_id,
        title=row.title,
        agent=row.agent,
        state=row.state,
        over=row.state in JOB_FINAL,
        why=row.why,
        failure_kind=row.failure_kind,
        starter=Starter(row.started.starter),
        started_by=row.started.person,
        through=row.started.name,
        calls=row.calls,
        asks=row.asks,
        created_at=row.created_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        url=url_of("jobs", row.shown_id),
    )
