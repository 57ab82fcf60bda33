"""One agent whose kept file cannot be read: it is shown so everywhere, and everything else goes on."""

from typing import Any

import pytest
from django.db.models import F, JSONField, Value

from base import db
from catalog.models import Agent, PluginVersion
from catalog.rules.agents import AgentSpec
from catalog.rules.kept_agents import Unreadable, as_json, from_json
from jobs.models import Job, Starter
from jobs.operations import turns
from jobs.operations.intake import CannotStart, start_job
from jobs.rules.states import JobState
from jobs.rules.turns import TurnAnswer, Wanted
from tenants.models import Gate
from tests.builders import World, a_job, a_world, cancelled, see
from tests.catalogs import a_skill, an_agent_of
from tests.pages.visitors import plain, text_of, visitor

WHOLE = as_json(AgentSpec("clerk", model="rehearsal", functions=("shop.*",)))
HOSTILE: tuple[Any, ...] = (
    None,
    [],
    "clerk",
    {},
    {"name": "clerk"},
    WHOLE | {"surprise": 1},
    WHOLE | {"functions": "shop.*"},
    WHOLE | {"functions": [1]},
    WHOLE | {"functions": None},
    WHOLE | {"skills": {"a": 1}},
    WHOLE | {"limits": {"calls": "many"}},
    WHOLE | {"limits": {"calls": True}},
    WHOLE | {"limits": 7},
    WHOLE | {"input": ["text"]},
    WHOLE | {"rehearsal": [{"say": 1, "calls": []}]},
    WHOLE | {"rehearsal": [{"say": "", "calls": [{"tool": "shop"}]}]},
    WHOLE | {"rehearsal": ["<script>\u202e"]},
)
NAMED = (
    "/catalog/",
    "/catalog/plugins/shop/",
    "/catalog/agents/",
    "/catalog/agents/broken/",
    "/catalog/functions/",
    "/catalog/functions/?agent=broken",
    "/catalog/functions/shop.look/",
    "/catalog/skills/",
    "/catalog/skills/shop/manners/",
    "/catalog/findings/",
    "/jobs/new/",
)
OTHER = (
    "/",
    "/catalog/agents/clerk/",
    "/catalog/agents/clerk/request.json",
    "/catalog/tools/",
    "/catalog/tools/shop/",
    "/catalog/tools/shop/listings/",
    "/catalog/plugins/",
    "/catalog/plugins/shop/remove/",
    "/catalog/policy/",
    "/catalog/policy/waiting/",
    "/catalog/policy/simulate/",
    "/catalog/switches/",
    "/settings/secrets/",
    "/api/v1/catalog/agents/clerk/tokens",
)


def keep(world: World, name: str, definition: Any) -> None:
    """Have this kept of an agent."""
    with db.write(world.tenant):
        Agent.objects.filter(name=name).update(definition=Value(definition, JSONField()))


def test_what_is_not_as_it_was_written_is_unreadable_and_says_why() -> None:
    assert from_json(WHOLE).functions == ("shop.*",), "the control"
    for definition in HOSTILE:
        with pytest.raises(Unreadable, match="load its plugin again"):
            from_json(definition)


@pytest.mark.usefixtures("database")
def test_an_unreadable_agent_breaks_no_page_and_is_named_with_the_reason() -> None:
    world = a_world()
    a_skill(world, "manners", "How to ask.", "Politely.")
    an_agent_of(world, "broken", "shop.*")
    client = visitor(world)
    for path in NAMED:  # the control, and nothing of it is kept in mind later
        assert "unreadable" not in text_of(client.get(path)), path
    for n, definition in enumerate(HOSTILE[1:4]):
        keep(world, "broken", definition)
        with db.write(world.tenant):  # as any change of the policy does: what a process keeps in mind is read anew
            Gate.objects.update(version=F("version") + 1)
        for path in (*NAMED, *OTHER) if n == 0 else ("/catalog/agents/", "/jobs/new/"):
            answer = client.get(path)
            assert answer.status_code == 200, (path, definition)
            if path in NAMED:
                assert "broken" in text_of(answer), path
        assert "is unreadable:" in text_of(client.get("/catalog/agents/"))
    assert "load its plugin again" in text_of(client.get("/catalog/agents/broken/"))
    assert client.get("/catalog/agents/broken/request.json").status_code == 404
    told = client.get("/api/v1/catalog/agents/broken/tokens")
    assert (told.status_code, told.json()["detail"].startswith("The agent broken is unreadable:")) == (409, True)
    refused = client.post("/jobs/new/", {"agent": "broken"})
    assert refused.status_code == 422
    assert "load its plugin again" in text_of(refused)


@pytest.mark.usefixtures("database")
def test_a_manifest_that_is_not_as_it_was_written_breaks_no_page() -> None:
    world = a_world()
    a_skill(world, "manners", "How to ask.", "Politely.")
    tools = [{"id": "shop", "env": 3, "manual": ["manners", 7]}, {"manual": 1}, "shop", {"id": None}]
    for manifest in (None, {"tools": tools, "tool_tokens": "many"}):
        with db.write(world.tenant):
            PluginVersion.objects.filter(plugin__name="shop").update(manifest=Value(manifest, JSONField()))
        for path in OTHER:
            assert visitor(world).get(path).status_code == 200, (path, manifest)
    assert "manual of shop" in plain(text_of(visitor(world).get("/catalog/skills/"))), "what can be read of it is"


@pytest.mark.usefixtures("database")
def test_jobs_of_an_unreadable_agent_fail_and_those_of_others_go_on() -> None:
    world = a_world()
    an_agent_of(world, "other", "shop.*")
    asked, waiting, mine = a_job(world), a_job(world), a_job(world)
    turn = turns.start(tenant=world.tenant, job_id=asked, node_id=world.node)
    assert turn is not None
    keep(world, "clerk", WHOLE | {"functions": [1]})
    answer = TurnAnswer("", (Wanted("shop__look", {}, ""),))
    assert turns.settle(tenant=world.tenant, turn_id=turn.turn_id, asked=turn.asked, outcome=answer)
    assert turns.start(tenant=world.tenant, job_id=waiting, node_id=world.node) is None
    for job in (asked, waiting):
        row = see(world, Job, job)
        assert (row.state, row.failure_kind) == (JobState.FAILED, "agent_error")
        assert "functions is not text" in row.detail
    with pytest.raises(CannotStart, match="load its plugin again"):
        start_job(tenant=world.tenant, agent="clerk", given={}, starter=Starter.PERSON, person=world.person)
    cancelled(world, mine)
    others = start_job(tenant=world.tenant, agent="other", given={}, starter=Starter.PERSON, person=world.person)
    assert turns.start(tenant=world.tenant, job_id=others, node_id=world.node) is not None
