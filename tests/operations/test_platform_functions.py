"""The platform's own functions: manuals and skills read, functions found and called, and what that may never get round.

The agents are rehearsals of real plugin files; what they are answered is what a model would read.
"""

import json
from pathlib import Path
from uuid import UUID

import pytest

from base import db, ids
from catalog.models import Function, Scope
from catalog.queries.costs import agents_now
from catalog.rules.estimates import Definition, as_sent, estimate
from catalog.rules.platform import CALL, FIND, carried, label_of
from catalog.rules.problems import BadPlugin
from jobs.agent import models
from jobs.models import Call, Event, Job, Starter
from jobs.operations import holds, intake, turns, work
from jobs.operations.holds import Answer
from jobs.queries import history
from jobs.rules.orders import End
from jobs.rules.states import CallState, Effect, HoldKind, JobState
from jobs.rules.turns import TurnAnswer, Wanted
from jobs.rules.why import Why
from tests.builders import (
    World,
    a_policy,
    a_rule,
    a_switch,
    an_order,
    an_outcome,
    cancelled,
    made,
    see,
    settle,
    the_hold,
    told,
)
from tests.manuals import CAREFUL, FILES, a_world_with_manuals, registered

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def world(tmp_path: Path) -> World:
    """The plugins `depot`, a tool with a manual, and `crew`, agents that are granted some of it."""
    return a_world_with_manuals(tmp_path)


def started(world: World, agent: str, **given: object) -> UUID:
    return intake.start_job(
        tenant=world.tenant, agent=agent, given=given, starter=Starter.PERSON, person=world.person, title=agent
    )


def a_rehearsed_turn(world: World, job: UUID) -> list[Call]:
    """The job's due turn, as its rehearsal plays it; the calls that came of it."""
    order = turns.start(tenant=world.tenant, job_id=job, node_id=world.node)
    assert order is not None, "no turn of the job is due"
    assert turns.settle(tenant=world.tenant, turn_id=order.turn_id, asked=order.asked, outcome=models.ask(order))
    return calls_of(world, order.turn_id)


def a_modelled_turn(world: World, job: UUID, *wanted: tuple[str, object]) -> list[Call]:
    """The same where a model asks for these calls."""
    order = turns.start(tenant=world.tenant, job_id=job, node_id=world.node)
    assert order is not None, "no turn of the job is due"
    answer = TurnAnswer("", tuple(Wanted(name, arguments, f"m{at}") for at, (name, arguments) in enumerate(wanted)))
    assert turns.settle(tenant=world.tenant, turn_id=order.turn_id, asked=order.asked, outcome=answer)
    return calls_of(world, order.turn_id)


def calls_of(world: World, turn: UUID) -> list[Call]:
    with db.read(world.tenant):
        return list(Call.objects.filter(turn_id=turn).order_by("activity"))


def index_of(world: World, agent: str) -> dict[str, tuple[bool, tuple[str, ...]]]:
    """What stands in an agent's index, and why."""
    with db.read(world.tenant):
        (one,) = agents_now(agent)
    return {line.name: (line.granted, line.manual_of) for line in one.index}


def carried_by(world: World, agent: str) -> list[str]:
    with db.read(world.tenant):
        (one,) = agents_now(agent)
    own = carried(lazy=one.cost.lazy, index=one.index)
    assert [cost.tokens for cost in one.cost.own] == estimate(own)
    return [label_of(definition.name) for definition in own]


def events_of(world: World, job: UUID, kind: str) -> list[Event]:
    with db.read(world.tenant):
        return list(Event.objects.filter(job_id=job, kind=kind).order_by("seq"))


# --- manuals and skills ------------------------------------------------------------------------------------------


