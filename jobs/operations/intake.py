"""Starting jobs, and taking in the calls an agent asks for."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, assert_never
from uuid import UUID

from django.db import IntegrityError

from base import canonical, db, ids
from base.canonical import digest_of_any
from catalog.models import Agent, Function
from catalog.queries import functions, switches
from catalog.rules.agent_input import asked_of
from catalog.rules.agents import AgentSpec
from catalog.rules.answers import storable
from catalog.rules.estimates import Definition
from catalog.rules.grants import SEPARATOR
from catalog.rules.kept_agents import Unreadable, from_json
from catalog.rules.policy import Allow, Ask, Refuse
from catalog.rules.switching import Mode
from jobs import wake
from jobs.models import Call, Driver, Job, JobCounter, Session, Starter, Turn
from jobs.operations import bodies, events, holds, masking, moves, sessions, verdicts
from jobs.operations.platform import Asked, Platform
from jobs.queries import history, locks
from jobs.queries.tables import JOBS
from jobs.rules.arguments import canonical_value, misfit, misfits, unkeepable
from jobs.rules.keys import activity_key, session_key
from jobs.rules.orders import Result
from jobs.rules.secrets import Path
from jobs.rules.states import CallState, HoldKind, JobState
from jobs.rules.turns import Wanted
from jobs.rules.why import Why
from tenants.operations import masks

TITLE: Final = 200
THROUGH: Final = ("start_token_id", "routine_id", "hook_id")


class Troubled(ValueError):
    """What was wanted cannot be so. The message says why; `troubles` are (field or input, what is wrong there)."""

    def __init__(self, message: str, *troubles: tuple[str, str]) -> None:
        super().__init__(message)
        self.troubles = troubles


class CannotStart(Troubled):
    """A job that cannot be started; the message says why and what to do."""

    of_input = False


class BadInput(CannotStart):
    """An input that the agent does not take; another one may be started."""

    of_input = True


class StartedOtherwise(CannotStart):
    """A start key that has started another job already: nothing was started, and that job is not this one's answer."""


@dataclass(frozen=True, slots=True)
class _Readied:
    """A wanted call's arguments, checked; `reason` is None when it can be judged."""

    arguments: Any
    digest: str
    reason: Why | None = None
    trouble: str = ""
    secret: tuple[Path, ...] = ()  # the places that the function's schema marks so (RULES A14)


@dataclass(frozen=True, slots=True)
class _Whence:
    """What asks for a call: a turn, a person once more, or the program of a harness session."""

    turn: Turn | None
    again_of: UUID | None
    session: Session | None


def start_job(
    *,
    tenant: UUID,
    agent: str,
    given: Mapping[str, Any],
    starter: Starter,
    person: int | None,
    title: str = "",
    start_key: str = "",
    token: UUID | None = None,
) -> UUID:
    """Start a job of the current version of `agent`; returns its id. `token` is what its starter showed, if any.

    `given` must be among the names of the agent's own `input`. A starter's same `start_key` (up to 64 characters)
    starts one job, however often and on whatever process it comes: the first one's id is returned. With another
    agent, title or input, as their canonical JSON tells, it starts nothing: `StartedOtherwise`. Raises `CannotStart`.
    """
    whose = {"starter": starter, "started_by_id": person, "start_key": start_key}
    through = {"start_token_id": token}
    try:
        with db.write(tenant):
            before = _started_with(whose)
            if before:
                return _the_same(before, agent, given, title)
            return _start(tenant, agent, given, title, whose | through)
    except IntegrityError:
        with db.read(tenant):
            before = _started_with(whose)
            if before is None:
                raise
            return _the_same(before, agent, given, title)


def start_within(
    *,
    agent: str,
    given: Mapping[str, Any],
    starter: Starter,
    person: int,
    title: str,
    start_key: str = "",
    routine: UUID | None = None,
    hook: UUID | None = None,
) -> UUID:
    """The same in a write that is open, for what notes in it what it has started. Raises `CannotStart`, of nothing."""
    whose = {"starter": starter, "started_by_id": person, "start_key": start_key}
    return _start(db.writing_tenant(), agent, given, title, whose | {"routine_id": routine, "hook_id": hook})


