"""The open questions of a tenant: the one list that every page counts, so that no two of them disagree."""

from typing import Final
from uuid import UUID

from django.db.models import QuerySet

from base import db
from jobs.models import Hold

MOST_COUNTED: Final = 1_001


def open_questions(*, kind: str = "", agent: str = "", tool: str = "", function: str = "") -> QuerySet[Hold]:
    """The questions that wait for a person; of one kind, agent, tool or function alone when named."""
    found = Hold.objects.filter(closed_at__isnull=True)
    wanted = {
        "kind": kind,
        "job__agent_name": agent,
        "call__tool_slug": tool,
        "call__function_name": function,
    }
    return found.filter(**{name: value for name, value in wanted.items() if value})


def question_exists(tenant: UUID, hold_id: UUID) -> bool:
    """Whether the tenant has such a question, open or closed."""
    with db.read(tenant):
        return Hold.objects.filter(pk=hold_id).exists()


def counted(questions: QuerySet[Hold]) -> int:
    """How many there are, at most 1,001."""
    return questions[:MOST_COUNTED].count()
