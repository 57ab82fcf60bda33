"""Who may change which plugins there are. The text that forbids explains the disabled button."""

from typing import Final

BRINGING_ROLES: Final = frozenset({"author", "admin"})
REMOVING_ROLES: Final = frozenset({"admin"})


def why_not_bring(role: str) -> str | None:
    """Why a person of this role may not upload a plugin or choose its version; None when they may."""
    if role not in BRINGING_ROLES:
        return f"Authors and admins bring plugins and choose versions; your role here is {role}."
    return None


def why_not_remove(role: str) -> str | None:
    """Why a person of this role may not remove a plugin; None when they may."""
    if role not in REMOVING_ROLES:
        return f"Admins remove plugins; your role here is {role}."
    return None
