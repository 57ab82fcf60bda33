"""An agent on a model continues as new: its run is summed up, and nothing that the studio knows is lost (RULES G3)."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from approvals.operations import later
from approvals.operations.decide import Person
from approvals.rules.deciding import Decider
from base import db, ids
from catalog.models import Agent, Scope
from catalog.rules.agents import AgentSpec, Limits, RunBounds
from catalog.rules.kept_agents import as_json
from jobs.models import Call, Event, Job, Turn
from jobs.operations import nodes, turns
from jobs.operations.asking_again import Asked
from jobs.operations.holds import Answer
from jobs.queries import runs
from jobs.rules import texts
from jobs.rules.orders import End
from jobs.rules.runs import LONGEST_SUMMARY
from jobs.rules.states import CallState, Effect, JobState, TurnState
from jobs.rules.turns import TurnAnswer, TurnFailed, TurnOrder, TurnOutcome, Wanted
from tenants.operations import masks
from tenants.rules.who import Actor
from tests.builders import (
    World,
    a_job,
    a_node,
    a_policy,
    a_rule,
    a_switch,
    a_turn,
    a_world,
    an_order,
    an_outcome,
    answered,
    cancelled,
    made,
    see,
    settle,
    swept,
    the_hold,
)
from tests.manuals import a_world_with_manuals
from tests.pages.visitors import job_url, text_of, visitor

pytestmark = pytest.mark.usefixtures("database")
USED = {"input_tokens": 120, "output_tokens": 30}
SUMMARY = TurnAnswer("Two orders are noted, o-3 is left.", usage=USED)


def a_modelled_world(*, turns: int = 1, tokens: int = 0, **limits: Any) -> World:
    """A world whose agent asks a model, and whose runs are over after so many answers, or tokens."""
    world = a_world()
    on_a_model(world, "clerk", RunBounds(tokens, turns), Limits(**limits))
    return world


def on_a_model(world: World, name: str, runs: RunBounds, limits: Limits | None = None) -> None:
    with db.write(world.tenant):
        row = Agent.objects.get(name=name)
        functions = tuple(row.definition["functions"])
        spec = AgentSpec(
            name, model="openai-chat:some-model", functions=functions, limits=limits or Limits(), runs=runs
        )
        row.definition = as_json(spec)
        row.save()


def asked(world: World, job: UUID) -> TurnOrder:
    order = turns.start(tenant=world.tenant, job_id=job, node_id=world.node)
    assert order is not None, "no turn of the job is due"
    return order


def said(world: World, order: TurnOrder, outcome: TurnOutcome) -> bool:
    return turns.settle(tenant=world.tenant, turn_id=order.turn_id, asked=order.asked, outcome=outcome)


def summed_up(world: World, job: UUID, outcome: TurnOutcome = SUMMARY) -> TurnOrder:
    order = asked(world, job)
    assert order.sums_up, "the model was not asked for a summary"
    assert said(world, order, outcome)
    return order


def noted(world: World, job: UUID, *functions: str) -> list[UUID]:
    """A turn of the job whose calls are all answered."""
    calls = a_turn(world, job, *[(name, {"text": name}) for name in functions])
    for call in calls:
        made(world, call, an_outcome(End.ANSWERED, text="kept"))
    return calls


@pytest.mark.rule("G3")
@pytest.mark.rule("K2")
def test_a_run_that_is_full_is_summed_up_and_the_next_counts_from_one_under_keys_of_its_own() -> None:
    world = a_modelled_world(turns=2)
    job = a_job(world)
    noted(world, job, "note", "look")
    noted(world, job, "note")
    summary = summed_up(world, job)
    assert (summary.number, len(summary.past)) == (3, 2), "it reads the whole of its run"
    first = asked(world, job)
    assert (first.number, first.past, first.sums_up) == (4, (), False)
    record, own = first.begun_with
    assert own.endswith(SUMMARY.say)
    assert record.count("\n- shop__note") == 2
    assert 'shop__note {"text": "note"} (conversation 1, call 1): It was answered: kept' in record
    assert "shop__look" not in record, "what only reads is the summary's to tell"
    assert said(world, first, TurnAnswer("", (Wanted("shop__note", {}),)))
    shown = ids.show(ids.JOB, job)
    with db.read(world.tenant):
        keys = list(Call.objects.filter(job_id=job).order_by("run_number", "activity").values_list("key", flat=True))
        events = [one.data["run"] for one in Event.objects.filter(job_id=job, kind="job.continued")]
    assert (keys, events) == ([f"{shown}/1", f"{shown}/2", f"{shown}/3", f"{shown}/anr1/1"], [1])


def test_the_third_run_is_told_of_the_calls_of_both_before_it_and_given_the_newest_summary_alone() -> None:
    world = a_modelled_world()
    job = a_job(world)
    for words in ("First.", "Second."):
        noted(world, job, "note")
        summed_up(world, job, TurnAnswer(words))
    record, own = asked(world, job).begun_with
    assert own.endswith("Second.") and "First." not in own
    assert "(conversation 1, call 1)" in record and "(conversation 2, call 1)" in record


@pytest.mark.rule("G3")
def test_what_nobody_knows_what_a_person_said_and_what_was_not_let_run_is_told_by_the_studio_itself() -> None:
    world = a_modelled_world()
    job = a_job(world)
    denied, unknown, stopped = a_turn(world, job, "refund", "note", "ship")
    answered(world, the_hold(world, denied).pk, Answer.DENY, "Ask finance first")
    made(world, unknown, an_outcome(End.BROKEN))
    answered(world, the_hold(world, unknown).pk, Answer.HAPPENED, "It is in the ledger")
    # `ship` was called without the order that it needs, which is known: nothing was made
    assert see(world, Call, stopped).state == CallState.ERRORED
    summed_up(world, job)
    (call,) = a_turn(world, job, "note")
    order = an_order(world, call)
    a_switch(world, Scope.FUNCTION, "shop.note")
    settle(world, order, an_outcome(End.STOPPED))
    assert see(world, Call, call).effect == Effect.MAYBE
    summed_up(world, job, TurnAnswer("All is well, nothing happened."))
    record = asked(world, job).begun_with[0]
    for words in ("Ask finance first", "It is in the ledger", "stopped by a kill switch", "It may have acted before"):
        assert words in record
    assert "shop__ship" not in record


def test_of_very_many_calls_the_unclear_ones_are_told_and_the_others_counted() -> None:
    world = a_modelled_world(turns=2, calls=200)
    job = a_job(world)
    (denied,) = a_turn(world, job, "refund")
    answered(world, the_hold(world, denied).pk, Answer.DENY, "no")
    noted(world, job, *["note"] * 45)
    summed_up(world, job)
    record = asked(world, job).begun_with[0]
    assert record.count("\n- ") == 40
    assert "\n- shop__refund" in record
    assert "shop__note 6 times" in record


def test_of_very_many_calls_the_record_has_first_what_nobody_knows_of(monkeypatch: pytest.MonkeyPatch) -> None:
    world = a_modelled_world(turns=2)
    job = a_job(world)
    (call,) = a_turn(world, job, "note")
    order = an_order(world, call)
    a_switch(world, Scope.FUNCTION, "shop.note")
    settle(world, order, an_outcome(End.STOPPED))
    assert see(world, Call, call).effect == Effect.MAYBE
    for failing in a_turn(world, job, "charge", "charge", "charge"):
        made(world, failing, an_outcome(End.ANSWERED, text="no such account", is_error=True))
    summed_up(world, job)
    with db.read(world.tenant):
        row = Job.objects.get(pk=job)
        monkeypatch.setattr(runs, "MOST_LINES", 1)
        one_line = runs.begun_with(row, 1)[0]
        monkeypatch.setattr(runs, "MOST_LINES", 0)
        none = runs.begun_with(row, 1)[0]
    assert "\n- shop__note" in one_line and "shop__charge 3 times" in one_line
    assert "nobody knows" not in one_line and "was answered: shop__" not in one_line
    assert "Of 1 of them nobody knows whether they happened: do not make them again." in none


@pytest.mark.rule("M3")
def test_a_taint_stays_with_the_job_and_the_next_run_is_told_of_it(tmp_path: Path) -> None:
    world = a_world_with_manuals(tmp_path)
    a_policy(world, a_rule("careful", "ask", tainted=True))
    on_a_model(world, "reader", RunBounds(0, 1))
    job = a_job(World(world.tenant, world.person, world.node, agent="reader"))
    order = asked(world, job)
    said(world, order, TurnAnswer("", (Wanted("oz__skill", {"name": "depot/careful"}),)))
    summed_up(world, job)
    order = asked(world, job)
    assert "depot/careful, another plugin's manual" in order.begun_with[0]
    said(world, order, TurnAnswer("", (Wanted("depot__look", {}),)))
    with db.read(world.tenant):
        assert Call.objects.get(job_id=job, function_name="look").state == CallState.HELD


@pytest.mark.parametrize(("bound", "full"), [(161, False), (160, True), (150, True), (0, False)])
def test_a_run_is_as_long_as_its_newest_request_and_answer_with_the_results_since(bound: int, full: bool) -> None:
    world = a_modelled_world(turns=0, tokens=bound)
    job = a_job(world)
    order = asked(world, job)
    said(world, order, TurnAnswer("", (Wanted("shop__look", {}),), usage=USED | {"lost_input_tokens": 5_000}))
    with db.read(world.tenant):
        call = Call.objects.get(job_id=job)
    made(world, call.pk, an_outcome(End.ANSWERED, text="x" * 40))
    assert asked(world, job).sums_up is full


def test_a_run_that_is_long_from_the_first_is_summed_up_once_it_has_grown_by_a_quarter_of_its_bound() -> None:
    world = a_modelled_world(turns=0, tokens=1_000)
    job = a_job(world)
    for _ in range(2):  # the second run is no shorter at its beginning, and is not summed up any sooner
        for sent in (990, 1_100, 1_220):
            order = asked(world, job)
            assert not order.sums_up
            usage = {"input_tokens": sent, "output_tokens": 20}
            said(world, order, TurnAnswer("", (Wanted("shop__look", {}),), usage=usage))
            with db.read(world.tenant):
                look = Call.objects.get(job_id=job, state=CallState.QUEUED)
            made(world, look.pk, an_outcome(End.ANSWERED, text=""))
        summed_up(world, job)
    assert see(world, Job, job).run_number == 2


def test_where_no_provider_counts_its_length_is_estimated() -> None:
    world = a_modelled_world(turns=0, tokens=1_000)
    job = a_job(world)
    (call,) = a_turn(world, job, "look")
    made(world, call, an_outcome(End.ANSWERED, text="x" * 4_000))
    assert asked(world, job).sums_up


REFUSED = TurnFailed("the provider refused the request (400): too long")
IN_VAIN = [
    (REFUSED, "refused the request (400)"),
    (TurnAnswer("I look first.", (Wanted("shop__note", {}),), usage=USED), "called functions instead"),
    (TurnAnswer("x" * (LONGEST_SUMMARY + 1), usage=USED), "32,001 characters long"),
]


@pytest.mark.rule("G3")
@pytest.mark.parametrize(("outcome", "why"), IN_VAIN)
def test_a_summary_that_cannot_be_used_loses_nothing_and_the_third_in_vain_fails_the_job(
    outcome: TurnOutcome, why: str
) -> None:
    world = a_modelled_world()
    job = a_job(world)
    for time in (1, 2, 3):
        order = asked(world, job)
        assert (order.sums_up, len(order.past)) == (False, time - 1), "its work goes on, with all it had"
        assert said(world, order, TurnAnswer("", (Wanted("shop__note", {}),)))
        with db.read(world.tenant):
            note = Call.objects.get(job_id=job, state=CallState.QUEUED)
        made(world, note.pk, an_outcome(End.ANSWERED))
        assert see(world, Job, job).state == JobState.RUNNING
        turn = see(world, Turn, summed_up(world, job, outcome).turn_id)
        assert turn.state == TurnState.FAILED
        assert why in turn.error
    row = see(world, Job, job)
    assert (row.state, row.failure_kind, row.run_number) == (JobState.FAILED, "model_error", 0)
    assert "3 times" in row.detail and why in row.detail
    with db.read(world.tenant):
        assert Call.objects.filter(job_id=job).count() == 3, "no call of a summary is made"


def test_what_a_summary_took_counts_as_any_turn_does_and_the_last_turn_is_not_spent_on_one() -> None:
    world = a_modelled_world()
    on_a_model(world, "clerk", RunBounds(0, 1), Limits(turns=4, tokens=301))
    job = a_job(world)
    noted(world, job, "note")
    summed_up(world, job, TurnAnswer("So far.", usage={"input_tokens": 250, "output_tokens": 50}))
    noted(world, job, "note")
    order = asked(world, job)
    assert (order.number, order.sums_up) == (4, False), "the last turn that it may take"
    said(world, order, TurnAnswer("", (Wanted("shop__look", {}),), usage={"input_tokens": 1}))
    with db.read(world.tenant):
        look = Call.objects.get(job_id=job, function_name="look")
    made(world, look.pk, an_outcome(End.ANSWERED))
    assert turns.start(tenant=world.tenant, job_id=job, node_id=world.node) is None
    assert see(world, Job, job).failure_kind == "limit_turns"
    on_a_model(world, "clerk", RunBounds(0, 1), Limits(turns=40, tokens=300))
    other = a_job(world)
    noted(world, other, "note")
    summed_up(world, other, TurnAnswer("So far.", usage={"input_tokens": 250, "output_tokens": 50}))
    assert turns.start(tenant=world.tenant, job_id=other, node_id=world.node) is None
    assert see(world, Job, other).failure_kind == "limit_tokens"


def an_expired_refund(world: World, job: UUID, move_clock: Callable[[timedelta], None]) -> UUID:
    """The question of a call of the job that nobody answered in time."""
    (call,) = a_turn(world, job, "refund")
    hold = the_hold(world, call).pk
    with db.write(world.tenant):
        Job.objects.update(deadline_at=None)
    move_clock(timedelta(hours=24, seconds=1))
    swept(lose_nodes=False)
    return hold


def asked_again(world: World, hold: UUID) -> Asked:
    who = Person(Decider(world.person, "admin"), Actor("pat", "link, 127.0.0.1", world.person))
    return later.ask_again(tenant=world.tenant, hold_id=hold, person=who)


@pytest.mark.rule("A8")
def test_a_call_that_a_person_asks_for_again_meanwhile_keeps_its_run_until_it_is_told(
    move_clock: Callable[[timedelta], None],
) -> None:
    world = a_modelled_world()
    job = a_job(world)
    hold = an_expired_refund(world, job, move_clock)
    order = asked(world, job)
    assert order.sums_up
    again = asked_again(world, hold)
    said(world, order, SUMMARY)
    assert see(world, Job, job).run_number == 0
    answered(world, the_hold(world, again.call_id).pk, Answer.DENY, "never")
    order = asked(world, job)
    assert (order.sums_up, len(order.notes), len(order.past)) == (False, 1, 1)
    said(world, order, TurnAnswer("", (Wanted("shop__look", {}),)))
    with db.read(world.tenant):
        look = Call.objects.get(job_id=job, function_name="look")
    made(world, look.pk, an_outcome(End.ANSWERED))
    summed_up(world, job)
    assert "never" in asked(world, job).begun_with[0]


@pytest.mark.rule("A8")
def test_a_call_that_a_person_asks_for_again_after_the_job_went_on_anew_is_told_to_its_model(
    move_clock: Callable[[timedelta], None],
) -> None:
    world = a_modelled_world()
    job = a_job(world)
    hold = an_expired_refund(world, job, move_clock)
    summed_up(world, job)
    assert see(world, Job, job).run_number == 1
    order = asked(world, job)
    again = asked_again(world, hold)
    assert (again.job_id, again.new_job, see(world, Call, again.call_id).run_number) == (job, False, 1)
    said(world, order, TurnAnswer("I wait."))
    answered(world, the_hold(world, again.call_id).pk, Answer.DENY, "never")
    order = asked(world, job)
    assert len(order.notes) == 1 and "never" in order.notes[0]


@pytest.mark.parametrize("words", ["All is well.", "  "], ids=["that cannot be masked", "of blanks"])
def test_a_summary_that_cannot_be_kept_loses_nothing_of_its_run(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = a_modelled_world()
    job = a_job(world)
    noted(world, job, "note")
    order = asked(world, job)
    assert order.sums_up
    with monkeypatch.context() as patch:
        if words.strip():
            patch.setattr(masks, "of", cannot_mask)
        said(world, order, TurnAnswer(words))
    row = see(world, Job, job)
    assert (row.run_number, row.state, see(world, Turn, order.turn_id).state) == (0, JobState.RUNNING, TurnState.FAILED)
    assert (asked(world, job).sums_up, see(world, Job, job).run_number) == (False, 0)


def cannot_mask(tenant: UUID) -> Any:
    raise masks.CannotMask("a secret does not open")


@pytest.mark.rule("G2")
def test_a_summary_that_was_lost_with_its_node_is_asked_again_and_one_run_follows() -> None:
    world = a_modelled_world()
    job = a_job(world)
    noted(world, job, "note")
    lost = World(world.tenant, world.person, a_node("lost"))
    first = asked(lost, job)
    nodes.leave(node_id=lost.node)
    swept(lose_nodes=False)
    again = asked(world, job)
    assert (again.number, again.asked, again.sums_up) == (first.number, 2, True)
    assert said(world, again, SUMMARY)
    assert not said(world, first, TurnAnswer("late")), "the lost one's answer moves nothing"
    row = see(world, Job, job)
    assert (row.run_number, row.turns_made) == (1, 2)
    assert see(world, Turn, again.turn_id).usage["lost_input_tokens"] == 120


@pytest.mark.rule("L3")
def test_a_job_that_is_cancelled_while_it_is_summed_up_does_not_continue() -> None:
    world = a_modelled_world()
    job = a_job(world)
    noted(world, job, "note")
    order = asked(world, job)
    cancelled(world, job)
    said(world, order, SUMMARY)
    row = see(world, Job, job)
    assert (row.state, row.run_number) == (JobState.CANCELED, 0)


def test_its_page_says_which_turn_is_the_summary_and_what_the_next_run_began_with() -> None:
    world = a_modelled_world()
    job = a_job(world)
    noted(world, job, "note")
    summed_up(world, job, TurnAnswer("<b>Two</b> orders are noted."))
    noted(world, job, "look")
    client = visitor(world)
    newest = text_of(client.get(job_url(job)))
    assert "What run 2 began with" in newest
    assert "record of 1 earlier call" in newest
    assert "&lt;b&gt;Two" in client.get(job_url(job)).content.decode()
    earlier = text_of(client.get(job_url(job, "?run=1")))
    assert "What run" not in earlier
    assert "summary" in earlier


def test_the_words_that_ask_for_a_summary_say_what_it_must_hold() -> None:
    for words in ("call no function", "what is left to do", "must not be done again"):
        assert words in texts.SUM_UP
