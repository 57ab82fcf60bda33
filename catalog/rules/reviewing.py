"""Who may say whether a remote server's word counts. The text that forbids explains the disabled button."""

from typing import Final

REVIEWING_ROLES: Final = frozenset({"author", "admin"})


def why_not_review(role: str) -> str | None:
    """Why a person of this role may not approve what a remote server lists; None when they may (RULES C3)."""
    if role not in REVIEWING_ROLES:
        return f"Authors and admins approve what a server says; your role here is {role}."
    return None
