"""What stands over a call: a switch, and the policy in force. Read at once, under the gate (MACHINES 2)."""

from dataclasses import dataclass
from typing import Final

from base import prepared
from catalog.queries import policies, switches
from catalog.rules.policy import Policy
from catalog.rules.switching import Mode

_STANDING: Final = f"""
SELECT p.number, p.rules, s.mode, s.scope, s.target
FROM (VALUES (1)) always
    LEFT JOIN ({policies.NEWEST}) p ON true
    LEFT JOIN ({switches.OVER_CALL}) s ON true
"""  # noqa: S608 - only words of ours


@dataclass(frozen=True, slots=True)
class Standing:
    """`switch` names the kill switch that is on, else it is empty. The studio's own policy has the number 0."""

    switch: str
    paused: bool
    policy: Policy
    number: int


def over_call(*, agent: str, tool: str, function: str) -> Standing:
    """What stands over a call of this function by this agent."""
    found = prepared.fetch_one(_STANDING, switches.targets(agent=agent, tool=tool, function=function))
    assert found is not None  # noqa: S101 - one row is always there
    number, rules, mode, scope, target = found
    switch = f"{scope} {target}".strip() if mode == Mode.KILL else ""
    return Standing(switch, mode == Mode.PAUSE, policies.read(rules), number or 0)
