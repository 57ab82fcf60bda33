"""A framework's agent as a harness: its own clients of model and tools, both through the way out of its room."""

import textwrap
from pathlib import Path
from typing import Any

import pytest

from base import db
from catalog.models import Agent, Credential, PluginVersion
from catalog.operations import connections
from catalog.operations.connections import Given
from catalog.rules.agents import AgentSpec
from catalog.rules.kept_agents import as_json
from jobs.models import Job, Starter
from jobs.operations import intake
from jobs.rules.states import CallState, JobState
from jobs.tasks.host import Host
from tenants.rules.who import SYSTEM
from tests.builders import see
from tests.gateway.conftest import Shop, Web
from tests.servers.providers import Says, provider
from tests.waiting import until

pytestmark = [pytest.mark.timeout(240)]

PROGRAM = textwrap.dedent("""
    import asyncio, json, os, sys
    from pydantic_ai import Agent
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    async def main():
        given = json.load(sys.stdin)
        headers = {"Authorization": "Bearer " + os.environ["OZ0_TOKEN"]}
        tools = MCPToolset(os.environ["OZ0_MCP_URL"], headers=headers, read_timeout=300)
        server = OpenAIProvider(base_url=os.environ["OZ0_MODEL_URL"], api_key=os.environ["OZ0_MODEL_KEY"])
        model = OpenAIChatModel("some-model", provider=server)
        agent = Agent(model, instructions=given["instructions"], toolsets=[tools])
        async with agent.run_stream(given["input"]["task"]) as answer:
            print(await answer.get_output(), os.environ["OZ0_MODEL_KEY"])

    asyncio.run(main())
""")


def test_a_frameworks_agent_runs_as_a_harness_on_its_own_model_with_its_calls_as_steps_of_the_job(
    web: Web, shop: Shop, host: Host, tmp_path: Path, settings: Any
) -> None:
    settings.OZ0_URL, world = web.url, shop.world
    folder = tmp_path / "plugin"
    folder.mkdir()
    (folder / "program.py").write_text(PROGRAM)
    with provider(Says(calls=(("shop__note", {"text": "hello"}),)), Says("It is noted.")) as model:
        given: dict[str, Any] = {"given": Given(Credential.BEARER, "the-models-key"), "actor": SYSTEM}
        connections.make(tenant=world.tenant, name="brain", url=f"{model.url}/v1", allowed=[model.place], **given)
        spec = AgentSpec(
            world.agent,
            harness=("python", "program.py"),
            functions=("shop.*",),
            instructions="Note what you are told.",
            input={"task": ""},
            connection="brain",
        )
        with db.write(world.tenant):
            PluginVersion.objects.update(folder=str(folder))
            Agent.objects.update(definition=as_json(spec))
        job = intake.start_job(
            tenant=world.tenant, agent=world.agent, given={"task": "hello"}, starter=Starter.PERSON, person=world.person
        )
        until(lambda: see(world, Job, job).ended_at is not None, "it never ended", 120)
    over = see(world, Job, job)
    assert over.state == JobState.COMPLETED, over.detail
    assert over.output.startswith("It is noted.") and "the-models-key" not in over.output
    (call,) = shop.calls()
    assert (call.job_id, call.state, call.model_name) == (job, CallState.SUCCEEDED, "shop__note")
    assert [line["text"] for line in shop.did()] == ["hello"]
    assert {one.headers["authorization"] for one in model.asked} == {"Bearer the-models-key"}
    assert any("Note what you are told." in str(one.body) for one in model.asked)
