"""The answers by which a caller knows that nothing of what it sent was accepted (RULES S1)."""

from typing import Final

TOO_MANY: Final = "the journal executes as many operations as it can"
NO_DATABASE: Final = "the journal's database takes no connections"
TEXTS: Final = (TOO_MANY, NO_DATABASE)
RETRY_AFTER: Final = "1"  # seconds
