"""Calls that look like one made twice: the same function and arguments in one job, moments apart (RULES G6)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from base import figures, ids
from jobs.models import Call

NEAR: Final = timedelta(seconds=1)
SAME: Final = timedelta(milliseconds=50)


@dataclass(frozen=True, slots=True)
class Twin:
    """The call that another looks like. `says` is how much later that one was asked for, such as `0.4 s later`."""

    shown_id: str
    activity: int
    says: str


def twins(calls: Iterable[Call]) -> Mapping[UUID, Twin]:
    """Of these calls of one job, in order of their activity: those that look like one shortly before, and which."""
    last: dict[tuple[str, str], Call] = {}
    found: dict[UUID, Twin] = {}
    for call in calls:
        alike = (call.model_name, call.args_digest)
        before = last.get(alike) if call.args_digest else None
        if before is not None and call.created_at - before.created_at <= NEAR:
            found[call.pk] = _twin(before, call.created_at)
        last[alike] = call
    return found


def twin_of(call: Call) -> Twin | None:
    """The call of the same job, made up to a second before or after, that this one looks like; the nearest before it.

    Demands an open read.
    """
    if not call.args_digest:
        return None
    alike = Call.objects.filter(job_id=call.job_id, model_name=call.model_name, args_digest=call.args_digest)
    near = alike.filter(created_at__range=(call.created_at - NEAR, call.created_at + NEAR)).exclude(pk=call.pk)
    before = near.filter(activity__lt=call.activity, run_number=call.run_number).order_by("-activity").first()
    other = before or near.order_by("activity").first()
    return None if other is None else _twin(other, call.created_at)


def _twin(other: Call, at: datetime) -> Twin:
    apart = at - other.created_at
    when = "later" if apart >= timedelta() else "earlier"
    says = "at the same moment" if abs(apart) < SAME else f"{figures.duration(abs(apart))} {when}"
    return Twin(ids.show(ids.CALL, other.pk), other.activity, says)
