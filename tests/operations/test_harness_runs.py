"""A harness's program asks that its job continues as new: a fresh start of it, under keys of their own (RULES G3)."""

import json
from typing import Any
from uuid import UUID

import pytest

from base import db, ids
from base.canonical import digest_of_any
from catalog.models import Agent
from catalog.rules.agents import AgentSpec, Limits
from catalog.rules.kept_agents import as_json
from jobs.models import Call, Event, Job, Session
from jobs.operations import continuing, harness, nodes, outside
from jobs.operations.holds import Answer
from jobs.operations.outside import Client, NotTaken
from jobs.rules.orders import End
from jobs.rules.sessions import SessionEnd, SessionOrder
from jobs.rules.states import JobState, SessionState
from tenants.operations import masks
from tenants.operations.invitations import hash_of
from tenants.queries.tokens import bearer
from tests.builders import (
    World,
    a_client,
    a_job,
    a_node,
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
from tests.harnesses import a_harness, a_token, called, key
from tests.pages.visitors import job_url, text_of, visitor

pytestmark = pytest.mark.usefixtures("database")
WELL = SessionEnd(0, "so far\n")


def a_program_world(**limits: Any) -> World:
    """A world whose agent is a program that takes a month as its input."""
    world = a_harness()
    with db.write(world.tenant):
        spec = AgentSpec(
            "clerk",
            harness=("/bin/false",),
            functions=("shop.*",),
            input={"month": "06", "size": 5},
            input_schema={"size": {"type": "integer"}},
            limits=Limits(**limits),
        )
        Agent.objects.update(definition=as_json(spec))
    return world


def the_newest(world: World, job: UUID) -> Session:
    with db.read(world.tenant):
        return Session.objects.filter(job_id=job).latest("run_number")


def begun(world: World, job: UUID, letter: str, node: UUID | None = None) -> tuple[SessionOrder, Client]:
    """The newest session of the job, claimed, and its program."""
    session, token = the_newest(world, job).pk, a_token(letter)
    order = harness.start(tenant=world.tenant, session_id=session, node_id=node or world.node, token=token)
    assert order is not None, "the session cannot be claimed"
    found = bearer(hash_of(token))
    assert found is not None
    return order, Client(world.tenant, found.token_id, found.name, found.agent, None)


def over(world: World, order: SessionOrder, how: SessionEnd = WELL, node: UUID | None = None) -> bool:
    return harness.ended(
        tenant=world.tenant,
        session_id=order.session_id,
        node_id=node or world.node,
        incarnation=order.incarnation,
        how=how,
    )


def continues(client: Client, **arguments: Any) -> str:
    return continuing.continue_as_new(client=client, arguments=arguments)


def given(order: SessionOrder) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(order.given)
    return found


def test_what_it_leaves_for_its_next_run_is_kept_without_secrets_or_not_at_all_and_noted_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = a_program_world()
    job = a_job(world)
    _, client = begun(world, job, "a")
    made(world, called(client, "charge", {"amount": 5}), an_outcome(End.ANSWERED))
    with monkeypatch.context() as patch:

        def cannot(tenant: UUID) -> Any:
            raise masks.CannotMask("a secret does not open")

        patch.setattr(masks, "of", cannot)
        for arguments in ({"note": "June is done."}, {"input": {"month": "07"}}):
            with pytest.raises(NotTaken, match="cannot be kept just now"):
                continues(client, **arguments)
    assert the_newest(world, job).continues is None
    for note in ("June is done.", "June is done.", "July, too."):
        continues(client, note=note)
    assert the_newest(world, job).continues == {"input": {}, "note": "July, too.", "times": 2}
    with db.read(world.tenant):
        assert Event.objects.filter(job_id=job, kind="session.continues").count() == 1


@pytest.mark.rule("G3")
@pytest.mark.rule("K3")
def test_its_next_run_counts_from_one_under_keys_of_its_own_and_is_given_what_the_one_before_left() -> None:
    world = a_program_world()
    job = a_job(world)
    order, client = begun(world, job, "a")
    assert set(given(order)) == {"job", "agent", "instructions", "input"}
    five = {"amount": 5}
    first = [called(client, "charge", five), called(client, "note", five), called(client, "look", five)]
    for call in first:
        made(world, call, an_outcome(End.ANSWERED, text="done"))
    assert "exit code 0" in continues(client, input={"month": "07"}, note="June is done.")
    assert the_newest(world, job).state == SessionState.RUNNING
    assert see(world, Job, job).run_number == 0, "not while its program runs"
    assert over(world, order)
    row = see(world, Job, job)
    assert (row.state, row.run_number, row.input) == (JobState.RUNNING, 1, {"month": "07", "size": 5})
    assert bearer(hash_of(a_token("a"))) is None
    fresh, again = begun(world, job, "b")
    told = given(fresh)
    assert (told["run"], told["note"], told["input"]["month"], told["earlier_left_out"]) == (
        1,
        "June is done.",
        "07",
        0,
    )
    assert [(one["function"], one["effect"], one["text"]) for one in told["earlier"]] == [
        ("shop__charge", "made", "done"),
        ("shop__note", "made", "done"),
    ]
    keys = [key(world, called(again, name, five)) for name in ("charge", "charge", "note")]
    shown, digest = ids.show(ids.JOB, job), digest_of_any(five)[:32]
    assert [key(world, call) for call in first[:2]] == [f"{shown}/s1/charge#{digest}/1", f"{shown}/2"]
    assert keys == [
        f"{shown}/r1/s1/charge#{digest}/1",
        f"{shown}/r1/s1/charge#{digest}/2",
        f"{shown}/anr1/3",
    ]
    assert over(world, fresh, SessionEnd(0, "all done"))
    with db.read(world.tenant):
        events = list(Event.objects.filter(job_id=job).order_by("seq"))
    assert [one.seq for one in events] == list(range(1, len(events) + 1))
    assert [one.data["run"] for one in events if one.kind == "job.continued"] == [1]


def test_what_a_program_is_told_of_each_earlier_call_is_short() -> None:
    world = a_program_world()
    job = a_job(world)
    order, client = begun(world, job, "a")
    made(world, called(client, "note", {"text": "y" * 9_000}), an_outcome(End.ANSWERED, text="x" * 20_000))
    continues(client)
    over(world, order)
    (one,) = given(begun(world, job, "b")[0])["earlier"]
    assert (one["arguments"], one["text"]) == (None, "x" * 2_000 + "…")


def test_a_call_that_waits_for_a_person_is_waited_for_and_told_to_the_next_run() -> None:
    world = a_program_world()
    job = a_job(world)
    order, client = begun(world, job, "a")
    held = called(client, "refund")
    continues(client)
    assert over(world, order)
    assert see(world, Job, job).state == JobState.WAITING
    answered(world, the_hold(world, held).pk, Answer.DENY, "not this one")
    assert (see(world, Job, job).state, see(world, Job, job).run_number) == (JobState.RUNNING, 1)
    (one,) = given(begun(world, job, "b")[0])["earlier"]
    assert (one["state"], one["call"]) == ("REFUSED", ids.show(ids.CALL, held))
    assert "not this one" in one["text"]


def test_one_whose_outcome_nobody_knows_is_asked_about_first_and_told() -> None:
    world = a_program_world()
    job = a_job(world)
    order, client = begun(world, job, "a")
    call = called(client, "note")
    continues(client)
    made(world, call, an_outcome(End.BROKEN))
    assert over(world, order)
    assert see(world, Job, job).run_number == 0, "a person is asked about it"
    answered(world, the_hold(world, call).pk, Answer.HAPPENED, "seen in the ledger")
    (one,) = given(begun(world, job, "b")[0])["earlier"]
    assert (one["state"], one["effect"]) == ("HAPPENED", "made")
    assert "seen in the ledger" in one["text"]


@pytest.mark.rule("K4")
@pytest.mark.rule("K6")
def test_a_lost_program_that_had_asked_is_started_again_in_its_own_run_and_asks_anew() -> None:
    world = a_program_world()
    job, lost = a_job(world), a_node("lost")
    order, client = begun(world, job, "a", lost)
    first = called(client, "charge")
    made(world, first, an_outcome(End.ANSWERED))
    continues(client, note="one")
    nodes.leave(node_id=lost)
    swept(lose_nodes=False)
    row = the_newest(world, job)
    assert (row.run_number, row.incarnation, row.continues) == (0, 2, None)
    fresh, again = begun(world, job, "b")
    repeated = called(again, "charge")
    assert key(world, repeated) == key(world, first)
    made(world, repeated, an_outcome(End.ANSWERED))
    assert not over(world, order, node=lost), "the lost one's end moves nothing"
    continues(again, note="two")
    assert over(world, fresh)
    assert not over(world, fresh), "ended once"
    with db.read(world.tenant):
        assert list(Session.objects.filter(job_id=job).order_by("run_number").values_list("run_number", flat=True)) == [
            0,
            1,
        ]
    lost_too = a_node("lost-too")
    order, client = begun(world, job, "c", lost_too)
    made(world, called(client, "charge"), an_outcome(End.ANSWERED))
    nodes.leave(node_id=lost_too)
    swept(lose_nodes=False)
    once_more, client = begun(world, job, "d")
    assert given(once_more) == given(order), "a fresh start of the second run is given what the first start of it was"
    assert key(world, called(client, "charge")).endswith("/r1/s1/charge#" + digest_of_any({})[:32] + "/1")


def test_what_it_asked_for_last_counts_and_one_that_fails_or_asks_nothing_ends_the_job() -> None:
    world = a_program_world()
    job = a_job(world)
    order, client = begun(world, job, "a")
    made(world, called(client, "look"), an_outcome(End.ANSWERED))
    continues(client, input={"month": "07"})
    continues(client, input={"size": 9})
    over(world, order)
    assert see(world, Job, job).input == {"month": "06", "size": 9}
    order, client = begun(world, job, "b")
    over(world, order, SessionEnd(0, "finished"))
    row = see(world, Job, job)
    assert (row.state, row.output, row.run_number) == (JobState.COMPLETED, "finished", 1)
    failing = a_job(world)
    order, client = begun(world, failing, "c")
    made(world, called(client, "look"), an_outcome(End.ANSWERED))
    continues(client)
    over(world, order, SessionEnd(1))
    assert (see(world, Job, failing).state, see(world, Job, failing).run_number) == (JobState.FAILED, 0)


def test_it_changes_only_inputs_that_the_agent_takes_and_only_after_a_call_of_its_run() -> None:
    world = a_program_world()
    job = a_job(world)
    order, client = begun(world, job, "a")
    with pytest.raises(NotTaken, match="made no call yet"):
        continues(client)
    made(world, called(client, "look"), an_outcome(End.ANSWERED))
    for arguments, why in (
        ({"input": {"year": "2026"}}, "no input named 'year'"),
        ({"input": {"size": "big"}}, "not what the agent takes"),
        ({"note": 5}, "note"),
        ({"more": 1}, "more"),
        ({"note": "x" * 32_001}, "note"),
    ):
        with pytest.raises(NotTaken, match=why):
            continues(client, **arguments)
    over(world, order)
    assert see(world, Job, job).state == JobState.COMPLETED
    with pytest.raises(NotTaken, match="session of this token is over"):
        continues(client)


def test_a_program_that_changes_its_mind_without_end_is_told_that_its_last_word_stands() -> None:
    world = a_program_world()
    job, lost = a_job(world), a_node("lost")
    _, client = begun(world, job, "a", lost)
    made(world, called(client, "look"), an_outcome(End.ANSWERED))
    for number in range(100):
        continues(client, note=str(number))
    assert "exit code 0" in continues(client, note="99"), "the same once more is no change"
    with pytest.raises(NotTaken, match=r"100 times.*What it said last stands"):
        continues(client, note="100")
    assert the_newest(world, job).continues == {"input": {}, "note": "99", "times": 100}
    nodes.leave(node_id=lost)
    swept(lose_nodes=False)
    order, again = begun(world, job, "b")
    made(world, called(again, "look"), an_outcome(End.ANSWERED))
    continues(again, note="anew")
    over(world, order)
    assert given(begun(world, job, "c")[0])["note"] == "anew"


def test_it_is_offered_to_programs_alone() -> None:
    world = a_program_world()
    _, client = begun(world, a_job(world), "a")
    assert "oz__continue" in {one.definition.name for one in outside.offered(client)}
    person = a_client(world)
    assert "oz__continue" not in {one.definition.name for one in outside.offered(person)}
    with pytest.raises(NotTaken):
        continues(person)


def test_its_limit_of_calls_is_the_jobs_and_not_each_runs() -> None:
    world = a_program_world(calls=2)
    job = a_job(world)
    for letter in "ab":
        order, client = begun(world, job, letter)
        made(world, called(client, "look"), an_outcome(End.ANSWERED))
        continues(client)
        over(world, order)
    _, client = begun(world, job, "c")
    with pytest.raises(NotTaken, match=r"limits\.calls"):
        called(client, "look")
    assert see(world, Job, job).failure_kind == "limit_calls"


@pytest.mark.rule("L3")
@pytest.mark.parametrize("where", ["asked", "starting", "running"])
def test_a_cancel_reaches_it_before_and_after_it_continued(where: str) -> None:
    """CASES L06."""
    world = a_program_world()
    job = a_job(world)
    order, client = begun(world, job, "a")
    made(world, called(client, "look"), an_outcome(End.ANSWERED))
    continues(client)
    attempt = None
    if where != "asked":
        over(world, order)
    if where == "running":
        order, client = begun(world, job, "b")
        attempt = an_order(world, called(client, "look"))
    cancelled(world, job)
    if attempt is not None:
        settle(world, attempt, an_outcome(End.STOPPED))
    if where != "starting":
        over(world, order, SessionEnd(0, stopped=True))
    assert see(world, Job, job).state == JobState.CANCELED
    assert see(world, Job, job).run_number == (0 if where == "asked" else 1)
    assert the_newest(world, job).state == SessionState.STOPPED


def test_its_page_shows_each_run_with_its_session_and_the_note_it_began_with() -> None:
    world = a_program_world()
    job = a_job(world)
    order, client = begun(world, job, "a")
    made(world, called(client, "note"), an_outcome(End.ANSWERED))
    browser = visitor(world)
    continues(client, note="<i>June</i> is done.")
    assert "continues as new when it has ended" in text_of(browser.get(job_url(job)))
    over(world, order)
    _, client = begun(world, job, "b")
    called(client, "export")
    newest = text_of(browser.get(job_url(job)))
    assert "Trace of run 2 of 2" in newest and "shop.export" in newest and "shop.note" not in newest
    assert "&lt;i&gt;June" in newest
    earlier = text_of(browser.get(job_url(job, "?run=1")))
    assert "shop.note" in earlier and "continued as new" in earlier and "is done." not in earlier
    with db.read(world.tenant):
        assert Call.objects.filter(job_id=job).count() == 2