def check(agent: str, given: Mapping[str, Any], *, also: Iterable[str] = ()) -> None:
    """See that the current version of an agent takes this input, and `also` has inputs of these names.

    Demands an open write. Raises `CannotStart`.
    """
    db.must_write()
    spec = _spec_of(_agent(agent))
    _known({*given, *also}, spec)
    _input(spec, given)


def _started_with(whose: Mapping[str, Any]) -> Job | None:
    return Job.objects.filter(**whose).select_related("agent").first() if whose["start_key"] else None


def _the_same(before: Job, agent: str, given: Mapping[str, Any], title: str) -> UUID:
    first = history.first_input(before.pk)
    try:
        defaults = from_json(before.agent.definition).input
    except Unreadable:  # then only what is given now can be compared
        defaults = first
    now = [{**defaults, **given}, (title or agent)[:TITLE]]
    kept = masking.safely(lambda: masks.mapped(now, masks.of(before.tenant_id)), now)  # as it was kept (RULES A14)
    alike = digest_of_any([first, before.title]) == digest_of_any(kept)
    if not alike or before.agent_name != agent:
        raise StartedOtherwise(
            f"the same form or key has started {ids.show(ids.JOB, before.pk)} already, with another agent, title or"
            " values, so nothing was started now: start once more to start this one as well"
        )
    return before.pk


def _start(tenant: UUID, agent: str, given: Mapping[str, Any], title: str, whose: Mapping[str, Any]) -> UUID:
    now = db.must_write()
    starter, person = whose["starter"], whose["started_by_id"]
    locks.gate_shared()
    row = _agent(agent)
    switch = switches.over_agent(agent)
    if switch is not None and switch.mode == Mode.KILL:
        raise CannotStart(f"a kill switch is on for this {switch.scope}: {switch.reason or 'no reason was given'}")
    spec = _spec_of(row)
    if spec.outside:
        raise CannotStart(
            f"{agent} is an agent outside: it runs elsewhere and calls its functions here by a token of its own, which"
            " `oz0 connect` makes; so there is nothing to start"
        )
    job = Job(
        tenant_id=tenant,
        agent=row,
        agent_name=row.name,
        title=masking.text((title or row.name)[:TITLE]),
        **whose,
        input=masking.value(_input(spec, given)),
        state=JobState.QUEUED,
        on_unknown=spec.on_unknown or ("ask" if starter == Starter.PERSON else "fail"),
        driver=Driver.HARNESS if spec.harness else Driver.MODEL,
        turn_due_at=None if spec.harness else now,
        created_at=now,
        deadline_at=now + timedelta(minutes=spec.limits.minutes),
    )
    job.save(force_insert=True)
    JobCounter.objects.create(job=job, tenant_id=tenant)
    through: dict[str, Any] = {name.removesuffix("_id"): str(whose[name]) for name in THROUGH if whose.get(name)}
    events.record(job.pk, "job.started", to=JobState.QUEUED, agent=row.name, starter=starter, person=person, **through)
    if spec.harness:
        sessions.begin(job, now=now)
    else:
        db.after_commit(lambda: wake.turn(tenant=tenant, job_id=job.pk))
    return job.pk


def _agent(name: str) -> Agent:
    row = functions.current_agent(name)
    if row is None:
        raise CannotStart(f"there is no agent named {name!r}; the catalog lists those there are")
    return row


def _spec_of(row: Agent) -> AgentSpec:
    try:
        return from_json(row.definition)
    except Unreadable as error:
        raise CannotStart(str(error)) from error