@pytest.mark.rule("M2")
def test_a_manual_is_in_the_index_of_every_agent_that_is_granted_any_function_of_its_tool(world: World) -> None:
    manual = {"depot/careful": (False, ("depot",)), "depot/counting": (False, ("depot",))}
    assert index_of(world, "keeper") == manual
    assert index_of(world, "finder") == manual
    assert index_of(world, "reader") == {"crew/manners": (True, ()), "depot/spare": (True, ())} | manual
    assert index_of(world, "stranger") == {}
    with db.read(world.tenant):
        assert [one.no_skills for one in agents_now("reader")] == [("nobody/knows",)]


@pytest.mark.rule("M1")
@pytest.mark.parametrize(
    ("manual", "told"),
    [("crew/manners", "another plugin's skill"), (", ".join(f"s{n}" for n in range(9)), "9 skills, more than 8")],
)
def test_a_plugin_whose_manual_is_anothers_or_too_long_is_not_taken_and_the_one_before_stays(
    world: World, tmp_path: Path, manual: str, told: str
) -> None:
    manifest = FILES["depot"]["oz0-plugin.yaml"].replace("careful, depot/counting", manual)
    with pytest.raises(BadPlugin) as refused:
        registered(world.tenant, tmp_path, "depot", {"oz0-plugin.yaml": manifest})
    assert told in str(refused.value)
    assert set(index_of(world, "keeper")) == {"depot/careful", "depot/counting"}


@pytest.mark.rule("M2")
def test_reading_a_skill_is_a_step_of_the_job_that_no_node_makes(world: World) -> None:
    job = started(world, "keeper")
    (call,) = a_rehearsed_turn(world, job)
    assert (call.state, call.reason, call.effect) == (CallState.SUCCEEDED, Why.ANSWERED_HERE, Effect.NONE)
    assert (call.tool_slug, call.function_name, call.attempts_made) == ("oz", "skill", 0)
    assert told(world, call.pk) == CAREFUL
    assert call.key == f"{ids.show(ids.JOB, job)}/1"
    a_rehearsed_turn(world, job)
    assert (see(world, Job, job).state, see(world, Job, job).output) == (JobState.COMPLETED, CAREFUL)


@pytest.mark.rule("M2")
def test_a_skill_outside_the_index_is_not_read(world: World) -> None:
    (call,) = a_rehearsed_turn(world, started(world, "stranger"))
    assert (call.state, call.reason) == (CallState.ERRORED, Why.NO_SUCH_FUNCTION)
    assert "no skill is in this agent's index" in told(world, call.pk)
    job = started(world, "keeper")
    manners, wrong, bare = a_modelled_turn(
        world,
        job,
        ("oz__skill", {"name": "crew/manners"}),
        ("oz__skill", {"named": "careful"}),
        ("oz__skill", '{"name": "depot/counting"}'),
    )
    assert (manners.state, manners.reason) == (CallState.ERRORED, Why.ANSWERED_HERE)
    assert "depot/careful, depot/counting" in told(world, manners.pk)
    assert (wrong.state, wrong.reason) == (CallState.ERRORED, Why.BAD_ARGUMENTS)
    assert told(world, bare.pk) == "Twice."


@pytest.mark.rule("M3")
@pytest.mark.rule("A2")
def test_reading_another_plugins_manual_taints_the_job_and_what_waits_is_judged_by_that(world: World) -> None:
    a_policy(world, a_rule("careful", "ask", tainted=True, title="Ask once it read what others wrote"))
    job = started(world, "reader")
    look, read, note = a_rehearsed_turn(world, job)
    assert told(world, read.pk) == CAREFUL
    row = see(world, Job, job)
    assert (row.tainted_at, row.tainted_by) == (read.created_at, "depot/careful")
    (event,) = events_of(world, job, "job.tainted")
    assert (event.call, event.data) == (read.pk, {"skill": "depot/careful", "tools": ["depot"]})
    assert look.state == CallState.QUEUED, "asked for before the manual was read"
    assert note.state == CallState.HELD, "asked for after it"
    assert the_claim(world, look.pk) is None, "it was queued before, and is judged by what the job is now"
    assert see(world, Call, look.pk).state == CallState.HELD
    assert the_hold(world, look.pk).rule_id == "careful"


