"""The agents a job can be started of."""

from dataclasses import dataclass
from uuid import UUID

from base import db
from catalog.queries.kept_agents import kept_agents


@dataclass(frozen=True, slots=True)
class AgentChoice:
    """One agent of a current plugin version; `takes` names its input. `why_not` says why its file cannot be read."""

    name: str
    takes: str
    why_not: str = ""


def agent_choices(tenant: UUID) -> list[AgentChoice]:
    """All agents of current plugin versions, by name."""
    with db.read(tenant):
        found = kept_agents()
    choices = [AgentChoice(one.name, ", ".join(one.spec.input)) for one in found.readable]
    choices += [AgentChoice(one.name, "", one.why) for one in found.unreadable]
    return sorted(choices, key=lambda one: one.name)
