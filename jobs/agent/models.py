"""The one door to whatever answers an agent's turns."""

from django.conf import settings

from catalog.rules.agents import REHEARSAL
from jobs.agent import rehearsal
from jobs.rules.turns import TurnFailed, TurnOrder, TurnOutcome


def ask(order: TurnOrder) -> TurnOutcome:
    """Ask the agent's model for its next turn. Never raises for what a model or an agent's file may do."""
    if order.agent.model == REHEARSAL:
        return rehearsal.ask(order, home=str(settings.OZ0_HOME))
    named = order.agent.model or "a harness"
    return TurnFailed(
        f"this studio runs agents with `model: rehearsal`; {order.agent.name} names {named}", agents_fault=True
    )
