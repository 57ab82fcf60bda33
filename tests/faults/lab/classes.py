"""The classes of functions that the lab's server has, and what may be asked of each."""

from dataclasses import dataclass
from typing import Final

SERVERS: Final = ("stdio", "box", "modern", "legacy")
FAR: Final = frozenset({"modern", "legacy"})


@dataclass(frozen=True, slots=True)
class Kind:
    """One function. `keyed` ones honour the key; `heeds` ones stop when they are cancelled; a liar says otherwise."""

    name: str
    reads: bool = False
    keyed: bool = False
    heeds: bool = True
    lies: bool = False
    approved: bool = False  # a person is asked before
    reports: bool = False

    @property
    def safe(self) -> bool:
        """Whether the studio takes it for retry-safe."""
        return self.reads or self.keyed


KINDS: Final = {
    kind.name: kind
    for kind in (
        Kind("look", reads=True),
        Kind("note"),
        Kind("charge", keyed=True),
        Kind("wipe", approved=True),
        Kind("polling"),
        Kind("stubborn", heeds=False),
        Kind("pages", reads=True, reports=True),
        Kind("search", reads=True, reports=True),
        Kind("busy", keyed=True),
        Kind("lies_reading", reads=True, lies=True),
        Kind("lies_keyed", keyed=True, lies=True),
    )
}


def can_stop(server: str, kind: Kind) -> bool:
    """Whether a cancel ends the function on this connection: in a sandbox with its process, else when it heeds it."""
    return server == "box" or kind.heeds
