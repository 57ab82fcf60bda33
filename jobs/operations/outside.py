"""Calls of clients outside: agents of somebody's own that reach their tools through the gateway (RULES G4, G6, G7).

Their calls pass the same gate, policy, holds and retries as those of the studio's own agents. They belong to one job
for each legacy MCP session, else to their token's open job. It has no turns, and ends when no call comes any more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db import IntegrityError
from django.db.models import Q, QuerySet

from base import db, ids
from base.figures import plural
from catalog.models import Agent, Function
from catalog.queries import functions, switches
from catalog.rules.agents import AgentSpec
from catalog.rules.answers import storable
from catalog.rules.estimates import Definition
from catalog.rules.kept_agents import Unreadable, from_json
from catalog.rules.platform import CONTINUE, RESULT
from catalog.rules.switching import Mode
from jobs.models import Call, Driver, Hold, Job, JobCounter, Session, Starter
from jobs.operations import cancel, events, intake, masking, moves
from jobs.operations.platform import Platform
from jobs.queries import locks, open_work
from jobs.queries import outside as queries
from jobs.queries.tables import JOBS
from jobs.rules import texts
from jobs.rules.limits import CLIENT_IDLE
from jobs.rules.states import CALL_FINAL, JOB_FINAL, CallState, Effect, JobState, SessionState
from jobs.rules.turns import Wanted
from jobs.rules.why import Why

MOST_SESSION: Final = 64


class NotTaken(ValueError):
    """The call was not taken in, so nothing of it was made; the message says why, for the client's model."""


@dataclass(frozen=True, slots=True)
class Client:
    """Who calls: a token bound to one agent. `session` is its legacy MCP session, or empty.

    `person` is whose token it is; None for that of a harness session, whose calls are of its job (RULES G4).
    """

    tenant: UUID
    token_id: UUID
    name: str
    agent: str
    person: int | None
    session: str = ""


@dataclass(frozen=True, slots=True)
class Offered:
    """One function that a client may call. `annotations` are its server's own."""

    definition: Definition
    annotations: Mapping[str, Any]


def offered(client: Client) -> list[Offered]:
    """What the client's agent is granted now, as its model is sent it, and what clients have. Raises `NotTaken`."""
    with db.read(client.tenant):
        agent, spec = _agent(client) if client.person is not None else _agent_of_session(client)
        granted = functions.granted(agent.pk)
        hints = dict(Function.objects.filter(pk__in=granted.values()).values_list("model_name", "annotations"))
        sent = Platform(Job(agent=agent), granted).sent(spec)
        found = [Offered(one, hints.get(one.name, OWN)) for one in (*sent, RESULT)]
        return [*found, Offered(CONTINUE, CHANGES)] if client.person is None else found


OWN: Final = {"readOnlyHint": True}  # the platform's own functions; what `oz.call` calls is judged as itself
CHANGES: Final = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True}


def submit(*, client: Client, want: Wanted, job_id: UUID | None = None) -> UUID:
    """Take in one call, into the job that is named or else the client's open one; returns its id.

    `want.model_call_id` is the client's own id of its request. Raises `NotTaken`.
    """
    want = replace(want, model_call_id=_named_request(client, want.model_call_id))
    if client.person is None:
        return _submit_in_session(client, want)
    try:
        return _submit(client, want, job_id)
    except IntegrityError:  # another request has opened the client's job just now
        return _submit(client, want, job_id)


def _submit(client: Client, want: Wanted, job_id: UUID | None) -> UUID:
    with db.write(client.tenant, named="submit") as now:
        locks.gate_shared()
        agent, spec = _agent(client)
        job = _named(client, job_id) if job_id is not None else _open_job(client)
        if job is None:
            job = _begin(client, agent, spec)
        if job.calls_made >= spec.limits.calls:
            limit = f"Its job has made the {spec.limits.calls:,} calls that its agent may make (limits.calls)."
            raise NotTaken(f"This call was not made. {limit}")
        job.idle_at, job.agent = now + CLIENT_IDLE, agent  # the client was told of the newest version's functions
        JOBS.update(job.pk, {"idle_at": job.idle_at, "agent": agent.pk})
        (call,) = intake.submit(job=job, turn=None, wanted=[want], now=now)
        return call.pk


