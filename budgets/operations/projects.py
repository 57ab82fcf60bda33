"""Projects and their limits, as people make them."""

import re
from decimal import Decimal
from typing import Final
from unicodedata import normalize
from uuid import UUID
from zoneinfo import ZoneInfo

from base import db
from base.zones import is_zone
from budgets.errors import BadProject
from budgets.models import Limit, Project
from budgets.rules.words import PLACES, LimitMode, Period, Unconfirmed
from tenants.operations import audit
from tenants.rules.who import Actor

MOST_NAME: Final = 64
MOST: Final = 500  # projects that people have made in one workspace
MOST_AMOUNT: Final = Decimal(10) ** 12
_AMOUNT: Final = re.compile(r"(?:[0-9]+|[1-9][0-9]{0,2}(?:,[0-9]{3})+)(?:\.[0-9]*)?|\.[0-9]+")


def make(*, tenant: UUID, project: UUID, name: str, zone: str, unconfirmed: str, actor: Actor) -> None:
    """Add a project under a new id. Raises `BadProject`."""
    name = normalize("NFC", name.strip())  # composed or not, it looks the same
    if not name or len(name) > MOST_NAME:
        raise BadProject(f"Give it a name of 1 to {MOST_NAME} characters.")
    if not name.isprintable():
        raise BadProject("Its name has a character that cannot be seen, or that turns the others around.")
    if not is_zone(zone):
        raise BadProject("Its time zone is one such as Europe/Berlin, or UTC.")
    if unconfirmed not in set(Unconfirmed):
        raise BadProject("Say what becomes of amounts that nobody confirms.")
    with db.write(tenant) as now:
        db.alone("names a budget")
        made = Project.objects.filter(agent="")
        if made.count() >= MOST:
            raise BadProject(f"There are {MOST} projects in this workspace already.")
        if made.filter(name=name).exists():
            raise BadProject("There is a project of this name already.")
        Project.objects.create(
            pk=project, tenant_id=tenant, name=name, zone=ZoneInfo(zone).key, unconfirmed=unconfirmed, made_at=now
        )
        audit.record(actor, "budget.made", f"budget {name}", after={"zone": zone, "unconfirmed": unconfirmed})


def set_limit(*, tenant: UUID, project: UUID, period: str, mode: str, amount: str, actor: Actor) -> str:
    """Add or change the limit of a period that alerts, or the one that denies; the project's name.

    It holds from the next check on. Raises `BadProject`, and `Project.DoesNotExist`.
    """
    if period not in set(Period) or mode not in set(LimitMode):
        raise BadProject("A limit is for an hour, a day or a month, and alerts or denies.")
    dollars = amount_of(amount)
    with db.write(tenant) as now:
        row = Project.objects.get(pk=project)
        limits = Limit.objects.select_for_update(no_key=True)
        old = limits.filter(project=row, period=period, mode=mode).first()
        before = None if old is None else {"amount": f"{old.amount.normalize():f}"}
        Limit.objects.update_or_create(
            project=row,
            period=period,
            mode=mode,
            defaults={"amount": dollars, "changed_at": now},
            create_defaults={"amount": dollars, "changed_at": now, "tenant_id": tenant},
        )
        told = {"amount": f"{dollars:f}"}
        audit.record(actor, "budget.limited", f"{mode} per {period} of {row.name}", before=before, after=told)
        return row.name


def remove_limit(*, tenant: UUID, project: UUID, period: str, mode: str, actor: Actor) -> bool:
    """Remove a limit; False when there is none."""
    with db.write(tenant):
        row = Limit.objects.select_related("project").filter(project_id=project, period=period, mode=mode).first()
        if row is None:
            return False
        row.delete()
        before = {"amount": f"{row.amount.normalize():f}"}
        audit.record(actor, "budget.limit_removed", f"{mode} per {period} of {row.project.name}", before=before)
        return True


def amount_of(text: str) -> Decimal:
    """An amount of US dollars as a person types it: `12`, `0.50`, `1,000`. Raises `BadProject`.

    A comma parts thousands and nothing else: whoever means half a dollar by `0,50` must not get fifty.
    """
    typed = text.strip().removeprefix("$").strip()
    if "," in typed and not _AMOUNT.fullmatch(typed):
        raise BadProject("Write cents after a point, such as 0.50; a comma only parts thousands, such as 1,000.")
    if not _AMOUNT.fullmatch(typed):
        raise BadProject("An amount is a number of US dollars that is not negative, such as 25 or 0.50.")
    found = Decimal(typed.replace(",", ""))
    if found >= MOST_AMOUNT or found != round(found, PLACES):
        raise BadProject(f"An amount has up to {PLACES} decimal places, and is less than {MOST_AMOUNT:,f}.")
    return found
