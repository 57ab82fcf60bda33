"""Who decides in a tenant, and who has approved what still waits for others (RULES A10)."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from approvals.models import Decision
from approvals.rules.deciding import APPROVING, ROLES, Decider, DecidingRules, Question, why_not_decide
from base import db
from catalog.rules.kinds import Kind
from jobs.models import Hold
from jobs.rules.states import HoldKind
from tenants.models import Membership, Tenant


def deciding_rules(tenant: UUID) -> DecidingRules:
    """The tenant's rules. Demands an open read or write; whoever decides by them holds the gate."""
    return DecidingRules.read(Tenant.objects.values_list("settings", flat=True).get(pk=tenant))


def question_of(hold: Hold, rules: DecidingRules) -> Question:
    """What bears on who may answer a hold, whose call and job are loaded."""
    return Question(HoldKind(hold.kind), hold.job.started_by_id, hold.call.kind, rules)


@dataclass(frozen=True, slots=True)
class Approval:
    """One person's approval of a question that is open, or was."""

    person_id: int
    name: str
    at: datetime


def standing(hold: Hold, binding: str | None, question: Question) -> tuple[Approval, ...]:
    """Who approved exactly this and still may, the first first; without a binding, whatever they approved.

    One whose role was taken, or whom a rule made since forbids it, counts no more. Demands an open read or write.
    """
    found = Decision.objects.filter(hold_id=hold.pk, answer__in=APPROVING).exclude(binding="")
    found = found if binding is None else found.filter(binding=binding)
    decisions = list(found.select_related("person").order_by("at", "pk"))
    if not decisions:
        return ()
    members = Membership.objects.filter(user_id__in=[one.person_id for one in decisions], user__is_active=True)
    roles = dict(members.values_list("user_id", "role"))
    return tuple(
        Approval(one.person_id, one.person.get_username(), one.at)
        for one in decisions
        if (role := roles.get(one.person_id)) is not None
        and why_not_decide(Decider(one.person_id, role), question, one.answer) is None
    )


@dataclass(frozen=True, slots=True)
class KindRow:
    """What the settings page says of one kind of function. `able` people may decide it by their role."""

    kind: Kind
    role: str
    needed: int
    able: int

    @property
    def short(self) -> int:
        """How many people are missing for its calls to be approved at all."""
        return max(0, self.needed - self.able)


def kind_rows(rules: DecidingRules) -> tuple[KindRow, ...]:
    """The rules kind by kind, with how many people there are for each. Demands an open read."""
    roles = list(Membership.objects.filter(user__is_active=True, role__in=ROLES).values_list("role", flat=True))
    return tuple(
        KindRow(
            kind,
            rules.role(kind),
            rules.needed(kind),
            sum(ROLES.index(role) >= ROLES.index(rules.role(kind)) for role in roles),
        )
        for kind in Kind
    )


def deciding_page(tenant: UUID) -> tuple[DecidingRules, tuple[KindRow, ...]]:
    """The tenant's rules, and kind by kind what they come to."""
    with db.read(tenant):
        rules = deciding_rules(tenant)
        return rules, kind_rows(rules)
