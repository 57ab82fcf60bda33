"""Who may answer what. The text that forbids is the text that explains a disabled button (STYLE 21)."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from base.figures import plural
from catalog.rules.kinds import Kind
from jobs.rules.states import HoldKind

ROLES: Final = ("operator", "author", "admin")  # that decide at all, each of them also what the ones before it do
DECIDING_ROLES: Final = frozenset(ROLES)
STARTERS_OWN: Final = frozenset({"happened", "stop"})  # RULES U6
ANYBODYS: Final = frozenset({"happened", "finished", "stop"})  # of those who decide: no role for a kind is needed
APPROVING: Final = frozenset({"approve", "edit", "again", "start_again"})
MOST_APPROVERS: Final = 5


class BadRules(ValueError):
    """Deciding rules that cannot be saved; the message says why."""


@dataclass(frozen=True, slots=True)
class DecidingRules:
    """A tenant's settings of who decides (RULES A10), by the kind of function.

    `roles` is the least role, operator where a kind is not named; `approvers` how many people must approve, one where
    it is not. `no_self_approval` keeps whoever started a job, also through a key, from approving its calls.
    """

    roles: Mapping[str, str] = field(default_factory=dict)
    approvers: Mapping[str, int] = field(default_factory=dict)
    no_self_approval: bool = False

    @staticmethod
    def read(settings: Mapping[str, Any]) -> "DecidingRules":
        """The rules in a tenant's settings. What is odd in them leans to caution: an admin, and two of them."""
        raw = settings.get("deciding", {})
        raw = raw if isinstance(raw, Mapping) else {"roles": None, "approvers": None}
        roles, approvers = raw.get("roles", {}), raw.get("approvers", {})
        return DecidingRules(
            roles={kind: _role(roles, kind) for kind in Kind if _named(roles, kind)},
            approvers={kind: _count(approvers, kind) for kind in Kind if _named(approvers, kind)},
            no_self_approval=settings.get("no_self_approval", False) is not False,
        )

    def role(self, kind: str) -> str:
        """The least role that decides calls of this kind."""
        return self.roles.get(kind or Kind.UNDECLARED, ROLES[0])

    def needed(self, kind: str) -> int:
        """How many people must approve a call of this kind."""
        return self.approvers.get(kind or Kind.UNDECLARED, 1)

    def as_json(self) -> dict[str, Any]:
        """The same as the tenant's settings keep it."""
        return {"roles": dict(self.roles), "approvers": dict(self.approvers)}


def _named(raw: Any, kind: Kind) -> bool:
    return not isinstance(raw, Mapping) or kind.value in raw


def _role(raw: Any, kind: Kind) -> str:
    role = raw.get(kind.value) if isinstance(raw, Mapping) else None
    return role if role in ROLES else ROLES[-1]


def _count(raw: Any, kind: Kind) -> int:
    count = raw.get(kind.value) if isinstance(raw, Mapping) else None
    return count if isinstance(count, int) and not isinstance(count, bool) and 1 <= count <= MOST_APPROVERS else 2


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
    function_kind: str
    rules: DecidingRules


def why_not_decide(person: Decider, question: Question, answer: str) -> str | None:
    """Why this person may not give this answer, in words for them; None when they may (RULES A5, A10, U6)."""
    own = question.started_by == person.user_id
    if answer in STARTERS_OWN and question.kind is HoldKind.UNKNOWN and own:
        return None
    if person.role not in DECIDING_ROLES:
        return "Operators decide; your role here is viewer."
    least = question.rules.role(question.function_kind)
    if answer not in ANYBODYS and ROLES.index(person.role) < ROLES.index(least):
        kind = question.function_kind or Kind.UNDECLARED
        return f"For a call that is {kind} this needs the role {least} here; yours is {person.role}."
    if own and question.rules.no_self_approval and answer in APPROVING:
        return "You started this job, and this workspace does not let people approve their own."
    return None


def why_not_change(role: str) -> str | None:
    """Why a person of this role may not change who decides; None when they may."""
    return None if role == "admin" else f"Admins change who decides; your role here is {role}."


def still_to_come(have: int, needed: int) -> str:
    """What more is needed before a call runs that somebody approved."""
    return f"{have} of {needed} approved: {plural(needed - have, 'more person', 'more people')} must"


def shown_digest(*, hold: UUID, kind: str, binding: str, arguments: str) -> str:
    """The digest of what a card shows; it comes back with the answer and is kept with the decision (RULES A12)."""
    return hashlib.sha256(f"{hold}|{kind}|{binding}|{arguments}".encode()).hexdigest()


def set_digest(cards: Sequence[str]) -> str:
    """The digest of several cards that are answered together, in their order."""
    return hashlib.sha256("|".join(cards).encode()).hexdigest()
