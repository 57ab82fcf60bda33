"""Which kill switch is on for a piece of work. Read under the gate (MACHINES 2)."""

from typing import Final

from base import prepared
from base.prepared import Table
from catalog.models import KillSwitch, Scope

_SWITCHES: Final = Table(KillSwitch)
_ON: Final = f"SELECT {_SWITCHES.columns('s')} FROM catalog_killswitch s WHERE s.off_at IS NULL AND "  # noqa: S608 - only names of ours
_OVER_AGENT: Final = f"(s.scope = '{Scope.TENANT}' OR s.scope = '{Scope.AGENT}' AND s.target = %s"
_OVER_CALL: Final = (
    f"{_OVER_AGENT} OR s.scope = '{Scope.TOOL}' AND s.target = %s OR s.scope = '{Scope.FUNCTION}' AND s.target = %s"
)
_FIRST: Final = ") ORDER BY s.id LIMIT 1"


def over_agent(agent: str) -> KillSwitch | None:
    """The switch that stops this agent or its whole tenant, if one is on."""
    return _first(_OVER_AGENT, agent)


def over_call(*, agent: str, tool: str, function: str) -> KillSwitch | None:
    """The switch that stops a call of this function by this agent, if one is on."""
    return _first(_OVER_CALL, agent, tool, f"{tool}.{function}")


def _first(covers: str, *targets: str) -> KillSwitch | None:
    found = prepared.fetch_one(_ON + covers + _FIRST, targets)
    return None if found is None else _SWITCHES.row(found)