def changed_input(spec: AgentSpec, before: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """See that a job's input may be changed by this. Raises `BadInput`."""
    _known(given, spec)
    _input(spec, {**before, **given})


def _known(names: Iterable[str], spec: AgentSpec) -> None:
    if unknown := sorted(set(names) - set(spec.input)):
        takes = ", ".join(sorted(spec.input)) or "no input at all"
        raise BadInput(f"the agent has no input named {', '.join(map(repr, unknown))}; it takes {takes}")


def _input(spec: AgentSpec, given: Mapping[str, Any]) -> dict[str, Any]:
    _known(given, spec)
    try:
        canonical.check(dict(given))
    except canonical.NotCanonical as error:
        raise BadInput(f"the input cannot be kept exactly: {error}") from error
    if trouble := unkeepable(given):
        raise BadInput(f"the input cannot be kept exactly: {trouble}")
    value = {**spec.input, **given}
    if wrong := misfits(value, asked_of(spec)):
        told = "; ".join(f"{path.removeprefix('$.')}: {what}" for path, what in wrong)
        raise BadInput(f"the input is not what the agent takes: {told}", *wrong)
    return value


def submit(
    *,
    job: Job,
    turn: Turn | None,
    wanted: list[Wanted],
    now: datetime,
    again_of: UUID | None = None,
    session: Session | None = None,
) -> list[Call]:
    """Take in the calls of one turn, in order. The caller holds the gate and, alone, the job.

    Each becomes queued, held, REFUSED or ERRORED; activities number them for ever (RULES K2). `again_of` is the call
    that expired when a person asked for it again (RULES A8): then no turn wants it. `session` is the harness session
    whose program asks.
    """
    db.must_write()
    available = functions.granted(job.agent_id)
    own = Platform(job, available)
    asked = [own.taken(want) for want in wanted]
    entries = {
        name: functions.entry(available[name]) for name in {one.want.model_name for one in asked} & available.keys()
    }
    whence = _Whence(turn, again_of, session)
    calls = [_take(job, whence, one, own, entries, job.next_activity + i, now) for i, one in enumerate(asked)]
    job.next_activity += len(calls)
    JOBS.update(job.pk, {"next_activity": job.next_activity})
    events.judge_later(job.pk)
    return calls


def _take(
    job: Job,
    whence: _Whence,
    asked: Asked,
    own: Platform,
    entries: Mapping[str, Function],
    activity: int,
    now: datetime,
) -> Call:
    want = asked.want
    function, built_in = entries.get(want.model_name), own.definition(want.model_name)
    ready = _ready(want, own, function, built_in, job.tenant_id)
    call = Call(
        tenant_id=job.tenant_id,
        job=job,
        turn=whence.turn,
        activity=activity,
        run_number=job.run_number,
        function=function,
        model_name=storable(want.model_name)[:200],
        asked_through=asked.through,
        model_call_id=storable(want.model_call_id)[:128],
        args_digest=ready.digest,
        again_of_id=whence.again_of,
        session=whence.session,
        incarnation=whence.session.incarnation if whence.session else 0,
        key=_key(job, whence.session, function, ready.digest, activity),
        created_at=now,
    )
    call.arguments, call.arguments_body_id = bodies.keep_if_large(masking.keep(call.pk, ready.arguments, ready.secret))
    if function is not None:
        call.tool_slug = function.tool.slug
        call.function_name = function.name
        call.kind = function.kind
        call.entry_digest = function.entry_digest
    elif built_in is not None:
        call.tool_slug, _, call.function_name = built_in.name.partition(SEPARATOR)
        call.read_only = True
    if ready.reason is not None:
        detail = ready.trouble
        if ready.reason is Why.NO_SUCH_FUNCTION and (unlisted := functions.not_listed(job.agent_id)):
            detail += f". Never listed, as its server could not be started or reached: {', '.join(unlisted)}"
        _begin(call, CallState.ERRORED, reason=ready.reason, now=now, detail=detail)
        return call
    if function is None:
        _answer(call, job, own, ready.arguments, now)
        return call
    ruling = verdicts.rule_on(call, job)
    if isinstance(ruling, verdicts.Switched):
        _begin(call, CallState.REFUSED, reason=ruling.reason, now=now, detail=ruling.detail)
        return call
    call.rule_id, call.rule_digest = ruling.verdict.rule.id, ruling.verdict.rule.digest
    call.policy_number = ruling.policy
    match ruling.verdict:
        case Allow():
            _begin(call, CallState.QUEUED, reason=Why.SUBMITTED, now=now)
        case Refuse():
            _begin(call, CallState.REFUSED, reason=Why.POLICY_REFUSES, now=now, detail=ruling.why)
        case Ask():
            _begin(call, CallState.HELD, reason=Why.POLICY_ASKS, now=now)
            holds.open_approval(call, HoldKind.APPROVE, ruling, now=now)
        case never:
            assert_never(never)
    return call


def _key(job: Job, session: Session | None, function: Function | None, digest: str, activity: int) -> str:
    """The key of a new call (RULES K2, K3). The job is held alone, so no other call of its session counts meanwhile."""
    shown = ids.show(ids.JOB, job.pk)
    if session is None or function is None or function.annotations.get("idempotentHint") is not True:
        return activity_key(shown, run_number=job.run_number, activity=activity)
    alike = Call.objects.filter(session_id=session.pk, incarnation=session.incarnation, args_digest=digest)
    k = 1 + alike.filter(tool_slug=function.tool.slug, function_name=function.name).count()
    return session_key(
        shown, run_number=job.run_number, session=session.number, function=function.name, digest=digest, k=k
    )


def _answer(call: Call, job: Job, own: Platform, arguments: Any, now: datetime) -> None:
    """One of the platform's own functions: a step like any other, answered here, whatever the policy says.

    It reads what the studio itself holds for this agent. What follows from it is judged when that is called.
    """
    if switched := verdicts.switch_over(call, job):
        _begin(call, CallState.REFUSED, reason=switched.reason, now=now, detail=switched.detail)
        return
    said = own.answer(call.model_name, arguments)
    call.result_text, call.result_body_id = bodies.result(Result(masking.text(said.text), said.is_error))
    state = CallState.ERRORED if said.is_error else CallState.SUCCEEDED
    _begin(call, state, reason=Why.ANSWERED_HERE, now=now, detail=said.about)
    if said.read is not None:
        own.taint(call, said.read)


def _begin(call: Call, state: CallState, *, reason: Why, now: datetime, detail: str = "") -> None:
    """Write a new call in its first state (`states.CALL_STARTS`)."""
    moves.begin_call(call, state, reason=reason, now=now, detail=detail)
    events.record(
        call.job_id,
        "call.submitted",
        call=call.pk,
        to=state,
        reason=reason,
        function=call.model_name,
        activity=call.activity,
        **({"again_of": str(call.again_of_id)} if call.again_of_id else {}),
    )
    if state is CallState.QUEUED:
        tenant, call_id = call.tenant_id, call.pk
        db.after_commit(lambda: wake.call(tenant=tenant, call_id=call_id))


def _ready(
    want: Wanted, own: Platform, function: Function | None, built_in: Definition | None, tenant: UUID
) -> _Readied:
    try:
        value, digest = canonical_value(want.arguments)
    except canonical.NotCanonical as error:
        return _Readied({}, "", Why.BAD_ARGUMENTS, f"its arguments cannot be sent exactly as written: {error}")
    if trouble := unkeepable(value):
        return _Readied({}, digest, Why.BAD_ARGUMENTS, f"its arguments cannot be kept as written: {trouble}")
    try:
        secret = masking.marked(value, function) if function is not None else ()
        masked = masking.without_vault(value, secret, tenant=tenant)
    except masking.CannotMask as error:
        return _Readied({}, "", Why.BAD_ARGUMENTS, f"its arguments cannot be kept: {error}")
    if masked != value:
        value, digest = canonical_value(masked)
    if function is None and built_in is None:
        return _Readied(value, digest, Why.NO_SUCH_FUNCTION, own.unknown(want.model_name))
    if trouble := own.misnamed(want.model_name, value):
        return _Readied(value, digest, Why.NO_SUCH_FUNCTION, trouble)
    if not isinstance(value, dict):
        return _Readied(value, digest, Why.BAD_ARGUMENTS, "its arguments must be an object", secret)
    sent = built_in if function is None else function
    trouble = masking.told(misfit(value, sent.input_schema), value, secret) if sent is not None else ""
    return _Readied(value, digest, Why.BAD_ARGUMENTS if trouble else None, trouble, secret)
