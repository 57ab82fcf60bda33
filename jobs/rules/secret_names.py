"""What the vault calls the secrets of what starts jobs."""

from uuid import UUID


def signing_name(hook: UUID) -> str:
    """The secret that a hook's events are signed with."""
    return f"hook {hook}"


def old_signing_name(hook: UUID) -> str:
    """The one before it, which counts for a while after it was replaced."""
    return f"hook {hook} before"
