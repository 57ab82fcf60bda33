"""The queue of open questions, oldest first, without any body; of the arguments only how they begin.

A page that is open reads itself again by nudges. Then what was answered since it was opened keeps its place and says
so, and what came is counted and stands at the end: nothing moves under a cursor.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db.models import Count, F, QuerySet, TextField
from django.db.models.functions import Cast, Left

from approvals.models import Decision
from approvals.queries.compared import New, new_in
from approvals.queries.floods import Flood, floods
from approvals.queries.same import SameCall, same_calls
from approvals.rules.readable import brief, required_of
from base import db, ids
from jobs.models import Call, Hold
from jobs.operations.holds import Answer
from jobs.queries.questions import counted, open_questions
from jobs.queries.story import answered
from jobs.queries.trace import name_of
from jobs.queries.veil import Veil
from jobs.rules.seeing import HIDDEN
from jobs.rules.states import CallState, HoldKind, HoldState

PAGE: Final = 50
MOST_CHOICES: Final = 100  # that a filter offers
BEGINNING: Final = 4000  # characters of the arguments, as JSON; with more of them, how they begin
ROOM: Final = 150  # characters by which a question is told from its neighbours
LATELY: Final = timedelta(hours=1)
A_DAY: Final = timedelta(days=1)
LET_RUN: Final = (Answer.APPROVE, Answer.EDIT, Answer.AGAIN)
MOST_FAILED: Final = 100  # that are counted
NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class QueueFilter:
    """Which questions; empty is all. `at` is when the page was opened that reads itself again."""

    kind: str = ""
    agent: str = ""
    tool: str = ""
    function: str = ""
    after: UUID | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One question. `closed` says how it was closed since the page was opened; empty while it is open. `brief` names
    the arguments, as the schema orders them; it is empty where there are none, or where they are large. `new` says what
    of them no earlier call of the function had, `same` which call with the same ones was made already."""

    shown_id: str
    kind: HoldKind
    state: HoldState
    name: str
    function_kind: str
    agent: str
    why: str
    opened_at: datetime
    expires_at: datetime | None
    brief: tuple[tuple[str, str], ...]
    new: tuple[New, ...] = ()
    same: SameCall | None = None
    closed: str = ""
    count: int = 1


@dataclass(frozen=True, slots=True)
class _Facts:
    """What a page's rows are told with: what the reader does not see, and, by call, what earlier calls say of it."""

    veil: Veil
    new: dict[UUID, tuple[New, ...]]
    same: dict[UUID, SameCall]


@dataclass(frozen=True, slots=True)
class Choices:
    """What the open questions are of: up to a hundred names each."""

    agents: tuple[str, ...]
    tools: tuple[str, ...]
    functions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Queue:
    """A page of the queue: questions, and groups of them at the place of their oldest.

    `total` counts every open question that fits, at most 1,001; `newer` those that came since the page was opened.
    """

    rows: tuple[QueueRow | Flood, ...]
    total: int
    newer: int
    oldest: datetime | None
    choices: Choices
    next_after: str | None
    at: datetime
    now: datetime


def queue(tenant: UUID, wanted: QueueFilter, *, role: str = "") -> Queue:
    """The questions that fit, as `role` may see them, oldest first."""
    with db.read(tenant) as now:
        narrowed = {"agent": wanted.agent, "tool": wanted.tool, "function": wanted.function}
        fitting = open_questions(kind=wanted.kind, **narrowed)
        grouped = floods(**narrowed) if wanted.kind in ("", HoldKind.UNKNOWN) else []
        alone = fitting.filter(pk__gt=wanted.after) if wanted.after else fitting
        for flood in grouped:
            alone = alone.exclude(flood.members)
        found = _loaded(alone)[: PAGE + 1]
        page, more = found[:PAGE], len(found) > PAGE
        page += _closed_since(wanted, end=page[-1].pk if more else None)
        facts = _facts(page, Veil.over(role))
        return Queue(
            rows=_merged(page, grouped, wanted.after, page[PAGE - 1].pk if more else None, facts),
            total=counted(fitting),
            newer=counted(fitting.filter(opened_at__gt=wanted.at)) if wanted.at else 0,
            oldest=fitting.order_by("pk").values_list("opened_at", flat=True).first(),
            choices=_choices(wanted),
            next_after=ids.show(ids.HOLD, found[PAGE - 1].pk) if more else None,
            at=wanted.at or now,
            now=now,
        )


def answered_lately(tenant: UUID, person: int) -> tuple[tuple[str, int], ...]:
    """How often this person gave each answer in the last hour, the most frequent first."""
    with db.read(tenant) as now:
        found = Decision.objects.filter(person_id=person, pk__gte=ids.first_at(now - LATELY), at__gte=now - LATELY)
        return tuple(found.values_list("answer").annotate(count=Count("pk")).order_by("-count", "answer"))