@pytest.mark.rule("M3")
def test_a_retry_after_the_manual_was_read_asks_first(world: World) -> None:
    a_policy(world, a_rule("careful", "ask", tainted=True))
    job = started(world, "reader")
    (look,) = a_modelled_turn(world, job, ("depot__look", {}))
    order = an_order(world, look.pk)
    settle(world, order, an_outcome(End.BROKEN))
    taint(world, job)
    with db.write(world.tenant) as now:
        Call.objects.filter(pk=look.pk).update(due_at=now)
    assert the_claim(world, look.pk) is None
    assert the_hold(world, look.pk).kind == HoldKind.RETRY


@pytest.mark.rule("M3")
def test_its_own_plugins_manual_and_a_skill_its_file_names_taint_nothing(world: World) -> None:
    a_policy(world, a_rule("careful", "refuse", tainted=True))
    own = started(world, "keeper")
    a_modelled_turn(world, own, ("oz__skill", {"name": "depot/careful"}))
    named = started(world, "reader")
    a_modelled_turn(world, named, ("oz__skill", {"name": "depot/spare"}), ("oz__skill", {"name": "manners"}))
    for job in (own, named):
        assert see(world, Job, job).tainted_at is None
        (look,) = a_modelled_turn(world, job, ("depot__look", {}))
        assert look.state == CallState.QUEUED
    (read, look) = a_modelled_turn(
        world, started(world, "reader"), ("oz__skill", {"name": "depot/careful"}), ("depot__look", {})
    )
    assert (read.state, look.state) == (CallState.SUCCEEDED, CallState.REFUSED), "the control"


@pytest.mark.rule("M3")
def test_another_plugins_manual_taints_also_where_the_agents_own_file_names_it(world: World, tmp_path: Path) -> None:
    a_policy(world, a_rule("careful", "refuse", tainted=True))
    reader = FILES["crew"]["agents/reader.yaml"]
    assert "functions: [depot.look, depot.note]" in reader
    named = reader.replace("depot.look, depot.note", "elsewhere.*").replace("depot/spare", "depot/spare, depot/careful")
    quiet = named.partition("rehearsal:\n")[0] + 'rehearsal:\n  - say: "nothing"\n'
    registered(world.tenant, tmp_path, "crew", {"agents/reader.yaml": quiet})
    assert index_of(world, "reader")["depot/careful"] == (True, ()), "it may call nothing of the tool"
    control, job = started(world, "reader"), started(world, "reader")
    a_modelled_turn(world, control, ("oz__skill", {"name": "depot/spare"}))
    assert see(world, Job, control).tainted_at is None, "in no manual, and named by the agent's author"
    (read,) = a_modelled_turn(world, job, ("oz__skill", {"name": "depot/careful"}))
    assert told(world, read.pk) == CAREFUL
    assert see(world, Job, job).tainted_by == "depot/careful"
    (event,) = events_of(world, job, "job.tainted")
    assert event.data == {"skill": "depot/careful", "tools": []}


# --- lazy loading ------------------------------------------------------------------------------------------------


@pytest.mark.rule("T4")
@pytest.mark.rule("T1")
def test_a_lazy_agent_carries_what_finds_and_calls_and_no_definition_of_what_it_is_granted(world: World) -> None:
    assert carried_by(world, "finder") == ["oz.find", "oz.call", "oz.skill"]
    assert carried_by(world, "keeper") == ["oz.skill"]
    assert carried_by(world, "stranger") == []
    eager = started(world, "keeper")
    (call,) = a_modelled_turn(world, eager, (FIND.name, {"query": "take"}))
    assert (call.state, call.reason) == (CallState.ERRORED, Why.NO_SUCH_FUNCTION)
    assert "tool_loading: lazy" in call.detail


