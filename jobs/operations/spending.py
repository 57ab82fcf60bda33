"""Each request to a model is admitted by the spend journal before it is made, and confirmed after (RULES S10).

What is still to be told of a turn's requests stands in its own row from the transaction that settled it, so that a
process that dies in between leaves it to the sweep. What nobody can tell stays in doubt in the journal.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import QuerySet

from base import db, ids, tokens
from budgets import errors
from budgets.operations import agents
from budgets.rules import prices
from catalog.rules.model_names import ModelName, read_model
from jobs.models import Turn
from jobs.queries import locks
from jobs.queries.tables import TURNS
from jobs.rules import spending
from jobs.rules.spending import Settled
from jobs.rules.turns import TurnBusy, TurnDenied, TurnOrder

log = logging.getLogger(__name__)

LEFT: Final = timedelta(seconds=15)  # after a turn ended, in which its own node tells what it has to
NO_ANSWER: Final = "The spend journal did not say whether the request may be made, so none was."


@dataclass(frozen=True, slots=True)
class Admitted:
    """A request that may be made. Without a `reservation` nothing is confirmed: its model has no known price."""

    reservation: UUID | None
    named: ModelName


def admit(order: TurnOrder, *, drawn: UUID) -> Admitted | TurnDenied | TurnBusy | None:
    """Reserve what the request may cost; `drawn` is a new id, of this request alone. None when it costs nothing here.

    Not admitted, or not known to be, it is never made: a denial ends the job, and what is unresolved is asked again.
    """
    named = read_model(order.agent.model)
    if named is None or order.remote is None or order.remote.trouble:
        return None
    pieces = list(spending.texts_of(order))
    check = spending.check_of(
        order, named, job=ids.show(ids.JOB, order.job_id), counted=sum(tokens.counts(pieces)), pieces=len(pieces)
    )
    try:
        with db.read(order.tenant) as now:
            operation = _of_moment(drawn, now)
        admission = agents.reserve(
            tenant=order.tenant,
            agent=order.agent.name,
            operation=operation,
            check=check,
            job=order.job_id,
            turn=order.turn_id,
        )
    except (errors.Refused, *db.GONE) as error:
        log.warning("a request to a model was not admitted: %s", error)
        return TurnBusy(NO_ANSWER, wait=None)
    if admission.allowed:
        return Admitted(admission.reservation, named)
    if admission.decision is None and prices.is_known(check.provider, check.model, now):
        return TurnBusy(f"{NO_ANSWER} ({admission.because})", wait=None)  # it stood in a queue for too long
    return TurnDenied(f"{admission.because} (no request was made)")


def _of_moment(drawn: UUID, now: datetime) -> UUID:
    """A UUIDv7 of the database's time, which the journal judges it by, with what was drawn."""
    return UUID(int=ids.first_at(now).int | (drawn.int & (2**62 - 1)))


def tell(*, tenant: UUID, agent: str, turn_id: UUID, told: Sequence[Settled]) -> None:
    """Confirm what these requests have cost, once; then their turn has nothing more to tell of them.

    Safe to be done again. What the journal does not take any more stays as it is there; what it does not take just now
    is told later.
    """
    over = []
    for one in told:
        try:
            agents.confirm(tenant=tenant, agent=agent, reservation=one.reservation, used=one.used)
        except (errors.Expired, errors.NotFound, errors.Conflict) as error:
            log.warning("what turn %s has cost was not confirmed: %s", turn_id, error)
        except errors.Refused as error:
            log.warning("what turn %s has cost is confirmed later: %s", turn_id, error)
            continue
        over.append(one.as_json())
    with db.write(tenant):
        turn = locks.turn(turn_id)
        if turn is not None and turn.to_confirm:
            TURNS.update(turn_id, {"to_confirm": [one for one in turn.to_confirm if one not in over]})


def untold(now: datetime) -> "QuerySet[Turn]":
    """Turns whose node did not come to tell what their requests have cost. For the sweep."""
    return Turn.objects.exclude(to_confirm=[]).filter(ended_at__lt=now - LEFT).order_by("ended_at")


def tell_left(tenant: UUID, turn_id: UUID) -> bool:
    """Tell what is left of one of these."""
    with db.read(tenant):
        found = Turn.objects.filter(pk=turn_id).values_list("to_confirm", "job__agent_name").first()
    left: list[Any] = found[0] if found else []
    if found is None or not left:
        return False
    tell(tenant=tenant, agent=found[1], turn_id=turn_id, told=[Settled.from_json(one) for one in left])
    return True
