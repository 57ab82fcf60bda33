"""Changing who decides in a tenant (RULES A10, A12)."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from approvals.queries.deciding_rules import deciding_rules
from approvals.rules.deciding import MOST_APPROVERS, ROLES, BadRules, DecidingRules
from base import db
from catalog.rules.kinds import Kind
from jobs.queries import locks
from tenants.models import Tenant
from tenants.operations import audit
from tenants.rules.who import Actor


def save(*, tenant: UUID, roles: Mapping[str, str], approvers: Mapping[str, int], no_self: bool, by: Actor) -> bool:
    """Put these rules in force for every answer from this commit on; False when they were before.

    The caller has checked that the person may. Raises `BadRules`.
    """
    _check(roles, approvers)
    with db.write(tenant):
        locks.gate_alone()  # an answer that is being given has seen either the old rules or the new ones
        before = deciding_rules(tenant)
        after = DecidingRules(dict(roles), dict(approvers), no_self)
        if _all(before) == _all(after):
            return False
        row = Tenant.objects.get(pk=tenant)
        row.settings = {**row.settings, "deciding": after.as_json(), "no_self_approval": no_self}
        row.save(update_fields=["settings"])
        audit.record(by, "deciding.changed", "who decides", before=_all(before), after=_all(after))
    return True


def _all(rules: DecidingRules) -> dict[str, Any]:
    kinds = {kind.value: {"role": rules.role(kind), "approvers": rules.needed(kind)} for kind in Kind}
    return {**kinds, "no_self_approval": rules.no_self_approval}


def _check(roles: Mapping[str, str], approvers: Mapping[str, int]) -> None:
    for kind in (*roles, *approvers):
        if kind not in set(Kind):
            raise BadRules(f"there is no kind {kind!r}; a function's kind is one of {', '.join(Kind)}")
    for kind, role in roles.items():
        if role not in ROLES:
            raise BadRules(f"{kind}: {role!r} does not decide; the role is one of {', '.join(ROLES)}")
    for kind, count in approvers.items():
        if not 1 <= count <= MOST_APPROVERS:
            raise BadRules(f"{kind}: between 1 and {MOST_APPROVERS} people approve, not {count}")
