"""Many questions answered at once: each by the one function that decides, a part of them at a time (RULES A6, U7)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from approvals.operations.decide import Counted, MayNot, Person, decide
from approvals.queries.floods import MOST, card_digest, digest_of
from base import db
from catalog.rules.kinds import Kind
from jobs.models import Hold
from jobs.operations.holds import Answer, BadAnswer, Closed
from jobs.rules.states import HoldKind, HoldState

CHANNEL: Final = "group"
PART: Final = 20  # questions that are answered before the page says how far it is

type Card = tuple[UUID, str]  # a question, and the digest of what was shown of it


@dataclass(frozen=True, slots=True)
class Before:
    """Questions that somebody, or something, had closed before: how, with which answer, and who."""

    state: HoldState
    answer: str
    by: int | None
    count: int


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What became of a group. `with_job` were withdrawn by stopping the job of another one of it.

    `counted` are approved by one person more and wait for others. `refused` are left open, by the reason why.
    """

    taken: int = 0
    with_job: int = 0
    counted: int = 0
    before: tuple[Before, ...] = ()
    refused: tuple[tuple[str, int], ...] = ()

    def and_then(self, more: "Outcomes") -> "Outcomes":
        """This and what became of a further part."""
        before: Counter[tuple[HoldState, str, int | None]] = Counter()
        for one in (*self.before, *more.before):
            before[one.state, one.answer, one.by] += one.count
        refused: Counter[str] = Counter()
        for why, count in (*self.refused, *more.refused):
            refused[why] += count
        return Outcomes(
            self.taken + more.taken,
            self.with_job + more.with_job,
            self.counted + more.counted,
            tuple(Before(*how, count) for how, count in before.most_common()),
            tuple(refused.most_common()),
        )


def decide_together(
    *, tenant: UUID, holds: Sequence[UUID], person: Person, answer: str, note: str = "", shown: str
) -> Outcomes:
    """Give one answer to exactly these questions, one decision each; one that cannot take it stays as it is.

    `shown` is the digest of the group the person saw. Raises `BadAnswer`, and then nothing was answered, when they are
    not what was shown, or are none to be answered together.
    """
    return decide_each(
        tenant=tenant, cards=shown_together(tenant, holds, shown), person=person, answer=answer, note=note
    )


def shown_together(tenant: UUID, holds: Sequence[UUID], shown: str) -> list[Card]:
    """The cards of a group, when it is what was shown. Raises `BadAnswer`."""
    rows = _rows(tenant, holds)
    if len(rows) != len(set(holds)) or digest_of(rows) != shown:
        raise BadAnswer("these are not the questions that you were shown; look again and answer then")
    return [(row.pk, card_digest(row)) for row in rows]


def decide_each(
    *, tenant: UUID, cards: Sequence[Card], person: Person, answer: str, note: str = "", goes_on: bool = False
) -> Outcomes:
    """Give one answer to each of these questions as it was shown. Raises `BadAnswer` when they are none for that.

    `goes_on` says that a part of the same group was answered before: its stopped jobs may have taken these along.
    """
    rows = _rows(tenant, [hold for hold, _ in cards])
    if len(rows) != len({hold for hold, _ in cards}):
        raise BadAnswer("these are not the questions that you were shown; look again and answer then")
    if why := why_not_together(rows, answer):
        raise BadAnswer(why)
    job_of = {row.pk: row.job_id for row in rows}
    done, jobs = Outcomes(), set[UUID]()
    for hold_id, card in cards:
        one = _one(tenant, hold_id, card, person, answer, note, stopped=goes_on or job_of[hold_id] in jobs)
        if one.taken:
            jobs.add(job_of[hold_id])
        done = done.and_then(one)
    return done


def _one(tenant: UUID, hold_id: UUID, card: str, person: Person, answer: str, note: str, *, stopped: bool) -> Outcomes:
    try:
        ended = decide(
            tenant=tenant, hold_id=hold_id, person=person, answer=answer, note=note, shown=card, channel=CHANNEL
        )
    except (MayNot, BadAnswer) as error:
        return Outcomes(refused=((str(error), 1),))
    if isinstance(ended, Counted):
        return Outcomes(counted=1)
    if not isinstance(ended, Closed):
        return Outcomes(taken=1)
    if ended.state is HoldState.WITHDRAWN and answer == Answer.STOP and stopped:
        return Outcomes(with_job=1)
    return Outcomes(before=(Before(ended.state, ended.answer, ended.by, 1),))


def why_not_together(rows: Sequence[Hold], answer: str) -> str:
    """Why one answer is not for all of these, whose calls are loaded; empty when it is.

    Unknown outcomes of one tool and cause are answered together, and run again only where each honours its key (RULES
    U7). Questions whether a call may run are denied together, and approved only where they are of one function that
    reads.
    """
    kinds = {row.kind for row in rows}
    if kinds == {HoldKind.UNKNOWN.value}:
        if len({(row.call.tool_slug, row.why) for row in rows}) != 1:
            return "only unknown outcomes of one tool and cause are answered together"
        if answer == Answer.AGAIN and not all(row.call.honours_key for row in rows):
            return "calls are run again together only where each honours its key"
        return ""
    if not kinds <= {HoldKind.APPROVE.value, HoldKind.RETRY.value}:
        return "only unknown outcomes of one tool and cause are answered together"
    if answer == Answer.APPROVE:
        functions = {(row.call.tool_slug, row.call.function_name) for row in rows}
        if len(functions) != 1 or any(row.call.kind != Kind.READ for row in rows):
            return "only calls of one function that reads are approved together"
        return ""
    return "" if answer == Answer.DENY else f"{answer[:40]!r} is not given to several at once"


def _rows(tenant: UUID, holds: Sequence[UUID]) -> list[Hold]:
    """These questions in their order, with their calls. Raises `BadAnswer` when they are none or too many."""
    if not holds or len(holds) > MOST:
        raise BadAnswer(f"between 1 and {MOST} questions are answered together, not {len(holds):,}")
    with db.read(tenant):
        found = {hold.pk: hold for hold in Hold.objects.filter(pk__in=holds).select_related("call")}
    return [found[pk] for pk in holds if pk in found]
