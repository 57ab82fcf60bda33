"""The agents a job can be started of."""

from dataclasses import dataclass
from uuid import UUID

from base import db
from catalog.queries.kept_agents import kept_agents
from catalog.rules.agents import AgentSpec


@dataclass(frozen=True, slots=True)
class AgentChoice:
    """One agent of a current plugin version. Without a `spec` its file cannot be read, for the reason `why_not`."""

    name: str
    plugin: str
    spec: AgentSpec | None
    why_not: str = ""


def agent_choices(tenant: UUID) -> list[AgentChoice]:
    """All agents of current plugin versions, by name."""
    with db.read(tenant):
        found = kept_agents()
    choices = [AgentChoice(one.name, one.plugin, one.spec) for one in found.readable]
    choices += [AgentChoice(one.name, one.plugin, None, one.why) for one in found.unreadable]
    return sorted(choices, key=lambda one: one.name)
