"""Answering many questions a part at a time, so that the page answers within a second or two and says how far it is.

After a part comes a page whose form goes on with the rest; it is sent by itself, or by its button. What became of the
parts before travels in the form, sealed: it is only told, nothing follows from it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from django.contrib import messages
from django.core import signing
from django.http import HttpRequest, HttpResponse

from approvals.operations.decide import Person
from approvals.operations.decide_together import PART, Before, Card, Outcomes, decide_each
from approvals.rules.deciding import Decider
from approvals.views.waiting_list import hold_id_of
from base import ids
from base.figures import plural
from base.htmx import page as answer_page
from jobs.operations.holds import BadAnswer
from jobs.rules.states import HoldState
from tenants.models import User
from tenants.views.place import actor_of, seat_of

SALT: Final = "oz0.answered in parts"


@dataclass(frozen=True, slots=True)
class Part:
    """How far it is: what became of those answered so far, and the cards that are left."""

    answer: str
    note: str
    done: Outcomes
    rest: tuple[Card, ...]
    total: int

    @property
    def count(self) -> int:
        """How many were gone through."""
        return self.total - len(self.rest)


def goes_on(request: HttpRequest) -> bool:
    """Whether this form goes on with a group of which a part was answered."""
    return "rest" in request.POST


def going_on(request: HttpRequest) -> list[Card] | None:
    """The cards that are left, when this form goes on. Raises `BadAnswer`."""
    return cards_of(request.POST["rest"].split()) if goes_on(request) else None


def cards_of(spelled: Sequence[str]) -> list[Card]:
    """Cards as a form spells them, `hold_…:digest`. Raises `BadAnswer`."""
    found = []
    for one in spelled:
        shown, colon, digest = one.partition(":")
        if not colon or not digest:
            raise BadAnswer("the form names a question without what was shown of it")
        found.append((hold_id_of(shown), digest))
    return found


def answer_part(request: HttpRequest, cards: Sequence[Card], *, answer: str, note: str) -> Part:
    """Answer the next part of these. Raises `BadAnswer` when they are none to be answered together."""
    seat = seat_of(request)
    before, count = _so_far(request)
    now = decide_each(
        tenant=seat.tenant,
        cards=cards[:PART],
        person=Person(Decider(seat.person_id, seat.role), actor_of(request)),
        answer=answer,
        note=note,
        goes_on=goes_on(request),
    )
    return Part(answer, note, before.and_then(now), tuple(cards[PART:]), count + len(cards))


def page(request: HttpRequest, part: Part, *, action: str) -> HttpResponse:
    """The page between two parts."""
    context: Mapping[str, Any] = {
        "part": part,
        "action": action,
        "rest": " ".join(f"{ids.show(ids.HOLD, hold)}:{digest}" for hold, digest in part.rest),
        "so_far": signing.dumps([asdict(part.done), part.count], salt=SALT),
    }
    return answer_page(request, "approvals/going_on.html", context)


def _so_far(request: HttpRequest) -> tuple[Outcomes, int]:
    """What became of the parts before, and how many those were."""
    if not goes_on(request):
        return Outcomes(), 0
    try:
        told, count = signing.loads(request.POST.get("so_far", ""), salt=SALT)
    except signing.BadSignature as error:
        raise BadAnswer("the form does not say what was answered before") from error
    before = tuple(Before(HoldState(one["state"]), one["answer"], one["by"], one["count"]) for one in told["before"])
    refused = tuple((why, number) for why, number in told["refused"])
    return Outcomes(told["taken"], told["with_job"], told["counted"], before, refused), count


def tell(request: HttpRequest, said: str, ended: Outcomes) -> None:
    """Say of every question what became of it: also of those that somebody else had answered, or that stay open.

    `said` says of a number of calls what the person did, with `{}` for them.
    """
    more = [f"{plural(ended.with_job, 'more question')} ended with the same jobs"] if ended.with_job else []
    if ended.taken or ended.with_job:
        messages.success(request, f"{'; '.join([said.format(plural(ended.taken, 'call')), *more])}.")
    if ended.counted:
        waits = "waits" if ended.counted == 1 else "wait"
        messages.info(request, f"{plural(ended.counted, 'question')} you approved {waits} for somebody else, too.")
    people = {one.by for one in ended.before if one.by is not None}
    names = dict(User.objects.filter(pk__in=people).values_list("pk", "username"))
    for one in ended.before:
        who = f"answered “{one.answer}” before by {names.get(one.by, 'somebody')}" if one.by else f"{one.state} before"
        messages.info(request, f"{plural(one.count, 'question')} {'was' if one.count == 1 else 'were'} {who}.")
    for why, count in ended.refused:
        messages.error(request, f"{plural(count, 'question')} could not be answered so, and stay open: {why}")
