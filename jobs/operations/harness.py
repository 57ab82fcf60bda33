"""Harness sessions: a program that is the agent, claimed by a node, ended, or lost with it (RULES G4, K4, K6)."""

import json
import sys
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet

from base import db, ids
from base.figures import plural
from catalog.operations import connections
from catalog.rules.agents import AgentSpec
from catalog.rules.answers import storable
from catalog.rules.manifest import command
from catalog.rules.sandbox import Sandbox
from catalog.rules.servers import Remote
from jobs.models import Attempt, Call, Hold, Job, Session
from jobs.operations import cancel, claiming, events, holds, masking, moves, sessions
from jobs.queries import locks, runs
from jobs.rules.limits import backoff
from jobs.rules.sessions import SessionEnd, SessionOrder
from jobs.rules.states import (
    ASKING,
    MOVING,
    SESSION_FINAL,
    AttemptState,
    JobState,
    NodeState,
    SessionState,
)
from jobs.rules.why import Why
from tenants.operations import tokens

GONE: Final = (NodeState.LOST, NodeState.GONE)
STRAY: Final = timedelta(seconds=30)  # after which a session that its own living node does not know is lost
ROOM: Final = Sandbox()  # without a network: it reaches its order's servers, and nothing else


def start(*, tenant: UUID, session_id: UUID, node_id: UUID, token: str) -> SessionOrder | None:
    """Claim a session that may be started. None when it may not be, another is at it, or its job ends instead.

    `token` is a new one, drawn at the edge: the program's own, which ends with this incarnation of the session.
    """
    with db.write(tenant) as now:
        locks.gate_shared()
        job = _job_of(session_id, busy=True)
        row = locks.session(session_id)
        if job is None or row is None or row.state != SessionState.STARTING or row.due_at is None or row.due_at > now:
            return None
        agent = claiming.agent_for(job, node_id)
        if agent is None:
            return None
        model = connections.provider_of(agent.connection, job.agent_id) if agent.connection else None
        if model is not None and model.trouble:
            cancel.fail_for_agent(job, model.trouble, now=now)
            return None
        token_id = tokens.for_session(token=token, name=f"session of {ids.show(ids.JOB, job.pk)}", agent=job.agent_name)
        moves.session(
            row, SessionState.RUNNING, reason=row.reason, now=now, node_id=node_id, token_id=token_id, started_at=now
        )
        if job.state == JobState.QUEUED:
            moves.job(job, JobState.RUNNING, reason="", now=now, started_at=now)
        events.judge_later(job.pk)  # it may have waited for the person who said: start again
        return _order(job, row, agent, token, model)


def _order(job: Job, row: Session, agent: AgentSpec, token: str, model: Remote | None) -> SessionOrder:
    shown, address = ids.show(ids.JOB, job.pk), f"{settings.OZ0_URL.rstrip('/')}/mcp/"
    key = next(iter(model.headers.values()), "").removeprefix("Bearer ") if model else ""
    given = {"job": shown, "agent": agent.name, "instructions": agent.instructions, "input": job.input}
    begun = runs.begun_of_program(job, row.run_number)
    if begun is not None:
        given |= {"run": begun.run, "note": begun.note, "earlier": begun.calls, "earlier_left_out": begun.left_out}
    return SessionOrder(
        tenant=job.tenant_id,
        job_id=job.pk,
        session_id=row.pk,
        incarnation=row.incarnation,
        argv=command(agent.harness, python=sys.executable, home=str(settings.OZ0_HOME)),
        cwd=job.agent.plugin_version.folder,
        sandbox=ROOM,
        servers=(address, model.url) if model else (address,),
        allowed=model.allowed if model else (),
        env={"OZ0_MCP_URL": address, "OZ0_TOKEN": token, "OZ0_JOB": shown}
        | ({"OZ0_MODEL_URL": model.url, "OZ0_MODEL_KEY": key} if model else {}),
        given=json.dumps(given, ensure_ascii=False).encode(),
        secrets=(token, key) if key else (token,),
    )


def ended(*, tenant: UUID, session_id: UUID, node_id: UUID, incarnation: int, how: SessionEnd) -> bool:
    """A node saw a session's program end. False when the session is not that node's any more: nothing moved.

    Exit code 0 ends the job COMPLETED, with its output, once no call of it is open; anything else fails it. One that
    its node stopped is lost, unless its job is being ended.
    """
    with db.write(tenant) as now:
        job, row = _held(session_id)
        if job is None or row is None or (row.node_id, row.incarnation) != (node_id, incarnation):
            return False
        if row.state != SessionState.RUNNING:
            return False
        if how.stopped and job.state != JobState.CANCELLING:
            _lose(job, row, now)
            return True
        output, errors = masking.text(storable(how.output)), masking.text(storable(how.errors))
        said: dict[str, Any] = {"exit_code": how.code, "output": output.strip(), "errors": errors}
        if job.state == JobState.CANCELLING:
            sessions.end_token(row)
            moves.session(row, SessionState.STOPPED, reason=job.reason, now=now, **said)
            events.judge_later(job.pk)
        else:
            well = how.is_good
            detail = "" if well else masking.text(storable(how.says))
            sessions.finish(row, reason=Why.DONE if well else Why.AGENT_ERROR, now=now, detail=detail, **said)
            if not well:
                cancel.fail_for_agent(job, detail, now=now)
        return True


