"""Who may answer what. The text that forbids is the text that explains a disabled button (STYLE 21)."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from jobs.rules.states import HoldKind

DECIDING_ROLES: Final = frozenset({"operator", "author", "admin"})
STARTERS_OWN: Final = frozenset({"happened", "stop"})  # RULES U6


@dataclass(frozen=True, slots=True)
class Decider:
    """The person who wants to answer, as their session says; never as a form says (RULES A5)."""

    user_id: int
    role: str


@dataclass(frozen=True, slots=True)
class Question:
    """What bears on who may answer a hold. `started_by` is the person behind the job, also through a key."""

    kind: HoldKind
    started_by: int | None
    no_self_approval: bool


def why_not_decide(person: Decider, question: Question, answer: str) -> str | None:
    """Why this person may not give this answer, in words for them; None when they may (RULES A5, A10, U6)."""
    own = question.started_by == person.user_id
    if answer in STARTERS_OWN and question.kind is HoldKind.UNKNOWN and own:
        return None
    if person.role not in DECIDING_ROLES:
        return "Operators decide; your role here is viewer."
    if own and question.no_self_approval and answer in ("approve", "again"):
        return "You started this job, and this workspace does not let people approve their own."
    return None


def shown_digest(*, hold: UUID, kind: str, binding: str, arguments: str) -> str:
    """The digest of what a card shows; it comes back with the answer and is kept with the decision (RULES A12)."""
    return hashlib.sha256(f"{hold}|{kind}|{binding}|{arguments}".encode()).hexdigest()


def set_digest(cards: Sequence[str]) -> str:
    """The digest of several cards that are answered together, in their order."""
    return hashlib.sha256("|".join(cards).encode()).hexdigest()