@pytest.mark.rule("T4")
def test_what_is_found_is_the_definition_as_it_would_be_sent(world: World) -> None:
    (call,) = a_rehearsed_turn(world, started(world, "finder"))
    assert (call.state, call.tool_slug, call.function_name) == (CallState.SUCCEEDED, "oz", "find")
    with db.read(world.tenant):
        row = Function.objects.get(model_name="depot__take")
    sent = as_sent(Definition(row.model_name, row.description, row.input_schema))
    assert sent in call.result_text
    found = json.loads(call.result_text)
    assert [one["name"] for one in found["functions"]] == ["depot__take"]
    assert found["of"] == 2, "what it is not granted is not there"
    job = started(world, "finder")
    nothing, every, odd = a_modelled_turn(
        world, job, (FIND.name, {"query": "zebra"}), (FIND.name, {"query": "", "limit": 1}), (FIND.name, {"limit": 0})
    )
    assert json.loads(nothing.result_text)["functions"] == []
    assert "nothing fits" in nothing.result_text
    assert [one["name"] for one in json.loads(every.result_text)["functions"]] == ["depot__look"]
    assert json.loads(every.result_text)["also_fit"] == ["depot__take"]
    assert odd.reason == Why.BAD_ARGUMENTS


@pytest.mark.rule("T4")
@pytest.mark.rule("A4")
def test_a_call_through_oz_call_is_the_function_itself_to_policy_person_key_trace_and_tool(world: World) -> None:
    job = started(world, "finder")
    a_rehearsed_turn(world, job)
    (call,) = a_rehearsed_turn(world, job)
    assert (call.tool_slug, call.function_name, call.kind) == ("depot", "take", "destructive")
    assert (call.model_name, call.asked_through) == ("depot__take", CALL.name)
    assert (call.arguments, call.key) == ({"pieces": 3}, f"{ids.show(ids.JOB, job)}/2")
    assert call.state == CallState.HELD
    hold = the_hold(world, call.pk)
    assert hold.rule_id == "default-destructive"
    with db.write(world.tenant):
        holds.answer(hold_id=hold.pk, answer=Answer.APPROVE, person=world.person)
    order = an_order(world, call.pk)
    assert (order.function, order.arguments, order.key) == ("take", {"pieces": 3}, call.key)
    settle(world, order, an_outcome(End.ANSWERED, text="Taken."))
    with db.read(world.tenant):
        past = history.past_turns(see_job(job))
    (asked,) = past[-1].calls
    assert (asked.model_name, asked.text) == (CALL.name, "Taken.")
    assert asked.arguments == {"function": "depot__take", "arguments": {"pieces": 3}}
    a_rehearsed_turn(world, job)
    assert see(world, Job, job).output == "Taken."


@pytest.mark.rule("T4")
@pytest.mark.parametrize(
    ("arguments", "reason", "said"),
    [
        ({"function": "depot__tak"}, Why.NO_SUCH_FUNCTION, "near it: depot__take"),
        ({"function": "depot__note"}, Why.NO_SUCH_FUNCTION, "depot__note: there is no function of that name"),
        ({"function": "oz__skill"}, Why.NO_SUCH_FUNCTION, "call it itself"),
        ({"function": "oz__call", "arguments": {"function": "depot__take"}}, Why.NO_SUCH_FUNCTION, "call it itself"),
        ({"function": "depot__take"}, Why.BAD_ARGUMENTS, "'pieces' is a required property"),
        ({"function": "depot__take", "arguments": {"pieces": 2**53}}, Why.BAD_ARGUMENTS, "$.pieces"),
        ({"function": "depot__take", "arguments": "pieces: 1"}, Why.BAD_ARGUMENTS, "not JSON"),
        ({"function": "depot__take", "arguments": {"pieces": 1}, "kind": "read"}, Why.BAD_ARGUMENTS, "kind"),
        ({"function": "depot__take", "arguments": [1]}, Why.BAD_ARGUMENTS, "$.arguments"),
        ({"arguments": {}}, Why.BAD_ARGUMENTS, "'function' is a required property"),
        ('{"function": "depot__take", "function": "depot__look"}', Why.BAD_ARGUMENTS, "$.function"),
        ([], Why.BAD_ARGUMENTS, "must be an object"),
    ],
)
def test_what_oz_call_cannot_call_is_told_to_the_model(world: World, arguments: object, reason: Why, said: str) -> None:
    (call,) = a_modelled_turn(world, started(world, "finder"), (CALL.name, arguments))
    assert (call.state, call.reason) == (CallState.ERRORED, reason)
    assert said in told(world, call.pk)


