"""Every path that starts work passes the gate of switches, and none can be added that does not (RULES L7)."""

import ast
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from base import db
from catalog.models import Scope
from jobs.models import Attempt, Call, Job, Starter
from jobs.operations import arriving, asking_again, cancel, hooks, intake, nodes, outside, routines, turns
from jobs.operations.holds import Answer
from jobs.rules.states import JOB_FINAL, CallState
from jobs.rules.turns import TurnAnswer, Wanted
from studio.embedded import Postgres
from tenants.operations import tokens
from tenants.queries.seats import seats_of
from tenants.rules.bearers import Scope as Of
from tenants.rules.bearers import written
from tenants.rules.who import SYSTEM
from tests import senders
from tests.builders import (
    World,
    a_call,
    a_held_call,
    a_job,
    a_retrying_call,
    a_world,
    an_unknown_call,
    answered,
    swept,
    the_hold,
    the_job,
)
from tests.operations.test_switches import by_plain_sql, claim
from tests.senders import STANDARD

pytestmark = pytest.mark.usefixtures("database")


def a_start(world: World, starter: Starter) -> Callable[[], object]:
    """A job about to be started."""

    def start() -> object:
        try:
            return intake.start_job(
                tenant=world.tenant, agent="clerk", given={}, starter=starter, person=world.person, title=""
            )
        except intake.CannotStart as error:
            assert "kill switch" in str(error)
            return None

    return start


def a_routine(world: World) -> UUID:
    wanted = routines.Wanted("nightly", "clerk", "* * * * *", "UTC")
    return routines.make(tenant=world.tenant, wanted=wanted, person=world.person, actor=SYSTEM)


def started_for(world: World, routine: UUID) -> object:
    with db.read(world.tenant):
        return Job.objects.filter(routine=routine).first()


def a_due_routine(world: World, move_clock: Callable[[timedelta], None]) -> Callable[[], object]:
    """A routine whose time has come, and a sweep that looks."""
    routine = a_routine(world)
    move_clock(timedelta(minutes=1))

    def sweep_it() -> object:
        swept(lose_nodes=False)
        return started_for(world, routine)

    return sweep_it


def a_routine_by_hand(world: World) -> Callable[[], object]:
    """A person who presses "run now"."""
    routine = a_routine(world)

    def run() -> object:
        try:
            return routines.run_now(tenant=world.tenant, routine=routine, person=world.person, once="", actor=SYSTEM)
        except intake.CannotStart as error:
            assert "kill switch" in str(error)
            return None

    return run


def an_event(world: World) -> Callable[[], object]:
    """A signed event that comes to a hook."""
    wanted = hooks.Wanted("orders", "clerk")
    hook = hooks.make(tenant=world.tenant, wanted=wanted, secret=STANDARD, person=world.person, actor=SYSTEM)

    def come() -> object:
        with db.read(world.tenant) as now:
            headers = senders.standard(b"{}", now)
        answer = arriving.receive(hook=hook, headers=headers, body=b"{}")
        if isinstance(answer, arriving.Started):
            return answer.job
        assert isinstance(answer, arriving.Refused) and "kill switch" in answer.why
        return None

    return come


def an_outside_client(world: World) -> Callable[[], object]:
    """A call through the gateway, whose job is begun with it."""
    (seat,) = seats_of(world.person)
    shown = written(world.tenant.hex.ljust(36, "0"))
    token = tokens.make(seat=seat, token=shown, name="t", scopes=[Of.CALL], agent=world.agent, days=7, actor=SYSTEM)
    client = outside.Client(world.tenant, token, "t", world.agent, world.person, "")

    def call() -> object:
        try:
            return outside.submit(client=client, want=Wanted("shop__look", {}, "n:1"))
        except outside.NotTaken as error:
            assert "kill switch" in str(error)
            return None

    return call


