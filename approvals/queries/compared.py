"""A question's arguments beside those of earlier calls of its function: one statement for a page, however many rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db.models import TextField
from django.db.models.functions import Cast, Left

from approvals.rules.compared import Past, Remark, hidden_words
from approvals.rules.readable import Line, values_of
from jobs.models import Call
from jobs.rules.states import CallState

LOOKED_AT: Final = 2000  # of the last calls of all functions
MOST: Final = 1000  # calls that are compared with
LONGEST: Final = 1000  # characters of a call's arguments; calls with more are left out


@dataclass(frozen=True, slots=True)
class ComparedLine:
    """One value of a card, what earlier calls had in its place, and what is hidden in it, in words."""

    line: Line
    remark: Remark | None
    hidden: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """A card's values, and the places it leaves empty, beside those of `calls` earlier ones that nobody denied."""

    calls: int
    lines: tuple[ComparedLine, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class New:
    """A place in a call's arguments, and what is said of its value because no earlier call had it."""

    path: str
    remark: Remark

    @property
    def says(self) -> str:
        """The fact in words, without the values it is about."""
        return self.remark.says


def compared(call: Call, lines: tuple[Line, ...]) -> Compared:
    """These values of `call` beside earlier ones. Demands an open read."""
    past = Past()
    for _, _, text in _earlier([call]):
        past.add(values_of(text))
    remarks = zip(lines, past.remarks(lines), strict=True)
    beside = tuple(ComparedLine(line, remark, hidden_words(line.text)) for line, remark in remarks)
    return Compared(past.calls, beside, past.missing(lines))


def new_in(calls: Sequence[Call]) -> dict[UUID, tuple[New, ...]]:
    """For each of these calls what is new in its arguments. Demands an open read."""
    pasts: dict[tuple[str, str], Past] = {}
    found: dict[UUID, tuple[New, ...]] = {}
    asked = {call.pk for call in calls}
    for pk, name, text in _earlier(calls, itself=True):
        past = pasts.setdefault(name, Past())
        lines = values_of(text)
        if pk in asked:
            remarks = zip(lines, past.remarks(lines), strict=True)
            found[pk] = tuple(New(line.path, remark) for line, remark in remarks if remark and remark.new)
        past.add(lines)
    return found


def _earlier(calls: Sequence[Call], *, itself: bool = False) -> list[tuple[UUID, tuple[str, str], str]]:
    """Calls of the same functions that were made before the newest of these, the oldest first, without those denied."""
    newest = max((call.pk for call in calls), default=None)
    if newest is None:
        return []
    names = {(call.tool_slug, call.function_name) for call in calls}
    last = Call.objects.filter(pk__lte=newest).order_by("-pk").values("pk")[:LOOKED_AT]
    same = Call.objects.filter(pk__in=last, function_name__in={name for _, name in names})
    same = same.exclude(state=CallState.REFUSED).filter(arguments_body__isnull=True)
    same = same if itself else same.exclude(pk=newest)
    text = Left(Cast("arguments", TextField()), LONGEST + 1)
    rows = same.order_by("-pk").values_list("pk", "tool_slug", "function_name", text)[:MOST]
    return [
        (pk, (tool, function), said)
        for pk, tool, function, said in reversed(rows)
        if (tool, function) in names and said and len(said) <= LONGEST
    ]
