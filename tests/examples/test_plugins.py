"""The example plugins' files are taken as they are, and their agents' rehearsals fit their servers."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from catalog.rules.agents import fill_turn
from catalog.rules.grants import Name, granted, idle_grants, listing_problems
from catalog.rules.templates import Values
from tests.examples.serving import EXAMPLES, plugin, run, serving

NAMES = ("billing", "bookshop", "clock", "repo", "spend")


@pytest.mark.parametrize("name", NAMES)
def test_every_call_of_a_rehearsal_is_granted_listed_and_fits_its_schema(name: str, tmp_path: Path):
    subprocess.run([sys.executable, EXAMPLES / "repo" / "make_demo_repo.py", tmp_path / "demo" / "repo"], check=True)
    spec = plugin(name)
    schemas: dict[str, Any] = {}

    async def talk() -> None:
        async with serving(name, tmp_path) as client:
            schemas.update({tool.name: tool.input_schema for tool in (await client.list_tools()).tools})

    run(talk)
    (tool,) = spec.tools
    available = [Name(tool.id, function) for function in schemas]
    assert listing_problems(tool.id, schemas) == ()
    assert set(tool.check) <= set(schemas)
    for agent in spec.agents:
        assert idle_grants(agent.functions, available) == ()
        allowed = granted(agent.functions, available)
        for turn in agent.rehearsal:
            values = Values(home=str(tmp_path), defaults=agent.input, results=["read"] * 20, last="read")
            for call in fill_turn(turn, values).calls:
                assert Name(call.tool, call.function) in allowed
                jsonschema.validate(call.arguments, schemas[call.function])


def test_the_examples_show_what_the_demo_needs():
    agents = {agent.name: agent for name in NAMES for agent in plugin(name).agents}
    assert max(len(turn.calls) for turn in agents["shopkeeper"].rehearsal) == 3
    assert "export_ledger" in [call.function for turn in agents["auditor"].rehearsal for call in turn.calls]
    assert "git_reset" in [call.function for turn in agents["git-clerk"].rehearsal for call in turn.calls]
    (note,) = [c for turn in agents["billing-clerk"].rehearsal for c in turn.calls if c.function == "note"]
    assert note.arguments["drill"] == "die_after_write"
