"""Rows for tests, walked to by the operations the product uses: nothing half-made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import transaction

from base import db, ids
from base.canonical import digest_of_any
from catalog.models import Agent, EntryApproval, Function, Plugin, PluginVersion, PolicyVersion, Scope, Tool
from catalog.operations import listings
from catalog.queries.trust import origins_of
from catalog.rules.agents import AgentSpec, Limits
from catalog.rules.kept_agents import as_json
from catalog.rules.servers import ListedFunction, MeasuredListing
from catalog.rules.switching import Mode
from catalog.rules.wire import AnswerEnd, Wire
from jobs.models import Attempt, Call, Hold, Hook, Job, Routine, Session, Starter, Turn
from jobs.operations import cancel, holds, intake, nodes, outside, sweep, switches, turns, work
from jobs.operations.outside import Client
from jobs.queries import history, locks
from jobs.rules.orders import End, Order, Outcome, Result
from jobs.rules.reasons import Reason
from jobs.rules.states import CallState, JobState
from jobs.rules.turns import TurnAnswer, Wanted
from tenants.models import ApiToken, AuditHead, Gate, Membership, Role, Tenant, User
from tenants.rules.who import SYSTEM, Actor

READ = {"readOnlyHint": True}
WRITE = {"destructiveHint": False}
DESTRUCTIVE = {"destructiveHint": True}
KEYED = {"destructiveHint": False, "idempotentHint": True}
KEY_META = {"oz0/idempotency_key": True}


@dataclass(frozen=True)
class World:
    """One tenant with a person, a node and an agent that may call everything of the tool `shop`."""

    tenant: UUID
    person: int
    node: UUID
    agent: str = "clerk"
    functions: Mapping[str, str] = field(default_factory=dict)


def a_function(
    name: str,
    annotations: Mapping[str, Any],
    meta: Mapping[str, Any] | None = None,
    schema: Mapping[str, Any] | None = None,
) -> ListedFunction:
    """One entry of a listing, taking any object unless a schema says otherwise."""
    schema = dict(schema or {"type": "object"})
    entry = {"name": name, "annotations": dict(annotations), "meta": dict(meta or {}), "schema": schema}
    return ListedFunction(name, "", f"What {name} does.", schema, None, annotations, meta or {}, digest_of_any(entry))


ORDER = {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]}

FUNCTIONS = (
    a_function("look", READ),
    a_function("note", WRITE),
    a_function("charge", KEYED, KEY_META),
    a_function("refund", DESTRUCTIVE),
    a_function("export", {}),
    a_function("ship", WRITE, schema=ORDER),
)


def a_tenant(slug: str = "acme") -> UUID:
    """A tenant with its gate and its audit head."""
    tenant = ids.new()
    with db.write(tenant):
        Tenant.objects.create(pk=tenant, slug=slug, name=slug.title())
        Gate.objects.create(tenant_id=tenant)
        AuditHead.objects.create(tenant_id=tenant)
    return tenant


def a_person(tenant: UUID, name: str = "pat", role: Role = Role.ADMIN) -> int:
    """A person who belongs to the tenant."""
    with transaction.atomic():
        user = User.objects.filter(username=name).first() or User.objects.create_user(name)
    with db.write(tenant):
        Membership.objects.create(tenant_id=tenant, user=user, role=role)
    return user.pk


def a_node(name: str = "n1", slots: int = 32) -> UUID:
    """A node that has just registered."""
    return nodes.register(name=name, host="here", pid=1, slots=slots)


def a_tool(
    tenant: UUID, functions: Sequence[ListedFunction] = FUNCTIONS, *, slug: str = "shop", timeout: float = 60
) -> None:
    """A plugin with one tool, listed."""
    with db.write(tenant) as now:
        plugin = Plugin.objects.create(tenant_id=tenant, name=slug)
        version = PluginVersion.objects.create(
            tenant_id=tenant, plugin=plugin, version="1", digest=f"d-{slug}", manifest={}, folder="/", added_at=now
        )
        tool = Tool.objects.create(
            tenant_id=tenant, plugin_version=version, slug=slug, argv=["/bin/false"], timeout=timeout
        )
    measured = MeasuredListing(digest_of_any([f.digest for f in functions]), "2026-07-28", slug, "1", tuple(functions))
    listings.store(tenant=tenant, tool_id=tool.pk, measured=measured)


def an_agent(
    tenant: UUID,
    name: str = "clerk",
    *,
    on_unknown: str | None = None,
    limits: Limits | None = None,
    model: str = "rehearsal",
    harness: tuple[str, ...] = (),
) -> None:
    """An agent that may call everything of `shop`; its turns are given by the test, or by its model's provider.

    One with a `harness` has no model: its program calls, in the test's hands.
    """
    whose: dict[str, Any] = {"harness": harness} if harness else {"model": model}
    spec = AgentSpec(name, **whose, functions=("shop.*",), on_unknown=on_unknown, limits=limits or Limits())
    with db.write(tenant):
        version = PluginVersion.objects.get(plugin__name="shop")
        Agent.objects.create(tenant_id=tenant, plugin_version=version, name=name, definition=as_json(spec))


def a_world(
    slug: str = "acme", *, on_unknown: str | None = None, timeout: float = 60, limits: Limits | None = None
) -> World:
    """Everything a job needs."""
    tenant = a_tenant(slug)
    person = a_person(tenant, name=f"pat-{slug}")
    a_tool(tenant, timeout=timeout)
    an_agent(tenant, on_unknown=on_unknown, limits=limits)
    return World(tenant, person, a_node())


def a_job(world: World, *, starter: Starter = Starter.PERSON) -> UUID:
    """A job that is due its first turn."""
    return intake.start_job(
        tenant=world.tenant, agent=world.agent, given={}, starter=starter, person=world.person, title="A job"
    )


def a_turn(world: World, job: UUID, *wanted: str | tuple[str, Any], say: str = "") -> list[UUID]:
    """The job's due turn, answered with calls of these functions of `shop`; returns the calls in order."""
    order = turns.start(tenant=world.tenant, job_id=job, node_id=world.node)
    assert order is not None, "no turn of the job is due"
    pairs = [(want, {}) if isinstance(want, str) else want for want in wanted]
    answer = TurnAnswer(say=say, wanted=tuple(Wanted(f"shop__{name}", arguments) for name, arguments in pairs))
    assert turns.settle(tenant=world.tenant, turn_id=order.turn_id, asked=order.asked, outcome=answer)
    with db.read(world.tenant):
        return list(Call.objects.filter(turn_id=order.turn_id).order_by("activity").values_list("pk", flat=True))


