"""What the vault calls the secrets of people deciding."""

from uuid import UUID


def signing_name(channel: UUID) -> str:
    """What the vault calls the secret that a channel's webhooks are signed with."""
    return f"channel {channel}"
