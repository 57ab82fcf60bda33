"""A sandboxed tool: a server of its own for each job, kept apart as well as the machine can."""

from dataclasses import dataclass
from typing import Final

LEAST_MEMORY: Final = 64  # MiB
MOST_MEMORY: Final = 65_536


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What a sandboxed tool asks for: the network or not, and the MiB that each process of it may write to."""

    network: bool = False
    memory: int = 1024


_KEPT_APART: Final = {
    "bubblewrap": "in a sandbox (bubblewrap)",
    "namespaces": "in a sandbox (namespaces of its own)",
}


def words_for(isolation: str, *, network: bool) -> str:
    """How a tool's page says what its server was kept apart by, as measured; empty until it was."""
    if not isolation:
        return ""
    if isolation not in _KEPT_APART:
        return "process group only, network open"
    return f"{_KEPT_APART[isolation]}, {'network open, as its plugin asks' if network else 'no network'}"