def a_call_to_ask_again(world: World, move_clock: Callable[[timedelta], None]) -> Callable[[], object]:
    """A call that expired in a job that is over: asked for again it gets a job of its own (RULES A8)."""
    call, _ = a_held_call(world)
    move_clock(timedelta(days=8))
    swept(lose_nodes=False)
    job = the_job(world, call)
    if job.state not in JOB_FINAL:
        cancel.cancel_job(tenant=world.tenant, job_id=job.pk, by=SYSTEM)

    def again() -> object:
        try:
            with db.write(world.tenant):
                return asking_again.ask_again(call_id=call, person=world.person)
        except asking_again.CannotAsk as error:
            assert "kill switch" in str(error)
            return None

    return again


def a_due_turn(world: World) -> Callable[[], object]:
    """A job whose first turn is due."""
    job = a_job(world)
    return lambda: turns.start(tenant=world.tenant, job_id=job, node_id=world.node)


def an_answered_turn(world: World) -> Callable[[], object]:
    """A model that asks for a call: also what the gateway's calls go through."""
    job = a_job(world)
    order = turns.start(tenant=world.tenant, job_id=job, node_id=world.node)
    assert order is not None

    def settle_it() -> object:
        answer = TurnAnswer(say="", wanted=(Wanted("shop__note", {}),))
        turns.settle(tenant=world.tenant, turn_id=order.turn_id, asked=1, outcome=answer)
        with db.read(world.tenant):
            return Call.objects.filter(job_id=job, state__in=[CallState.QUEUED, CallState.HELD]).first()

    return settle_it


def a_queued_call(world: World) -> Callable[[], object]:
    call = a_call(world, "note")
    return lambda: claim(world, call)


def a_due_retry(world: World, move_clock: Callable[[timedelta], None]) -> Callable[[], object]:
    """A read whose retry timer has run out."""
    call = a_retrying_call(world, "look")
    move_clock(timedelta(seconds=2))
    return lambda: claim(world, call)


def an_approved_call(world: World) -> Callable[[], object]:
    call = a_call(world, "refund")
    answered(world, the_hold(world, call).pk, Answer.APPROVE)
    return lambda: claim(world, call)


def a_write_to_run_again(world: World) -> Callable[[], object]:
    call, hold = an_unknown_call(world)
    answered(world, hold, Answer.AGAIN)
    return lambda: claim(world, call)


def an_open_card(world: World) -> Callable[[], object]:
    """A person approves after the switch."""
    call, hold = a_held_call(world)

    def approve() -> object:
        answered(world, hold, Answer.APPROVE)
        return claim(world, call)

    return approve


def a_lost_turn(world: World, move_clock: Callable[[timedelta], None]) -> Callable[[], object]:
    """A turn whose node was lost, which the sweep has asked again."""
    job = a_job(world)
    assert turns.start(tenant=world.tenant, job_id=job, node_id=world.node) is not None
    move_clock(timedelta(seconds=11))
    nodes.lose(node_id=world.node)

    def again() -> object:
        swept()
        node = nodes.register(name="n2", host="here", pid=2, slots=4)
        return turns.start(tenant=world.tenant, job_id=job, node_id=node)

    return again


PATHS: dict[str, Callable[..., Callable[[], object]]] = {
    "a person": lambda world, _: a_start(world, Starter.PERSON),
    "an API key": lambda world, _: a_start(world, Starter.API_KEY),
    "a routine": a_due_routine,
    "a routine, by hand": lambda world, _: a_routine_by_hand(world),
    "an event": lambda world, _: an_event(world),
    "an outside client": lambda world, _: an_outside_client(world),
    "ask again": a_call_to_ask_again,
    "a due turn": lambda world, _: a_due_turn(world),
    "a model's call": lambda world, _: an_answered_turn(world),
    "a queued call": lambda world, _: a_queued_call(world),
    "a retry timer": a_due_retry,
    "an approval": lambda world, _: an_approved_call(world),
    "run it again": lambda world, _: a_write_to_run_again(world),
    "an open card": lambda world, _: an_open_card(world),
    "the sweep": a_lost_turn,
}


