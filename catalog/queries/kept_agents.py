"""The agents of current plugin versions, each read back from what is kept of it, or told why it cannot be.

One that cannot be read is shown with the reason wherever agents are, and keeps nothing of any other from being shown.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from base import db
from catalog.models import Agent, Stage
from catalog.rules.agents import AgentSpec
from catalog.rules.kept_agents import Unreadable, from_json


@dataclass(frozen=True, slots=True)
class KeptAgent:
    """One agent that can be read."""

    name: str
    plugin: str
    spec: AgentSpec


@dataclass(frozen=True, slots=True)
class UnreadableAgent:
    """One agent that cannot be read, and why. It grants nothing and no job of it starts."""

    name: str
    plugin: str
    why: str


@dataclass(frozen=True, slots=True)
class KeptAgents:
    """The agents of current plugin versions, by name: those that can be read, and those that cannot."""

    readable: tuple[KeptAgent, ...]
    unreadable: tuple[UnreadableAgent, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all of them."""
        return tuple(sorted({one.name for one in self.readable} | {one.name for one in self.unreadable}))


def kept_agents(only: str = "") -> KeptAgents:
    """Every agent of current plugin versions, or those of this name. Demands an open read."""
    rows = Agent.objects.filter(plugin_version__stage=Stage.CURRENT)
    if only:
        rows = rows.filter(name=only)
    found = rows.order_by("name").values_list("name", "plugin_version__plugin__name", "definition")
    return _sorted(found)


def unreadable_agent(tenant: UUID, name: str) -> UnreadableAgent | None:
    """The agent of this name where it cannot be read."""
    with db.read(tenant):
        return next(iter(kept_agents(name).unreadable), None) if name else None


def _sorted(rows: Iterable[tuple[str, str, object]]) -> KeptAgents:
    readable, unreadable = [], []
    for name, plugin, definition in rows:
        try:
            readable.append(KeptAgent(name, plugin, from_json(definition)))
        except Unreadable as error:
            unreadable.append(UnreadableAgent(name, plugin, str(error)))
    return KeptAgents(tuple(readable), tuple(unreadable))
