"""What the studio's own loop asks of the journal, around every request to a model (RULES S10).

Each agent has a project of its own, made when it first asks, so that a limit is set for one agent. Around a request:
`reserve`; then only if that is `allowed` the request; then `confirm` by what it used, or `withdraw` when nothing of it
went out. Whatever else becomes of it, nothing is called: the amount is in doubt from 300 seconds on, and counted.
"""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from base import db
from budgets.models import Project
from budgets.operations import admitting, settling
from budgets.queries.journal import ItemFound
from budgets.rules.admission import Decision
from budgets.rules.checks import Check, Used
from budgets.rules.words import ItemState, Period

STUDIO: Final = "the studio"


@dataclass(frozen=True, slots=True)
class Admission:
    """What was decided of one request. Unless `allowed`, no model is asked; `because` says why not, to a person.

    `reservation` is None when nothing could be reserved, although it is allowed: then nothing is confirmed.
    """

    allowed: bool
    reservation: UUID | None
    denied_by: Period | None
    decision: Decision | None
    because: str


def reserve(*, tenant: UUID, agent: str, operation: UUID, check: Check, job: UUID, turn: UUID) -> Admission:
    """Reserve for one request to a model, under a new UUIDv7 of this request's own (never of the turn it repeats).

    Its own transactions: call it outside of any. Raises `budgets.errors.Refused` and `db.GONE` when it is unresolved,
    and then no model is asked either.
    """
    project = project_of(tenant=tenant, agent=agent)
    asking = admitting.Asking(tenant, project, operation, [check], of_job=job, of_turn=turn)
    (item,) = admitting.submit(asking).items
    return _admission(item, agent)


def confirm(*, tenant: UUID, agent: str, reservation: UUID, used: Used) -> None:
    """Settle what was reserved by what the request has used. Raises `budgets.errors.Refused`."""
    project = project_of(tenant=tenant, agent=agent)
    settling.confirm(tenant=tenant, project=project, reservation=reservation, used=used, by=STUDIO)


def withdraw(*, tenant: UUID, reservation: UUID) -> bool:
    """Give back what was reserved for a request that provably never went out; False when it is not open any more."""
    return settling.withdraw(tenant=tenant, reservation=reservation, by=STUDIO)


def project_of(*, tenant: UUID, agent: str) -> UUID:
    """The project in which an agent's requests are counted; made if there is none yet."""
    with db.read(tenant):
        found = Project.objects.filter(agent=agent).values_list("pk", flat=True).first()
    if found is not None:
        return found
    with db.write(tenant) as now:
        made = Project(tenant_id=tenant, name=agent, agent=agent, made_at=now)
        Project.objects.bulk_create([made], ignore_conflicts=True)
        return Project.objects.values_list("pk", flat=True).get(agent=agent)


def _admission(item: ItemFound, agent: str) -> Admission:
    decision = item.decision
    if item.state is not ItemState.COMPLETED or decision is None:
        why = f"the journal could not make out whether it fits into the limits of agent {agent}"
        return Admission(False, None, None, None, f"{why}: its model may have no known price")
    if not decision.allowed:
        told, period = decision.as_json(), decision.denied_by_period
        of = f"of the {told['budget_limit']} USD that agent {agent} may spend in one {period}"
        because = f"{told['current_usage']} USD are counted {of}, and this request does not fit"
        return Admission(False, None, decision.denied_by_period, decision, because)
    reservation = UUID(decision.reservation_id) if decision.reservation_id else None
    return Admission(True, reservation, None, decision, "")
