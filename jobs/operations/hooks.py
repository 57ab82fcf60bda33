"""Making, changing and removing hooks: addresses that start an agent for each signed event (RULES G1, A12)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from base import db
from jobs.models import Hook
from jobs.operations import intake, masking
from jobs.rules import event_mapping
from jobs.rules.event_mapping import Constant, Mapped
from jobs.rules.event_signing import why_no_secret
from jobs.rules.permits import why_not_start
from jobs.rules.secret_names import old_signing_name, signing_name
from jobs.rules.starters import LONGEST_NAME, MOST, Signing, Standing
from tenants.models import Role, User
from tenants.operations import audit, vault
from tenants.queries.seats import may_here
from tenants.rules.who import SYSTEM, Actor

OVERLAP: Final = timedelta(hours=24)  # in which the secret before the present one still counts


class BadHook(intake.Troubled):
    """A hook that cannot be so."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a hook shall be."""

    name: str
    agent: str
    signing: str = Signing.STANDARD
    mapped: Mapped = field(default_factory=dict)


def make(*, tenant: UUID, wanted: Wanted, secret: str, person: int, actor: Actor) -> UUID:
    """Add a hook whose events are signed by this secret, and whose jobs count as this person's. Raises `BadHook`."""
    with db.write(tenant) as now:
        db.alone("names a hook")
        if Hook.objects.exclude(standing=Standing.REMOVED).count() >= MOST:
            raise BadHook(f"There are {MOST} hooks already: remove one first.")
        row = Hook(tenant_id=tenant, standing=Standing.ON)
        _fill(row, wanted, person, now)
        _secret(row, secret)
        row.save(force_insert=True)
        vault.put(signing_name(row.pk), secret)
        audit.record(actor, "hook.made", f"hook {row.name}", after=_shown(row))
    return row.pk


def change(*, tenant: UUID, hook: UUID, wanted: Wanted, person: int, actor: Actor) -> None:
    """Change a hook; its jobs count as this person's from now on. One that the studio stopped goes on with it.

    Whose way of signing its events have stays as it was made: another sender gets a hook of its own. Only the person
    whose it is changes it, as its jobs count as theirs and they know its secret (RULES A10). Raises `BadHook`.
    """
    with db.write(tenant) as now:
        row = locked(hook)
        if row.person_id != person:
            raise BadHook(f"{_counts_as(row)} Give it a new secret first: it counts as yours then.")
        before = _shown(row)
        if row.standing == Standing.STOPPED:
            row.standing, row.because = Standing.ON, ""
        _fill(row, Wanted(wanted.name, wanted.agent, row.signing, wanted.mapped), person, now)
        row.save()
        audit.record(actor, "hook.changed", f"hook {row.name}", before=before, after=_shown(row))


def turn(*, tenant: UUID, hook: UUID, on: bool, actor: Actor) -> None:
    """Pause a hook, which then refuses what comes, or let it go on. Raises `BadHook`."""
    with db.write(tenant):
        row = locked(hook)
        if (row.standing == Standing.ON) == on:
            return
        if on and (why_not := why_nobody(row)):
            raise BadHook(why_not)
        row.standing, row.because = Standing.ON if on else Standing.PAUSED, ""
        row.save(update_fields=["standing", "because"])
        audit.record(actor, "hook.resumed" if on else "hook.paused", f"hook {row.name}")


def new_secret(*, tenant: UUID, hook: UUID, secret: str, at_once: bool, person: int, actor: Actor) -> None:
    """Take events by another secret from now on; by the one before for a day more, unless it is to end `at_once`.

    Who gives it the secret can send it what they like, so its jobs count as theirs from then on, and what somebody else
    has signed counts no more (RULES A10). Raises `BadHook`.
    """
    with db.write(tenant) as now:
        row = locked(hook)
        if why_not := why_not_start(operator=may_here(person, Role.OPERATOR)):
            raise BadHook(why_not)
        _secret(row, secret)
        at_once = at_once or row.person_id != person
        row.person_id, row.changed_at = person, now
        if row.standing == Standing.STOPPED:
            row.standing, row.because = Standing.ON, ""
        before = vault.find(tenant, signing_name(row.pk))
        vault.drop(old_signing_name(row.pk))
        row.old_secret_until = None
        if before is not None and not at_once:
            vault.put(old_signing_name(row.pk), before)
            row.old_secret_until = now + OVERLAP
        vault.put(signing_name(row.pk), secret)
        row.save()
        until = row.old_secret_until.isoformat() if row.old_secret_until else None
        audit.record(actor, "hook.secret", f"hook {row.name}", after={"the_one_before_counts_until": until})