@pytest.mark.rule("L7")
@pytest.mark.parametrize("path", PATHS)
def test_no_path_starts_work_once_a_tenants_switch_is_on_and_each_would_have_without(
    path: str, database: Postgres, move_clock: Callable[[timedelta], None]
) -> None:
    """CASES L18."""
    stopped, free = a_world("stopped"), a_world("free")
    act, control = PATHS[path](stopped, move_clock), PATHS[path](free, move_clock)
    by_plain_sql(database, stopped, Scope.TENANT, "")
    nodes_still_alive(stopped, free)
    assert act() is None
    assert control() is not None
    with db.read(stopped.tenant):
        assert not Attempt.objects.filter(ended_at__isnull=True).exists()


def nodes_still_alive(*worlds: World) -> None:
    """The nodes that were not declared lost say that they live."""
    for world in worlds:
        try:
            nodes.beat(node_id=world.node, servers=[])
        except nodes.NodeGone:
            continue


@pytest.mark.rule("L7")
def test_whatever_starts_work_does_it_through_the_few_functions_that_look_at_the_switches() -> None:
    """CASES L18."""
    root = Path(intake.__file__).parents[2]
    callers: dict[str, set[str]] = {
        "begin_call": set(),
        "open_attempt": set(),
        "begin_turn": set(),
        "gate_shared": set(),
    }
    for app in ("jobs", "approvals", "studio"):
        for file in (root / app).rglob("*.py"):
            for function in ast.walk(ast.parse(file.read_text())):
                if isinstance(function, ast.FunctionDef):
                    for node in ast.walk(function):
                        name = (
                            node.func.attr
                            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
                            else ""
                        )
                        if name in callers:
                            callers[name].add(f"{file.stem}.{function.name}")
    assert callers["begin_call"] == {"intake._begin"}
    assert callers["open_attempt"] == {"work._open_attempt"}
    assert callers["begin_turn"] == {"turns._ask"}
    assert {"intake._start", "work._claim", "turns.start", "turns.settle", "holds.held"} <= callers["gate_shared"]


# Who makes a row of a job, and who has one started: each with its paths above, which a new one is to get as well.
MAKE_JOBS = {"intake._start", "asking_again._job_for", "outside._begin"}
STARTERS: dict[str, set[str]] = {
    "jobs.views.starting._start": {"a person"},
    "jobs.api.jobs.start": {"a person", "an API key"},
    "studio.cli.jobs.start": {"a person"},
    "studio.cli.load_examples._start_jobs": {"a person"},
    "jobs.operations.routines._run": {"a routine"},
    "jobs.operations.routines.run_now": {"a routine, by hand"},
    "jobs.operations.arriving._started": {"an event"},
}


@pytest.mark.rule("L7")
def test_whatever_starts_a_job_is_known_here_and_has_a_path_that_shows_it_pass_the_gate() -> None:
    """CASES L18: a new starter, or one that makes its jobs past the gate, is told by name."""
    root = Path(intake.__file__).parents[2]
    makes, starts = set[str](), set[str]()
    for app in ("tenants", "catalog", "jobs", "approvals", "studio"):
        for file in (root / app).rglob("*.py"):
            for function in ast.walk(ast.parse(file.read_text())):
                if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                    called = {_called(node) for node in ast.walk(function) if isinstance(node, ast.Call)}
                    keeps = "Job" in called and any(one.endswith(".save") for one in called)
                    if keeps or called & {"Job.objects.create", "JOBS.insert", "Job.objects.bulk_create"}:
                        makes.add(f"{file.stem}.{function.name}")
                    if {one.rpartition(".")[2] for one in called} & {"start_job", "start_within"}:
                        module = ".".join(file.relative_to(root).with_suffix("").parts)
                        starts.add(f"{module}.{function.name}")
    assert makes == MAKE_JOBS
    assert starts == set(STARTERS)
    assert set().union(*STARTERS.values(), {"ask again", "an outside client"}) <= set(PATHS)
    assert {starter.value for starter in Starter} == {"person", "api_key", "routine", "event"}


def _called(node: ast.Call) -> str:
    """The dotted name of what is called."""
    parts, at = list[str](), node.func
    while isinstance(at, ast.Attribute):
        parts, at = [at.attr, *parts], at.value
    return ".".join([at.id, *parts]) if isinstance(at, ast.Name) else ".".join(parts)
