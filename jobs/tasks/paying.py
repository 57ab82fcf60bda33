"""One question to a model, with what it may cost: admitted, asked, settled, and the spend journal told (RULES S10)."""

import logging
from dataclasses import replace
from random import random
from typing import TYPE_CHECKING
from uuid import UUID

from base import ids
from base.clock import boot_time
from jobs.operations import spending, turns
from jobs.operations.spending import Admitted
from jobs.rules.spending import Settled, begin_within, settled
from jobs.rules.turns import TurnBusy, TurnDenied, TurnFailed, TurnOrder, TurnOutcome

if TYPE_CHECKING:
    from jobs.tasks.host import Host

log = logging.getLogger(__name__)


def ask(host: "Host", order: TurnOrder) -> None:
    """Ask, unless the journal does not let it; then settle the turn, and confirm what it has cost.

    Its authority is counted from before it is asked for, so it has ended here no later than in the journal.
    """
    began = boot_time()
    admitted = _admitted(order)
    told: Settled | None = None
    outcome: TurnOutcome
    match admitted:
        case TurnDenied() | TurnBusy() | TurnFailed():
            outcome = admitted
        case Admitted(reservation=UUID() as reservation, named=named):
            outcome = host.answer_to(replace(order, begin_by=began + begin_within()))
            told = settled(outcome, order, named, reservation)
        case _:  # it costs nothing that is known
            outcome = host.answer_to(order)
    host.until_committed(
        lambda: turns.settle(
            tenant=order.tenant,
            turn_id=order.turn_id,
            asked=order.asked,
            outcome=outcome,
            told=told,
            jitter=random(),
        )
    )
    if told is not None:  # also when the turn had been given to another node meanwhile: the request was made
        tells = [told]
        host.until_committed(
            lambda: spending.tell(tenant=order.tenant, agent=order.agent.name, turn_id=order.turn_id, told=tells)
        )


def _admitted(order: TurnOrder) -> Admitted | TurnDenied | TurnBusy | TurnFailed | None:
    """An error of ours is no admission either: it fails the turn, and is in the log."""
    try:
        return spending.admit(order, drawn=ids.new())
    except Exception as error:
        log.exception("turn %s could not be admitted", order.turn_id)
        return TurnFailed(f"an error in the studio, which its log has in full: {type(error).__name__}", charged=False)
