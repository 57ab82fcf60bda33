"""The agents a job can be started of."""

from dataclasses import dataclass
from uuid import UUID

from base import db
from catalog.models import Agent, Stage


@dataclass(frozen=True, slots=True)
class AgentChoice:
    """One agent of a current plugin version; `takes` names its input."""

    name: str
    takes: str


def agent_choices(tenant: UUID) -> list[AgentChoice]:
    """All agents of current plugin versions, by name."""
    with db.read(tenant):
        rows = Agent.objects.filter(plugin_version__stage=Stage.CURRENT).order_by("name")
        return [AgentChoice(row.name, ", ".join(row.definition.get("input") or {})) for row in rows]