def remove(*, tenant: UUID, hook: UUID, actor: Actor) -> str:
    """Remove a hook and its secrets; its name. Its jobs, and the log of what came, stay. Raises `BadHook`."""
    with db.write(tenant):
        row = locked(hook)
        before = _shown(row)
        vault.drop(signing_name(row.pk))
        vault.drop(old_signing_name(row.pk))
        row.standing, row.because, row.old_secret_until = Standing.REMOVED, "", None
        row.save(update_fields=["standing", "because", "old_secret_until"])
        audit.record(actor, "hook.removed", f"hook {row.name}", before=before)
        return row.name


def stop(row: Hook, why: str) -> None:
    """Stop it by the studio itself. Demands an open write that has the row alone."""
    row.standing, row.because = Standing.STOPPED, why
    row.save(update_fields=["standing", "because"])
    audit.record(SYSTEM, "hook.stopped", f"hook {row.name}", note=why)


def why_nobody(row: Hook) -> str:
    """Why its person may not start jobs any more; nothing when they may (RULES A10)."""
    if may_here(row.person_id, Role.OPERATOR):
        return ""
    return f"{_counts_as(row, ', who has left or may not start jobs any more')} Give it a new secret: it is yours then."


def _counts_as(row: Hook, more: str = ", who knows its signing secret") -> str:
    name = User.objects.values_list("username", flat=True).get(pk=row.person_id)
    return f"Its jobs count as those of {name}{more}."


def locked(hook: UUID) -> Hook:
    """The hook, held alone. Raises `BadHook`."""
    found = Hook.objects.select_for_update(no_key=True).filter(pk=hook).first()
    if found is None or found.standing == Standing.REMOVED:
        raise BadHook("There is no such hook any more.")
    return found


def _secret(row: Hook, secret: str) -> None:
    if why_not := why_no_secret(Signing(row.signing), secret):
        raise BadHook(why_not, ("secret", why_not))


def _fill(row: Hook, wanted: Wanted, person: int, now: datetime) -> None:
    """Set what was asked for. Raises `BadHook`."""
    db.alone("names a hook")
    name = " ".join(wanted.name.split())
    taken = Hook.objects.filter(name=name).exclude(pk=row.pk).exclude(standing=Standing.REMOVED)
    if why_not := why_not_start(operator=may_here(person, Role.OPERATOR)):
        raise BadHook(why_not)
    if not 0 < len(name) <= LONGEST_NAME:
        raise _bad("name", f"Give it a name of up to {LONGEST_NAME} characters.")
    if taken.exists():
        raise _bad("name", f"There is a hook named {name} already.")
    if wanted.signing not in set(Signing):
        raise _bad("signing", "Choose who sends its events.")
    if len(wanted.mapped) > event_mapping.MOST:
        raise BadHook(f"A hook fills in {event_mapping.MOST} inputs at most.")
    constants = {name: one.value for name, one in wanted.mapped.items() if isinstance(one, Constant)}
    try:
        intake.check(wanted.agent, constants, also=wanted.mapped)
    except intake.CannotStart as error:
        found = [(_input(path), what) for path, what in error.troubles]
        mine = [(name, what) for name, what in found if name in constants]  # of the others the event is to tell
        if mine or not found:
            raise BadHook("; ".join(f"{name}: {what}" for name, what in mine) or str(error), *mine) from error
    row.name, row.agent_name, row.signing = masking.text(name), wanted.agent, wanted.signing
    row.mapping = masking.value(event_mapping.as_json(wanted.mapped))
    row.person_id, row.changed_at = person, now


def _input(path: str) -> str:
    """The input that is meant by a path such as `$.lines[2].id`."""
    return path.removeprefix("$.").partition(".")[0].partition("[")[0]


def _bad(field: str, what: str) -> BadHook:
    return BadHook(what, (field, what))


def _shown(row: Hook) -> Mapping[str, Any]:
    counts_as = User.objects.values_list("username", flat=True).get(pk=row.person_id)
    names = ("name", "agent_name", "signing", "mapping")
    return {name: getattr(row, name) for name in names} | {"counts_as": counts_as}