def a_call(world: World, function: str = "note", arguments: Any = None, *, starter: Starter = Starter.PERSON) -> UUID:
    """The only call of a new job."""
    job = a_job(world, starter=starter)
    return a_turn(world, job, (function, arguments if arguments is not None else {}))[0]


def an_order(world: World, call: UUID) -> Order:
    """The call, claimed."""
    order = work.start(tenant=world.tenant, call_id=call, node_id=world.node, attempt_id=ids.new())
    assert order is not None, "the call cannot be claimed"
    return order


def an_outcome(end: End, *, went_out: bool = True, text: str = "ok", is_error: bool = False, **more: Any) -> Outcome:
    """How an attempt ended, with a wire record to match."""
    answered = end in (End.ANSWERED, End.BUSY)
    reasons = {
        End.ANSWERED: Reason.TOOL_ERROR if is_error else Reason.ANSWERED,
        End.BUSY: Reason.BUSY,
        End.NOT_MADE: Reason.SERVER_NOT_UP,
        End.TIMED_OUT: Reason.TIME_LIMIT,
        End.BROKEN: Reason.CONNECTION_BROKE,
        End.UNREADABLE: Reason.UNREADABLE,
        End.LOST: Reason.NODE_LOST,
        End.STOPPED: Reason.STOPPED_CANCEL,
    }
    out = went_out and end is not End.NOT_MADE
    wire = Wire(connected=out, went_out=out, ended=AnswerEnd.COMPLETE if answered else AnswerEnd.NONE)
    result = Result(text, is_error or end is End.BUSY) if answered else None
    return Outcome(end, more.pop("reason", reasons[end]), wire, result, **more)


def settle(world: World, order: Order, outcome: Outcome, *, jitter: float = 0.5) -> bool:
    """The attempt, settled."""
    return work.settle(tenant=world.tenant, attempt_id=order.attempt_id, outcome=outcome, jitter=jitter)


def made(world: World, call: UUID, outcome: Outcome) -> Call:
    """The call claimed and its attempt settled; returns the call as it then stands."""
    settle(world, an_order(world, call), outcome)
    return see(world, Call, call)


