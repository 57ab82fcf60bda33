"""Saving a version of the tenant's policy. Versions are never changed (RULES A2, A12)."""

from typing import Any
from uuid import UUID

from base import db
from catalog import wake
from catalog.models import PolicyVersion
from catalog.rules.policy_diff import compare
from catalog.rules.policy_editing import NOTE_LONGEST
from catalog.rules.policy_rules import oddities
from tenants.models import Gate
from tenants.operations import audit
from tenants.rules.who import Actor


class BadPolicy(ValueError):
    """A policy that cannot be saved; `troubles` says why, one sentence each. Nothing was changed."""

    def __init__(self, *troubles: str) -> None:
        super().__init__("; ".join(troubles))
        self.troubles = troubles


class PolicyMoved(BadPolicy):
    """Somebody saved another version since the draft was begun: `newest` is the one in force now."""

    def __init__(self, newest: int) -> None:
        super().__init__(f"version {newest} was saved since you began; nothing of yours is lost, and nothing was saved")
        self.newest = newest


def save(*, tenant: UUID, rules: list[Any], seen: int, note: str, by: Actor, restores: int | None = None) -> int:
    """Put these rules in force as a new version; returns its number. The caller has checked that the person may.

    `seen` is the version the draft was begun from, 0 for the studio's defaults: when it is not the newest any more,
    `PolicyMoved`. Every claim judges by the new version from this commit on (MACHINES 2).
    """
    note = note.strip()
    if by.user_id is None:
        raise BadPolicy("only a signed-in person changes the policy")
    if not note:
        raise BadPolicy("say why: everybody who reads this version reads it")
    if len(note) > NOTE_LONGEST:
        raise BadPolicy(f"the reason is {len(note):,} characters long; up to {NOTE_LONGEST:,} are kept")
    if odd := oddities(rules):
        raise BadPolicy(*odd)
    with db.write(tenant) as now:
        Gate.objects.select_for_update().get(tenant_id=tenant)
        newest = PolicyVersion.objects.order_by("-number").first()
        number, before = (newest.number, newest.rules) if newest else (0, [])
        if number != seen:
            raise PolicyMoved(number)
        changed = compare(before, rules)
        if not changed:
            raise BadPolicy("nothing is different from the version in force")
        version = PolicyVersion.objects.create(
            tenant_id=tenant,
            number=number + 1,
            rules=rules,
            made_by_id=by.user_id,
            made_at=now,
            note=note,
            restores=restores,
        )
        audit.record(
            by,
            "policy.restored" if restores is not None else "policy.saved",
            f"policy {version.number}",
            before={change.name: change.before for change in changed},
            after={change.name: change.after for change in changed},
            note=note,
        )
        wake.changed()
        return version.number
