"""What a node's process does: the host with its pulse, and the messages that wake it."""

from jobs.tasks import calls

__all__ = ["calls"]