def _submit_in_session(client: Client, want: Wanted) -> UUID:
    """Take in a call of a harness's program, into the job that its session is of (RULES G4, K3)."""
    with db.write(client.tenant, named="submit") as now:
        locks.gate_shared()
        job, session = session_of(client)
        _, spec = agent_of(job)
        if job.calls_made < spec.limits.calls:
            (call,) = intake.submit(job=job, turn=None, wanted=[want], now=now, session=session)
            return call.pk
        limit = f"its agent may make {plural(spec.limits.calls, 'call')} (limits.calls)"
        why, failed = Why.JOB_LIMIT, JobState.FAILED
        cancel.end(job, ends_as=failed, reason=why, failure_kind="limit_calls", detail=limit, now=now)
    raise NotTaken(f"This call was not made: {limit}, so its job is being stopped.")


def session_of(client: Client) -> tuple[Job, Session]:
    """The running session whose token this is, and its job, both locked. Raises `NotTaken`."""
    found = Session.objects.filter(token_id=client.token_id).values_list("pk", "job_id").first()
    job = locks.job(found[1]) if found else None
    session = locks.session(found[0]) if found else None
    if job is None or session is None or (session.state, session.token_id) != (SessionState.RUNNING, client.token_id):
        raise NotTaken("This call was not made: the session of this token is over.")
    return _living(job), session


def _agent_of_session(client: Client) -> tuple[Agent, AgentSpec]:
    """A session keeps the version of its agent that its job started with."""
    found = Session.objects.filter(token_id=client.token_id).select_related("job__agent").first()
    if found is None:
        raise NotTaken("The session of this token is over.")
    return agent_of(found.job)


def agent_of(job: Job) -> tuple[Agent, AgentSpec]:
    """The agent that a job has, which it keeps from its start. Raises `NotTaken`."""
    try:
        return job.agent, from_json(job.agent.definition)
    except Unreadable as error:
        raise NotTaken(f"This call was not made: {error}") from error


def _agent(client: Client) -> tuple[Agent, AgentSpec]:
    agent = functions.current_agent(client.agent)
    if agent is None:
        raise NotTaken(f"This call was not made: the agent {client.agent!r} of this token is in the catalog no more.")
    switch = switches.over_agent(client.agent)
    if switch is not None and switch.mode == Mode.KILL:
        off = texts.for_model(
            state=CallState.REFUSED, reason=Why.KILL_SWITCH, effect=Effect.NONE, answer="", detail="", note=""
        )
        raise NotTaken(off)
    try:
        return agent, from_json(agent.definition)
    except Unreadable as error:
        raise NotTaken(f"This call was not made: {error}") from error


def _named(client: Client, job_id: UUID) -> Job:
    mine = Job.objects.filter(pk=job_id, token_id=client.token_id).exclude(state__in=JOB_FINAL).exists()
    job = locks.job(job_id) if mine else None
    if job is None or job.state in JOB_FINAL:
        raise NotTaken(f"This call was not made: this token has no open job {ids.show(ids.JOB, job_id)}.")
    return _living(job)


def _open_job(client: Client) -> Job | None:
    job_id = queries.open_job(client.token_id, client.session)
    job = locks.job(job_id) if job_id is not None else None
    return None if job is None or job.state in JOB_FINAL else _living(job)


def _living(job: Job) -> Job:
    if job.state == JobState.CANCELLING:
        raise NotTaken(f"This call was not made: its job {ids.show(ids.JOB, job.pk)} is being stopped.")
    return job