def a_held_call(world: World, function: str = "refund") -> tuple[UUID, UUID]:
    """A call that waits for a person, and its hold."""
    call = a_call(world, function)
    return call, the_hold(world, call).pk


def an_unknown_call(world: World, function: str = "note") -> tuple[UUID, UUID]:
    """A plain write whose connection broke after the request went out, and its question."""
    call = a_call(world, function)
    made(world, call, an_outcome(End.BROKEN))
    return call, the_hold(world, call).pk


def the_hold(world: World, call: UUID) -> Hold:
    """The open hold of a call."""
    with db.read(world.tenant):
        return Hold.objects.get(call_id=call, closed_at__isnull=True)


def a_retrying_call(world: World, function: str = "look", outcome: Outcome | None = None) -> UUID:
    """A retry-safe call whose first attempt broke, due again in a second."""
    call = a_call(world, function)
    assert made(world, call, outcome or an_outcome(End.BROKEN)).state == CallState.RETRYING
    return call


def an_approval(person: int, entry: Function) -> None:
    """The approval of exactly this entry, by a person. Demands an open write."""
    origin = origins_of([entry.tool])[entry.tool_id]
    EntryApproval.objects.create(
        tenant_id=entry.tenant_id,
        tool_slug=entry.tool.slug,
        plugin=origin.plugin,
        connection=origin.connection,
        address=origin.address,
        function=entry.name,
        entry_digest=entry.entry_digest,
        approved_by_id=person,
        approved_at=db.must_write(),
    )


def a_policy(world: World, *rules: Mapping[str, Any]) -> None:
    """These rules in force from now on."""
    with db.write(world.tenant) as now:
        locks.gate_alone()
        number = PolicyVersion.objects.count() + 1
        PolicyVersion.objects.create(tenant_id=world.tenant, number=number, rules=list(rules), made_at=now)


def a_rule(name: str, effect: str, **conditions: Any) -> Mapping[str, Any]:
    """One rule of a policy."""
    return {"id": name, "title": name, "effect": effect, **conditions}


def a_switch(world: World, scope: Scope, target: str = "", reason: str = "an incident", mode: Mode = Mode.KILL) -> UUID:
    """A kill switch, turned on; or a pause."""
    return switches.turn_on(tenant=world.tenant, scope=scope, target=target, reason=reason, by=SYSTEM, mode=mode)


def answered(world: World, hold: UUID, answer: holds.Answer, note: str = "") -> holds.Taken | holds.Closed:
    """A hold, answered by the world's person."""
    with db.write(world.tenant):
        return holds.answer(hold_id=hold, answer=answer, person=world.person, note=note)


def cancelled(world: World, job: UUID) -> JobState:
    """A job, cancelled by the world's person; returns its state then."""
    by = Actor("pat", "link, 127.0.0.1", world.person)
    return cancel.cancel_job(tenant=world.tenant, job_id=job, by=by)


def a_client(world: World, session: str = "", name: str = "mine") -> Client:
    """A client of the world's person, with a token of its own."""
    with db.write(world.tenant) as now:
        token = ApiToken.objects.create(
            tenant_id=world.tenant,
            token_hash=name.ljust(64, "0"),
            name=name,
            scopes=["call"],
            agent=world.agent,
            created_by_id=world.person,
            created_at=now,
        )
    return Client(world.tenant, token.pk, name, world.agent, world.person, session)


def asked(client: Client, function: str = "note", request: str = "n:1", job: UUID | None = None) -> UUID:
    """One call that the client asked for."""
    return outside.submit(client=client, want=Wanted(f"shop__{function}", {}, request), job_id=job)


def the_job(world: World, call: UUID) -> Job:
    """The job of a call, as it is now."""
    with db.read(world.tenant):
        return Job.objects.get(pk=Call.objects.get(pk=call).job_id)


def told(world: World, call: UUID) -> str:
    """What the model reads of a call."""
    with db.read(world.tenant):
        return history.text_for_model(Call.objects.get(pk=call))


def swept(*, lose_nodes: bool = True) -> int:
    """One sweep; returns how much it did."""
    return sweep.Sweeper().sweep(dice=lambda: 0.5, lose_nodes=lose_nodes)


def see[Row: (Job, Call, Attempt, Hold, Turn, Routine, Hook, Session)](world: World, model: type[Row], pk: UUID) -> Row:
    """A row as it is now."""
    with db.read(world.tenant):
        return model._default_manager.get(pk=pk)
