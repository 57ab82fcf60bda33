"""What every model request of an agent carries, in the order it is sent (RULES C6, T1)."""

import json
from collections.abc import Sequence

from catalog.rules.agents import AgentSpec
from catalog.rules.estimates import Definition, as_sent
from catalog.rules.platform import carried
from catalog.rules.skills import IndexLine


def definitions(agent: AgentSpec, granted: Sequence[Definition], index: Sequence[IndexLine]) -> tuple[Definition, ...]:
    """The definitions: the granted functions unless it loads them lazily, then the platform's own."""
    lazy = agent.tool_loading == "lazy"
    return (*(() if lazy else granted), *carried(lazy=lazy, index=index))


def as_text(agent: AgentSpec, sent: Sequence[Definition]) -> str:
    """Instructions and definitions as JSON, each definition byte for byte as it is counted."""
    instructions = json.dumps(agent.instructions, ensure_ascii=False)
    return f'{{"instructions":{instructions},"tools":[{",".join(as_sent(one) for one in sent)}]}}'
