"""Which switch is on for a piece of work. Read under the gate (MACHINES 2)."""

from typing import Final

from base import prepared
from base.prepared import Table
from catalog.models import KillSwitch, Scope

_SWITCHES: Final = Table(KillSwitch)
_ON: Final = f"SELECT {_SWITCHES.columns('s')} FROM catalog_killswitch s WHERE s.off_at IS NULL AND "  # noqa: S608 - only names of ours
_FIRST: Final = "ORDER BY s.mode, s.id LIMIT 1"  # a kill switch before a pause
_AGENT: Final = f"s.scope = '{Scope.TENANT}' OR s.scope = '{Scope.AGENT}' AND s.target = %s"
OVER_AGENT: Final = f"{_ON} ({_AGENT}) {_FIRST}"
OVER_CALL: Final = (
    f"{_ON} ({_AGENT} OR s.scope = '{Scope.TOOL}' AND s.target = %s OR s.scope = '{Scope.FUNCTION}' AND s.target = %s)"
    f" {_FIRST}"
)


def over_agent(agent: str) -> KillSwitch | None:
    """The switch that stops or pauses this agent or its whole tenant, if one is on; the harder one where both are."""
    return _found(OVER_AGENT, (agent,))


def over_call(*, agent: str, tool: str, function: str) -> KillSwitch | None:
    """The switch that stops or pauses a call of this function by this agent; the harder one where both are on."""
    return _found(OVER_CALL, targets(agent=agent, tool=tool, function=function))


def targets(*, agent: str, tool: str, function: str) -> tuple[str, str, str]:
    """What a switch over a call would be on, as `OVER_CALL` asks for it."""
    return agent, tool, f"{tool}.{function}"


def _found(sql: str, on: tuple[str, ...]) -> KillSwitch | None:
    found = prepared.fetch_one(sql, on)
    return None if found is None else _SWITCHES.row(found)