@dataclass(frozen=True, slots=True)
class FailedRow:
    """A call that the reader let run, and that then failed."""

    shown_id: str
    name: str
    state: CallState


@dataclass(frozen=True, slots=True)
class Failed:
    """How many calls that one person let run in the last day failed, and the newest of them."""

    count: int
    rows: tuple[FailedRow, ...]


def failed_lately(tenant: UUID, person: int) -> Failed:
    """What failed of the calls that this person let run in the last day: by an approval, or by one more attempt."""
    with db.read(tenant) as now:
        since = now - A_DAY
        found = Decision.objects.filter(
            person_id=person, pk__gte=ids.first_at(since), at__gte=since, answer__in=LET_RUN
        )
        found = found.filter(hold__call__state__in=(CallState.ERRORED, CallState.FAILED))
        newest: dict[UUID, Call] = {}
        for one in found.select_related("hold__call").defer("hold__call__arguments").order_by("-pk")[:MOST_FAILED]:
            newest.setdefault(one.hold.call_id, one.hold.call)
    rows = [FailedRow(ids.show(ids.CALL, pk), name_of(call), CallState(call.state)) for pk, call in newest.items()]
    return Failed(len(rows), tuple(rows[:NAMED]))


def choices(tenant: UUID, wanted: QueueFilter) -> Choices:
    """What a filter of the open questions offers: what there is, and what is chosen already."""
    with db.read(tenant):
        return _choices(wanted)


def _choices(wanted: QueueFilter) -> Choices:
    return Choices(
        _names("job__agent_name", wanted.agent),
        _names("call__tool_slug", wanted.tool),
        _names("call__function_name", wanted.function),
    )


def _names(what: str, chosen: str) -> tuple[str, ...]:
    found = set(open_questions().values_list(what, flat=True).distinct()[:MOST_CHOICES])
    return tuple(sorted(found | {chosen} - {""}))


def _loaded(holds: QuerySet[Hold]) -> list[Hold]:
    """One page's rows and one more, without the bodies, each with how its arguments begin."""
    beginning = Left(Cast("call__arguments", TextField()), BEGINNING)
    required = F("call__function__input_schema__required")
    rows = holds.select_related("call", "job", "answered_by").annotate(beginning=beginning, required=required)
    return list(rows.defer("call__arguments", "job__input", "job__output").order_by("pk")[: PAGE + 1])


def _closed_since(wanted: QueueFilter, *, end: UUID | None) -> list[Hold]:
    """The questions of this page that were closed since it was opened. Unknown ones may have been of a group."""
    if wanted.at is None:
        return []
    found = Hold.objects.filter(closed_at__gt=wanted.at).exclude(kind=HoldKind.UNKNOWN)
    names = {
        "kind": wanted.kind,
        "job__agent_name": wanted.agent,
        "call__tool_slug": wanted.tool,
        "call__function_name": wanted.function,
    }
    found = found.filter(**{name: value for name, value in names.items() if value})
    found = found.filter(pk__gt=wanted.after) if wanted.after else found
    return _loaded(found.filter(pk__lte=end) if end else found)[:PAGE]


def _merged(
    page: list[Hold],
    grouped: list[Flood],
    after: UUID | None,
    end: UUID | None,
    facts: _Facts,
) -> tuple[QueueRow | Flood, ...]:
    """The page's questions and the groups between them, by their oldest."""
    here = [one for one in grouped if (not after or one.oldest > after) and (end is None or one.oldest < end)]
    placed: list[tuple[UUID, QueueRow | Flood]] = [(hold.pk, _row(hold, facts)) for hold in page]
    placed += [(one.oldest, one) for one in here]
    return tuple(row for _, row in sorted(placed, key=lambda one: one[0]))


def _facts(page: list[Hold], veil: Veil) -> _Facts:
    """What earlier calls say of the open questions: one statement for each of both, however many rows."""
    asked = [hold for hold in page if hold.closed_at is None and hold.call.tool_slug]
    compared = [hold.call for hold in asked if hold.kind != HoldKind.UNKNOWN and not veil.hides(hold.call.tool_slug)]
    return _Facts(veil, new_in(compared), same_calls([hold.call for hold in asked]))


def _row(hold: Hold, facts: _Facts) -> QueueRow:
    beginning, names = getattr(hold, "beginning", None) or "", required_of(getattr(hold, "required", None))
    return QueueRow(
        shown_id=ids.show(ids.HOLD, hold.pk),
        kind=HoldKind(hold.kind),
        state=HoldState(hold.state),
        name=name_of(hold.call),
        function_kind=hold.call.kind,
        agent=hold.job.agent_name,
        why=hold.why,
        opened_at=hold.opened_at,
        expires_at=hold.expires_at,
        brief=(("", HIDDEN),) if beginning and facts.veil.hides(hold.call.tool_slug) else brief(beginning, ROOM, names),
        new=facts.new.get(hold.call_id, ()),
        same=facts.same.get(hold.call_id),
        closed=answered(hold),
    )