@pytest.mark.rule("T4")
@pytest.mark.parametrize("written", [{"pieces": 1}, '{"pieces": 1.0}'], ids=["an object", "JSON text"])
@pytest.mark.parametrize("name", ["depot__take", "depot.take"])
def test_a_function_is_called_by_either_name_with_arguments_written_either_way(
    world: World, name: str, written: object
) -> None:
    (call,) = a_modelled_turn(
        world, started(world, "finder"), (CALL.name, json.dumps({"function": name, "arguments": written}))
    )
    assert (call.model_name, call.arguments, call.state) == ("depot__take", {"pieces": 1}, CallState.HELD)


@pytest.mark.rule("T4")
def test_limits_switches_and_refusals_reach_what_is_called_through_oz_call(world: World) -> None:
    a_policy(world, a_rule("no-look", "refuse", function="look"))
    job = started(world, "finder")
    (look,) = a_modelled_turn(world, job, (CALL.name, {"function": "depot__look"}))
    assert (look.state, look.rule_id) == (CallState.REFUSED, "no-look")
    a_switch(world, Scope.FUNCTION, "depot.take")
    (take,) = a_modelled_turn(world, job, (CALL.name, {"function": "depot__take", "arguments": {"pieces": 1}}))
    assert (take.state, take.reason) == (CallState.REFUSED, Why.KILL_SWITCH)
    find = (FIND.name, {"query": "take"})
    a_modelled_turn(world, job, find)
    a_modelled_turn(world, job, find, find)
    assert (see(world, Job, job).state, see(world, Job, job).failure_kind) == (JobState.FAILED, "limit_calls")


@pytest.mark.rule("T4")
@pytest.mark.rule("L3")
def test_a_held_call_through_oz_call_is_cancelled_with_its_job(world: World) -> None:
    job = started(world, "finder")
    (take,) = a_modelled_turn(world, job, (CALL.name, {"function": "depot__take", "arguments": {"pieces": 1}}))
    cancelled(world, job)
    assert see(world, Call, take.pk).state == CallState.CANCELED


@pytest.mark.rule("U2")
@pytest.mark.rule("T4")
def test_what_is_read_only_is_tried_again_when_it_was_called_through_oz_call(world: World) -> None:
    (look,) = a_modelled_turn(world, started(world, "finder"), (CALL.name, {"function": "depot__look"}))
    assert made(world, look.pk, an_outcome(End.BROKEN)).state == CallState.RETRYING


# --- small words of these tests ----------------------------------------------------------------------------------


def the_claim(world: World, call: UUID) -> object | None:
    """The call claimed, or None when it may not begin."""
    return work.start(tenant=world.tenant, call_id=call, node_id=world.node, attempt_id=ids.new())


def taint(world: World, job: UUID) -> None:
    """The job's manual, read while one of its calls waits to be tried again, as by a call side by side."""
    with db.write(world.tenant) as now:
        Job.objects.filter(pk=job).update(tainted_at=now, tainted_by="depot/careful")


def see_job(job: UUID) -> Job:
    return Job.objects.get(pk=job)