def _begin(client: Client, agent: Agent, spec: AgentSpec) -> Job:
    now = db.must_write()
    job = Job(
        tenant_id=client.tenant,
        agent=agent,
        agent_name=agent.name,
        title=masking.text(storable(f"{agent.name}, called by {client.name}")[: intake.TITLE]),
        starter=Starter.API_KEY,
        started_by_id=client.person,
        state=JobState.QUEUED,
        on_unknown=spec.on_unknown or "fail",
        driver=Driver.OUTSIDE,
        token_id=client.token_id,
        client_session=client.session[:MOST_SESSION],
        idle_at=now + CLIENT_IDLE,
        created_at=now,
        deadline_at=now + timedelta(minutes=spec.limits.minutes),
    )
    job.save(force_insert=True)
    JobCounter.objects.create(job=job, tenant_id=job.tenant_id)
    events.record(
        job.pk,
        "job.started",
        to=JobState.QUEUED,
        agent=agent.name,
        starter=Starter.API_KEY,
        person=client.person,
        token=client.name,
    )
    moves.job(job, JobState.RUNNING, reason="", now=now, started_at=now)
    return job


def call_of_request(*, client: Client, request: str, within: float) -> UUID | None:
    """The client's open call that it asked for with this request id; None when there is none, or more than one.

    Clients that share a token without a session each number their requests from 1, so an id may not tell them apart;
    of those only a call asked for `within` these seconds is meant.
    """
    with db.read(client.tenant) as now:
        found = _calls_of(client).filter(model_call_id=_named_request(client, request)).exclude(state__in=CALL_FINAL)
        if not client.session:
            found = found.filter(created_at__gt=now - timedelta(seconds=within))
        calls = found.values_list("pk", flat=True)[:2]
        return calls[0] if len(calls) == 1 else None


def cancel_call(*, client: Client, call_id: UUID, closed: bool = False) -> CallState | None:
    """Cancel one call of the client's token as it asks; with `closed`, since it closed the stream it waited on (G6).

    A closed stream spares what does not run: the client may come back for it. Whether a call happened of which nobody
    knows stays a person's question. Returns its state after; None when the token has made no such call.
    """
    with db.write(client.tenant) as now:
        if not _calls_of(client).filter(pk=call_id).exists():
            return None
        job_id = open_work.job_of_call(call_id)
        job = locks.job(job_id) if job_id is not None else None
        call = locks.call(call_id)
        if job is None or call is None:
            return None
        if call.state == CallState.RUNNING:
            cancel.stop_running(Call.objects.filter(pk=call_id), why=Why.CLIENT_CANCELLED, now=now)
            events.judge_later(job.pk)
            return CallState.CANCELLING
        if not closed and call.state in (CallState.HELD, CallState.QUEUED, CallState.RETRYING):
            moves.call(call, CallState.CANCELED, reason=Why.CLIENT_CANCELLED, now=now)
            moves.withdraw(Hold.objects.filter(call_id=call_id), now=now)
            events.judge_later(job.pk)
        return CallState(call.state)


def _calls_of(client: Client) -> QuerySet[Call]:
    """What this token has called, also as a harness session's."""
    return Call.objects.filter(Q(job__token_id=client.token_id) | Q(session__token_id=client.token_id))


def _named_request(client: Client, request: str) -> str:
    """A request's id as it is kept with its call: of one MCP session, when its client has one."""
    return f"{client.session}/{request}"[:128] if client.session else request


def end_idle(tenant: UUID, job_id: UUID) -> bool:
    """End the job of a client that has made no call for half an hour; False when it is over, or one came."""
    with db.write(tenant) as now:
        job = locks.job(job_id)
        if job is None or job.state != JobState.RUNNING or job.idle_at is None or job.idle_at > now:
            return False
        live, _ = open_work.of(job_id)
        if live:
            return False
        moves.job(job, JobState.COMPLETED, reason=Why.CLIENT_IDLE, now=now)
        return True
