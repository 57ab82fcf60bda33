"""Many unknown outcomes of one tool and cause, answered at once: each by the one function that decides (RULES U7)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from approvals.operations.decide import MayNot, Person, decide
from approvals.queries.floods import MOST, card_digest, digest_of
from base import db
from jobs.models import Hold
from jobs.operations.holds import Answer, BadAnswer, Closed
from jobs.rules.states import HoldKind, HoldState

CHANNEL: Final = "group"


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

    `refused` are left open, by the reason why.
    """

    taken: int
    with_job: int
    before: tuple[Before, ...]
    refused: tuple[tuple[str, int], ...]


def decide_together(
    *, tenant: UUID, holds: Sequence[UUID], person: Person, answer: str, note: str = "", shown: str
) -> Outcomes:
    """Give one answer to exactly these questions, one decision each; one that cannot take it stays as it is.

    `shown` is the digest of the group the person saw. Raises `BadAnswer`, and then nothing was answered, when they are
    not what was shown, or are none to be answered together.
    """
    cards = _checked(tenant, holds, answer, shown)
    taken, with_job, jobs = 0, 0, set[UUID]()
    before: Counter[tuple[HoldState, str, int | None]] = Counter()
    refused: Counter[str] = Counter()
    for hold_id, (card, job_id) in cards.items():
        try:
            ended = decide(
                tenant=tenant,
                hold_id=hold_id,
                person=person,
                answer=answer,
                note=note,
                shown=card,
                channel=CHANNEL,
            )
        except (MayNot, BadAnswer) as error:
            refused[str(error)] += 1
            continue
        if not isinstance(ended, Closed):
            taken += 1
            jobs.add(job_id)
        elif ended.state is HoldState.WITHDRAWN and answer == Answer.STOP and job_id in jobs:
            with_job += 1
        else:
            before[ended.state, ended.answer, ended.by] += 1
    return Outcomes(
        taken,
        with_job,
        tuple(Before(*how, count) for how, count in before.most_common()),
        tuple(refused.most_common()),
    )


def _checked(tenant: UUID, holds: Sequence[UUID], answer: str, shown: str) -> dict[UUID, tuple[str, UUID]]:
    """The digest of each question's card, and its job. Raises `BadAnswer` when they cannot be answered together."""
    if not holds or len(holds) > MOST:
        raise BadAnswer(f"between 1 and {MOST} questions are answered together, not {len(holds):,}")
    with db.read(tenant):
        found = {hold.pk: hold for hold in Hold.objects.filter(pk__in=holds).select_related("call").order_by("pk")}
    rows = [found[pk] for pk in holds if pk in found]
    if len(rows) != len(set(holds)) or digest_of(rows) != shown:
        raise BadAnswer("these are not the questions that you were shown; look again and answer then")
    if len({(row.kind, row.call.tool_slug, row.why) for row in rows}) != 1 or rows[0].kind != HoldKind.UNKNOWN:
        raise BadAnswer("only unknown outcomes of one tool and cause are answered together")
    if answer == Answer.AGAIN and not all(row.call.honours_key for row in rows):
        raise BadAnswer("calls are run again together only where each honours its key")
    return {row.pk: (card_digest(row), row.job_id) for row in rows}
