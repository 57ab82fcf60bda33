"""The jobs of outside clients, without a wire: how they begin, go on and end, and what a cancel does to each call."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest

from base import db
from catalog.models import Agent, PluginVersion
from catalog.rules.agents import AgentSpec, Limits
from catalog.rules.kept_agents import as_json
from jobs.models import Call, Hold, Job, Turn
from jobs.operations import outside
from jobs.operations.holds import Answer
from jobs.operations.outside import Client, NotTaken
from jobs.queries import outside as queries
from jobs.rules.limits import CLIENT_IDLE
from jobs.rules.orders import End
from jobs.rules.states import CallState, JobState
from jobs.rules.why import Why
from tests.builders import (
    a_client,
    a_world,
    an_order,
    an_outcome,
    answered,
    asked,
    cancelled,
    made,
    see,
    settle,
    swept,
    the_hold,
    told,
)
from tests.races import Side

pytestmark = pytest.mark.usefixtures("database")


@pytest.mark.rule("G7")
def test_a_clients_job_goes_on_from_call_to_call_and_ends_half_an_hour_after_the_last(
    move_clock: Callable[[timedelta], None],
) -> None:
    world = a_world()
    client = a_client(world)
    first = made(world, asked(client), an_outcome(End.ANSWERED))
    job = see(world, Job, first.job_id)
    assert (job.state, job.turn_due_at) == (JobState.RUNNING, None)
    move_clock(CLIENT_IDLE - timedelta(minutes=1))
    assert swept(lose_nodes=False) == 0
    second = asked(client, "look")
    made(world, second, an_outcome(End.ANSWERED))
    move_clock(CLIENT_IDLE - timedelta(minutes=1))
    assert swept(lose_nodes=False) == 0, "the second call has put its end off"
    assert see(world, Job, job.pk).state == JobState.RUNNING
    move_clock(timedelta(minutes=2))
    assert swept(lose_nodes=False) == 1
    ended = see(world, Job, job.pk)
    assert (ended.state, ended.reason) == (JobState.COMPLETED, Why.CLIENT_IDLE)
    with db.read(world.tenant):
        assert not Turn.objects.exists()
        assert {call.job_id for call in Call.objects.all()} == {job.pk}
    assert see(world, Call, asked(client)).job_id != job.pk


def test_a_job_whose_call_waits_for_a_person_does_not_end_for_want_of_calls(
    move_clock: Callable[[timedelta], None],
) -> None:
    world = a_world()
    client = a_client(world)
    call = asked(client, "refund")
    job = see(world, Call, call).job_id
    assert see(world, Job, job).state == JobState.WAITING
    move_clock(CLIENT_IDLE * 3)
    swept(lose_nodes=False)
    assert see(world, Job, job).state == JobState.WAITING
    answered(world, the_hold(world, call).pk, Answer.DENY, "no")
    swept(lose_nodes=False)
    assert see(world, Job, job).state == JobState.RUNNING, "its client has half an hour again"


@pytest.mark.rule("G7")
def test_calls_that_come_at_once_share_one_job() -> None:
    world = a_world()
    client = a_client(world)
    sides = [Side(lambda n=n: asked(client, request=f"n:{n}")).start() for n in range(8)]  # type: ignore[misc]
    calls = [side.join() for side in sides]
    assert len({see(world, Call, call).job_id for call in calls}) == 1
    assert sorted(see(world, Call, call).activity for call in calls) == list(range(1, 9))


def test_sessions_and_tokens_keep_their_jobs_apart() -> None:
    world = a_world()
    mine = a_client(world)
    sessions = [Client(world.tenant, mine.token_id, "mine", world.agent, world.person, name) for name in ("a", "b")]
    jobs = [see(world, Call, asked(one)).job_id for one in (mine, *sessions, a_client(world, name="other"))]
    assert len(set(jobs)) == 4
    with pytest.raises(NotTaken, match="no open job"):
        asked(a_client(world, name="third"), job=jobs[0])


def test_a_limit_of_calls_refuses_the_next_and_leaves_the_job_as_it_is() -> None:
    world = a_world(limits=Limits(calls=2))
    client = a_client(world)
    calls = [asked(client), asked(client)]
    with pytest.raises(NotTaken, match="has made the 2 calls that its agent may make"):
        asked(client)
    job = see(world, Job, see(world, Call, calls[0]).job_id)
    assert (job.state, job.calls_made) == (JobState.RUNNING, 2)


def test_a_stopped_job_takes_no_call_and_the_next_one_opens_another() -> None:
    world = a_world()
    client = a_client(world)
    call = asked(client)
    order = an_order(world, call)
    job = see(world, Call, call).job_id
    cancelled(world, job)
    with pytest.raises(NotTaken, match="is being stopped"):
        asked(client)
    settle(world, order, an_outcome(End.STOPPED))
    assert see(world, Job, job).state == JobState.CANCELED
    assert see(world, Call, asked(client)).job_id != job


def test_a_clients_job_goes_on_with_its_agents_newest_version() -> None:
    world = a_world()
    client = a_client(world)
    before = see(world, Call, asked(client)).job_id
    with db.write(world.tenant):
        old = Agent.objects.get()
        spec = AgentSpec(world.agent, model="rehearsal", functions=("shop.look",))
        version = PluginVersion.objects.get()
        newest = Agent(tenant_id=world.tenant, plugin_version=version, name="other", definition=as_json(spec))
        newest.save(force_insert=True)
        Agent.objects.filter(pk=old.pk).update(name="old")
        Agent.objects.filter(pk=newest.pk).update(name=world.agent)
    call = see(world, Call, asked(client, "note"))
    assert (call.job_id, call.state, call.reason) == (before, CallState.ERRORED, Why.NO_SUCH_FUNCTION)


@pytest.mark.rule("G6")
@pytest.mark.parametrize("closed", [False, True], ids=["cancelled", "closed"])
@pytest.mark.parametrize("state", ["held", "queued", "running", "retrying", "unknown", "over"])
def test_what_a_cancel_and_a_closed_stream_do_to_a_call(state: str, closed: bool) -> None:
    world = a_world(on_unknown="ask")
    client = a_client(world)
    call = asked(client, {"held": "refund", "retrying": "look"}.get(state, "note"))
    if state == "running":
        an_order(world, call)
    elif state in ("retrying", "unknown"):
        made(world, call, an_outcome(End.BROKEN))
    elif state == "over":
        made(world, call, an_outcome(End.ANSWERED))
    before = see(world, Call, call)
    outside.cancel_call(client=client, call_id=call, closed=closed)
    after = see(world, Call, call)
    if state == "running":
        assert after.state == CallState.CANCELLING
    elif closed or state in ("unknown", "over"):
        assert (after.state, after.seq) == (before.state, before.seq), "it was to be spared"
    else:
        assert (after.state, after.reason) == (CallState.CANCELED, Why.CLIENT_CANCELLED)
        assert "The client cancelled this call" in told(world, call)
        with db.read(world.tenant):
            assert not Hold.objects.filter(closed_at__isnull=True).exists()
        assert see(world, Job, after.job_id).state == JobState.RUNNING


def test_a_running_call_that_its_client_cancelled_ends_as_that_and_its_job_goes_on() -> None:
    world = a_world()
    client = a_client(world)
    call = asked(client)
    order = an_order(world, call)
    assert outside.cancel_call(client=a_client(world, name="other"), call_id=call) is None
    assert see(world, Call, call).state == CallState.RUNNING, "nobody stops another token's call"
    outside.cancel_call(client=client, call_id=call)
    settle(world, order, an_outcome(End.STOPPED))
    ended = see(world, Call, call)
    assert (ended.state, ended.reason, ended.effect) == (CallState.CANCELED, Why.CLIENT_CANCELLED, "maybe")
    assert see(world, Job, ended.job_id).state == JobState.RUNNING
    assert "may have acted" in told(world, call)


@pytest.mark.parametrize("function", ["look", "note"])
def test_a_server_that_could_not_be_reached_and_one_that_broke_off_are_told_apart(
    function: str, move_clock: Callable[[timedelta], None]
) -> None:
    """CASES G14: what never went out was not made; a write that did may have acted, and nobody is asked about it."""
    world = a_world()
    client = a_client(world)
    results = []
    for end in (End.NOT_MADE, End.BROKEN):
        call = asked(client, function)
        while see(world, Call, call).state in (CallState.QUEUED, CallState.RETRYING):
            made(world, call, an_outcome(end, went_out=end is End.BROKEN))
            move_clock(timedelta(seconds=30))
        found = queries.answered(world.tenant, client.token_id, call)
        assert found is not None and found.is_over and found.is_error
        results.append((see(world, Call, call).effect, found.text))
    (unsent, never), (sent, broke) = results
    assert (unsent, sent) == ("none", "maybe" if function == "note" else "none")
    assert never != broke and "timed out" not in never + broke
    assert ("Nobody knows whether this call happened" in broke) is (function == "note")


def test_a_request_id_names_a_call_only_while_it_names_one(move_clock: Callable[[timedelta], None]) -> None:
    world = a_world()
    client = a_client(world)

    def named(request: str, whose: Client = client) -> UUID | None:
        return outside.call_of_request(client=whose, request=request, within=60)

    first = asked(client, "refund", "n:7")
    assert named("n:7") == first
    assert named("s:7") is None
    second = asked(client, "refund", "n:7")
    assert named("n:7") is None, "two clients of one token, both at 7"
    outside.cancel_call(client=client, call_id=first)
    assert named("n:7") == second
    sessions = [Client(world.tenant, client.token_id, "mine", world.agent, world.person, name) for name in ("a", "b")]
    in_a = asked(sessions[0], "refund", "n:7")
    assert (named("n:7", sessions[0]), named("n:7", sessions[1])) == (in_a, None)
    move_clock(timedelta(minutes=5))
    assert named("n:7") is None, "a client that was started anew counts from 1 again"
    assert named("n:7", sessions[0]) == in_a