def lose(*, tenant: UUID, session_id: UUID, incarnation: int | None = None) -> bool:
    """Its node is gone, or does not have its program: the session is lost. False when it is not, or moved on before."""
    with db.write(tenant) as now:
        job, row = _held(session_id)
        if job is None or row is None or row.state != SessionState.RUNNING:
            return False
        if incarnation is not None and row.incarnation != incarnation:
            return False
        if incarnation is None and not (row.node and row.node.state in GONE):
            return False
        _lose(job, row, now)
        return True


def _lose(job: Job, row: Session, now: datetime) -> None:
    """Its token is dead with this; its running calls are stopped, what waits is ended, and its holds withdrawn."""
    moves.session(row, SessionState.LOST, reason=Why.SESSION_LOST, now=now, continues=None)  # a fresh start asks anew
    sessions.end_token(row)
    mine = Call.objects.filter(session_id=row.pk)
    cancel.stop_running(mine, why=Why.SESSION_LOST, now=now)
    for call_id in moves.cancel_waiting_calls(job.pk, reason=Why.SESSION_LOST, now=now, session=row.pk):
        moves.withdraw(Hold.objects.filter(call_id=call_id), now=now)
    moves.session(row, SessionState.SETTLING, reason=Why.SESSION_LOST, now=now)
    events.judge_later(job.pk)


def settle(*, tenant: UUID, session_id: UUID) -> bool:
    """Start a lost session again once its attempts have all ended, ask a person, or stop it with its job (RULES K6)."""
    with db.write(tenant) as now:
        locks.gate_shared()
        job, row = _held(session_id)
        if job is None or row is None or row.state != SessionState.SETTLING or _live(row).exists():
            return False
        sessions.end_token(row)
        forbidding = _forbidding(row)
        first = Call.objects.filter(pk__in=forbidding).order_by("activity").first()
        if job.state == JobState.CANCELLING:
            moves.session(row, SessionState.STOPPED, reason=job.reason, now=now)
        elif first is None:
            due_at = now if row.incarnation == 1 else backoff(now, failures=row.incarnation - 1, jitter=0.5)
            sessions.start_again(row, reason=Why.STARTED_AGAIN, now=now, due_at=due_at)
        else:
            moves.session(row, SessionState.ASKING, reason=Why.SESSION_LOST, now=now)
            holds.ask_about_session(first, _why_it_asks(forbidding.count()), now=now)
        events.judge_later(job.pk)
        return True


def _forbidding(row: Session) -> QuerySet[Call]:
    """Those of its calls that a fresh start must not make again unasked: not retry-safe, and maybe gone out."""
    out = Attempt.objects.filter(call__session_id=row.pk, call__incarnation=row.incarnation, wire__went_out=True)
    out = out.filter(call__retry_safe=False).exclude(state=AttemptState.NOT_MADE)
    return Call.objects.filter(pk__in=out.values("call_id"))


def _why_it_asks(count: int) -> str:
    these = "a call that is" if count == 1 else f"{plural(count, 'call')} that are"
    return (
        f"The program was lost with its node after {these} not safe to repeat had gone out"
        f"{'' if count == 1 else ', this one first'}. Started again, it may make {'it' if count == 1 else 'them'} anew."
    )


def _live(row: Session) -> QuerySet[Call]:
    return Call.objects.filter(session_id=row.pk, state__in=MOVING | ASKING)


def _job_of(session_id: UUID, *, busy: bool = False) -> Job | None:
    job_id = Session.objects.filter(pk=session_id).values_list("job_id", flat=True).first()
    if job_id is None:
        return None
    return locks.job_if_free(job_id) if busy else locks.job(job_id)


def _held(session_id: UUID) -> tuple[Job | None, Session | None]:
    """The job and the session, locked in the order of MACHINES 2."""
    return _job_of(session_id), locks.session(session_id)


def to_stop(here: Mapping[UUID, int], node_id: UUID) -> list[UUID]:
    """Which of these sessions (with their incarnations) this node must stop: not its own now, or their job ends."""
    with db.sweep():
        mine = Session.objects.filter(pk__in=here, node_id=node_id, state=SessionState.RUNNING)
        mine = mine.exclude(job__state=JobState.CANCELLING)
        goes_on = dict(mine.values_list("pk", "incarnation"))
    return [session for session, incarnation in here.items() if goes_on.get(session) != incarnation]


def strays(here: Collection[UUID], node_id: UUID) -> list[tuple[UUID, UUID, int]]:
    """The (tenant, session, incarnation) that are said to run on this node, which has no program of them."""
    with db.sweep() as now:
        mine = Session.objects.filter(node_id=node_id, state=SessionState.RUNNING, started_at__lt=now - STRAY)
        return list(mine.exclude(pk__in=here).values_list("tenant_id", "pk", "incarnation"))


def lost_ones() -> QuerySet[Session]:
    """Sessions whose node has gone. For the sweep."""
    return Session.objects.filter(state=SessionState.RUNNING, node__state__in=GONE).order_by("started_at")


def settled_ones() -> QuerySet[Session]:
    """Lost sessions with nothing open any more. For the sweep."""
    live = Call.objects.filter(state__in=MOVING | ASKING, session__isnull=False)
    return Session.objects.filter(state=SessionState.SETTLING).exclude(pk__in=live.values("session_id")).order_by("id")


def open_ones() -> QuerySet[Session]:
    """Sessions that are not over, which keep their jobs from standing still."""
    return Session.objects.exclude(state__in=SESSION_FINAL)
