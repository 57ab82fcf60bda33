"""Who sees a call's arguments and results: everybody of the workspace, but of a tool that is marked sensitive, whose
calls viewers see without them (RULES A14)."""

from typing import Final

SEEING_ROLES: Final = frozenset({"operator", "author", "admin"})
HIDDEN: Final = "hidden from viewers: this tool is marked sensitive"


def why_not_see(role: str, *, sensitive: bool) -> str | None:
    """What somebody of this role sees instead of arguments and results; None when they see them."""
    return HIDDEN if sensitive and role not in SEEING_ROLES else None
