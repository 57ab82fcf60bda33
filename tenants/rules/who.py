"""Who does something, as it is written into the audit log."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Actor:
    """A person or the system itself. `how` says how they signed in and from where, for example `link, 127.0.0.1`."""

    name: str
    how: str
    user_id: int | None = None


SYSTEM: Final = Actor("oz0", "by itself")
