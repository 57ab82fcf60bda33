"""Questions whether calls may run, with all of their arguments, to be answered several at once."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from approvals.queries.deciding_rules import deciding_rules, question_of
from approvals.queries.floods import card_digest
from approvals.queries.queue import QueueFilter
from approvals.rules.deciding import Question
from approvals.rules.readable import Line, lines
from base import db, ids
from base.text import pretty
from catalog.rules.kinds import Kind
from jobs.models import Hold
from jobs.queries.questions import counted, open_questions
from jobs.queries.trace import name_of
from jobs.queries.veil import Veil
from jobs.rules.states import HoldKind

MOST: Final = 100  # on one page
LONGEST: Final = 2_000  # characters of the arguments that are shown of one call


@dataclass(frozen=True, slots=True)
class SeveralRow:
    """One question. `card` is its id and the digest of what is shown; `whole` says that all of it is."""

    shown_id: str
    card: str
    name: str
    kind: str
    agent: str
    shown_job: str
    why: str
    opened_at: datetime
    lines: tuple[Line, ...]
    text: str
    whole: bool
    question: Question


@dataclass(frozen=True, slots=True)
class Several:
    """The oldest hundred questions that fit. `why_not_approve` says why they are not approved together."""

    rows: tuple[SeveralRow, ...]
    total: int
    functions: tuple[str, ...]
    why_not_approve: str
    now: datetime


def several(tenant: UUID, wanted: QueueFilter, *, role: str = "") -> Several:
    """The open questions of whether a call may run that fit the filter, as `role` may see them, the oldest first."""
    with db.read(tenant) as now:
        found = open_questions(agent=wanted.agent, tool=wanted.tool, function=wanted.function)
        kinds = [wanted.kind] if wanted.kind in _KINDS else list(_KINDS)
        fitting = found.filter(kind__in=kinds)
        rules = deciding_rules(tenant)
        holds = list(fitting.select_related("call__arguments_body", "job").order_by("pk")[:MOST])
        veil = Veil.over(role)
        rows = tuple(_row(hold, question_of(hold, rules), veil) for hold in holds)
        return Several(
            rows=rows,
            total=counted(fitting),
            functions=tuple(sorted({row.name for row in rows})),
            why_not_approve=_why_not_approve(rows),
            now=now,
        )


_KINDS: Final = (HoldKind.APPROVE.value, HoldKind.RETRY.value)


def _row(hold: Hold, question: Question, veil: Veil) -> SeveralRow:
    call = hold.call
    kept = call.arguments_body.data if call.arguments_body else call.arguments
    arguments = veil.any(call.tool_slug, kept)
    text = pretty(arguments)
    whole = len(text) <= LONGEST
    return SeveralRow(
        shown_id=ids.show(ids.HOLD, hold.pk),
        card=f"{ids.show(ids.HOLD, hold.pk)}:{card_digest(hold)}",
        name=name_of(call),
        kind=call.kind or Kind.UNDECLARED.value,
        agent=hold.job.agent_name,
        shown_job=ids.show(ids.JOB, hold.job_id),
        why=hold.why,
        opened_at=hold.opened_at,
        lines=lines(arguments) if whole else (),
        text=text if whole else text[:LONGEST],
        whole=whole,
        question=question,
    )


def _why_not_approve(rows: tuple[SeveralRow, ...]) -> str:
    if len({row.name for row in rows}) > 1:
        return "Only calls of one function that reads are approved together: choose one above, or open each."
    if any(row.kind != Kind.READ for row in rows):
        return "Only calls that read are approved together, and these may write: open each of them."
    if not all(row.whole for row in rows):
        return "Not all arguments fit on this page: open the calls whose arguments are cut."
    return ""
