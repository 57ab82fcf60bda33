"""The one door to whatever answers an agent's turns."""

import logging

from django.conf import settings

from catalog.rules.agents import REHEARSAL
from jobs.agent import rehearsal
from jobs.rules.turns import TurnFailed, TurnOrder, TurnOutcome

log = logging.getLogger(__name__)


def ask(order: TurnOrder) -> TurnOutcome:
    """Ask the agent's model for its next turn. Never raises: an error of ours fails the turn, and is in the log."""
    try:
        return _ask(order)
    except Exception as error:
        log.exception("turn %s could not be asked", order.turn_id)
        return TurnFailed(f"an error in the studio, which its log has in full: {type(error).__name__}")


def _ask(order: TurnOrder) -> TurnOutcome:
    if order.agent.model == REHEARSAL:
        return rehearsal.ask(order, home=str(settings.OZ0_HOME))
    named = order.agent.model or "a harness"
    return TurnFailed(
        f"this studio runs agents with `model: rehearsal`; {order.agent.name} names {named}", agents_fault=True
    )
