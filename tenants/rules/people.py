"""What each role lets a person do, and who may change whose (RULES A10, A12).

The text that forbids is the text that explains: it guards the POST and fills the disabled button's title.
"""

from dataclasses import dataclass
from typing import Final

ROLES: Final[dict[str, str]] = {
    "viewer": "Sees jobs, traces, questions and the catalog. Changes nothing.",
    "operator": "Also starts and stops jobs, answers approvals and unknown outcomes, and pauses work.",
    "author": "Also approves what remote servers list, and reads what servers write to their logs.",
    "admin": "Also changes policy, switches, connections, secrets, people and everybody's tokens.",
}
"""Each role with what it adds to the ones before it, from the least to the most."""

ADMIN: Final = "admin"
ADMINS_CHANGE: Final = "Admins change who belongs to this workspace, and as what."
NOT_YOURSELF: Final = "You cannot change or remove yourself: another admin does that."
LAST_ADMIN: Final = "This is the last admin. Make somebody else an admin first."
SHORTEST: Final = 12
LONGEST: Final = 4096


@dataclass(frozen=True, slots=True)
class Standing:
    """A person's place among the others: whose it is, as what, and how many admins there are besides them."""

    person_id: int
    role: str
    other_admins: int


def why_not_change(me: int, my_role: str, them: Standing, role: str | None) -> str | None:
    """Why this person may not give that one this role, or (None) remove them; None when they may."""
    if my_role != ADMIN:
        return ADMINS_CHANGE
    if them.person_id == me:
        return NOT_YOURSELF
    if them.role == ADMIN and role != ADMIN and them.other_admins == 0:
        return LAST_ADMIN
    return None


def why_no_password(password: str, username: str) -> str | None:
    """Why this cannot be somebody's password, or None. Length is what counts; no other rule makes one better."""
    if len(password) < SHORTEST:
        return f"A password has at least {SHORTEST} characters."
    if len(password) > LONGEST:
        return f"A password has at most {LONGEST} characters."
    if len(set(password)) < 4:
        return "This password repeats very few characters: choose another one."
    if username and username.casefold() in password.casefold():
        return "A password does not contain its person's name."
    return None
