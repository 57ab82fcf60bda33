"""A node that asks real models of a provider on this machine: whole jobs, cancels, and the node's own end."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.conf import LazySettings
from django.db import connection

from base import db
from catalog.models import Agent, Credential
from catalog.operations import connections
from catalog.operations.connections import Given
from catalog.rules.agents import AgentSpec, RunBounds
from catalog.rules.kept_agents import as_json
from jobs.models import Call, Job, Turn
from jobs.rules import texts
from jobs.rules.states import JobState, TurnState
from jobs.tasks.host import Host
from tenants.rules.who import SYSTEM
from tests.builders import World, a_job, a_world, cancelled, see
from tests.servers.providers import Provider, Says, provider
from tests.waiting import until

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.faults]
NOWHERE = ("nothing__there", {"text": "milk"})  # answered at once, with an error that the model reads


@contextmanager
def a_host(home: Path, settings: LazySettings, name: str = "here") -> Iterator[Host]:
    settings.OZ0_HOME = home
    node = Host(name=name, call_slots=2, turn_slots=2)
    node.start()
    try:
        yield node
    finally:
        node.stop(grace=0.2)
        connection.close()


@pytest.fixture
def host(tmp_path: Path, settings: LazySettings) -> Iterator[Host]:
    with a_host(tmp_path, settings) as node:
        yield node


def a_modelled_world(here: Provider, model: str = "openai-chat:some-model", **more: Any) -> World:
    """Its agent asks this provider, over the connection that is called as its kind."""
    world = a_world()
    given = {"allowed": [here.place], "given": Given(Credential.BEARER, "the-key"), "actor": SYSTEM}
    connections.make(tenant=world.tenant, name="openai", url=f"{here.url}/v1", **given)
    with db.write(world.tenant):
        spec = AgentSpec("clerk", model=model, functions=("shop.*",), instructions="Be brief.", **more)
        Agent.objects.filter(name="clerk").update(definition=as_json(spec))
    return world


def over(world: World, job: UUID, seconds: float = 40) -> Job:
    until(lambda: see(world, Job, job).state in ("COMPLETED", "FAILED", "CANCELED"), "it never ended", seconds)
    return see(world, Job, job)


def the_turn(world: World, job: UUID) -> Turn:
    with db.read(world.tenant):
        return Turn.objects.filter(job_id=job).latest("number")


def test_a_job_on_a_model_waits_out_its_providers_limit_reads_its_results_and_ends(host: Host) -> None:
    plan = [
        Says("I look.", calls=(NOWHERE, NOWHERE)),
        Says(status=429, headers={"Retry-After": "1"}, error="slow down"),
        Says("There is no such thing."),
    ]
    with provider(*plan) as here:
        world = a_modelled_world(here)
        job = a_job(world)
        row = over(world, job)
    assert (row.state, row.output) == (JobState.COMPLETED, "There is no such thing.")
    first, _, last = (one.body for one in here.asked)
    assert [tool["function"]["name"] for tool in first["tools"]] == sorted(
        tool["function"]["name"] for tool in first["tools"]
    )
    results = [one["content"] for one in last["messages"] if one["role"] == "tool"]
    assert len(results) == 2
    assert all("there is no function of that name" in text for text in results)
    assert here.asked[0].headers["authorization"] == "Bearer the-key"
    with db.read(world.tenant):
        assert list(Turn.objects.order_by("number").values_list("asked", flat=True)) == [1, 2]
        assert Call.objects.count() == 2


@pytest.mark.rule("G3")
def test_a_job_whose_conversation_is_full_is_summed_up_and_goes_on_with_the_summary_and_the_studios_record(
    host: Host,
) -> None:
    plan = [
        Says("I look.", calls=(NOWHERE,)),
        Says("cut short", stop="length"),
        Says("I look once more.", calls=(NOWHERE,)),
        Says("There is no such function; nothing is left to do."),
        Says("Done."),
    ]
    with provider(*plan) as here:
        world = a_modelled_world(here, runs=RunBounds(tokens=150))
        row = over(world, job := a_job(world))
    assert (row.state, row.output, row.run_number, row.turns_made) == (JobState.COMPLETED, "Done.", 1, 5)
    work, cut, _, summary, fresh = (one.body for one in here.asked)
    assert cut["messages"][-1]["content"] == summary["messages"][-1]["content"] == texts.SUM_UP
    assert (cut["tool_choice"], "tool_choice" in work) == ("none", True)
    assert work["tool_choice"] != "none"
    assert cut["tools"] == work["tools"], "the calls before it are of these"
    said = [(one["role"], one["content"]) for one in fresh["messages"]]
    assert said[:2] == [("system", "Be brief."), ("user", "Begin.")]
    told = " ".join(str(content) for _, content in said[2:])
    assert "no call of the earlier conversations changed anything" in told
    assert "nothing is left to do" in told and "I look" not in told
    with db.read(world.tenant):
        turns = list(Turn.objects.filter(job_id=job).order_by("number"))
    assert [one.state for one in turns] == ["answered", "failed", "answered", "answered", "answered"]
    assert [one.sums_up for one in turns] == [False, True, False, True, False]
    assert all(one.usage["input_tokens"] == 120 for one in turns), "also what was of no use is counted"


@pytest.mark.rule("L2")
def test_a_cancel_does_not_wait_for_the_model_and_its_words_so_far_were_shown(host: Host) -> None:
    never = threading.Event()
    with provider(Says("a long story", hold_after=450, wait=never)) as here:
        world = a_modelled_world(here)
        job = a_job(world)
        until(here.arrived.is_set, "the provider was never asked", 20)
        until(lambda: the_turn(world, job).say != "", "nothing was shown of what it said", 20)
        assert the_turn(world, job).say in "a long story"
        assert cancelled(world, job) == JobState.CANCELLING
        row = over(world, job, 10)
        gone = here.left.wait(10)
        never.set()
    assert row.state == JobState.CANCELED
    assert the_turn(world, job).state == TurnState.FAILED
    assert gone, "the request went on although nobody waited for it"


@pytest.mark.rule("L11")
def test_a_node_that_ends_gives_its_question_back_and_another_asks_it_again(
    tmp_path: Path, settings: LazySettings
) -> None:
    never = threading.Event()
    with provider(Says("late", wait=never), Says("Done.")) as here:
        world = a_modelled_world(here)
        with a_host(tmp_path, settings):
            job = a_job(world)
            until(here.arrived.is_set, "the provider was never asked", 20)
        turn = the_turn(world, job)
        assert (turn.state, turn.asked, turn.usage) == (TurnState.BUSY, 1, {"lost_requests": 1})
        with a_host(tmp_path, settings, "another"):
            row = over(world, job)
        never.set()
    assert (row.state, row.output) == (JobState.COMPLETED, "Done.")
    assert the_turn(world, job).usage["lost_input_tokens"] == 120


def test_a_model_without_its_connection_fails_the_job_and_says_where_to_make_it(host: Host) -> None:
    with provider(Says("no")) as here:
        world = a_modelled_world(here, "anthropic:some-model")
        row = over(world, a_job(world))
    assert (row.state, row.failure_kind) == (JobState.FAILED, "model_error")
    assert "There is no connection anthropic" in row.detail
    assert not here.asked
