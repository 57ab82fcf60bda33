"""A harness session as it crosses between the core and the node: what to start, and how it ended. Plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from catalog.rules.sandbox import Sandbox

CLEANUP: Final = 6.0  # seconds that a program has after SIGTERM, before it and all it started are killed
MOST_OUTPUT: Final = 64 * 1024  # bytes of the end of what it wrote, on each of its streams, that are kept
SHOWN_ERRORS: Final = 2_000  # characters of the end of its standard error that a failed job shows


@dataclass(frozen=True, slots=True)
class SessionOrder:
    """One start of a session's program, complete. `given` is what it reads from its standard input.

    `servers` are the addresses that it may reach, the studio's first; `allowed` the `host:port` entries of them that
    may be reached although they are not public.
    """

    tenant: UUID
    job_id: UUID
    session_id: UUID
    incarnation: int
    argv: tuple[str, ...]
    cwd: str
    sandbox: Sandbox
    servers: tuple[str, ...]
    allowed: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    given: bytes = field(repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    cleanup: float = CLEANUP


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """How a session's program ended. `code` is its exit code, negative for a signal; None when it never started.

    `trouble` says then why. `stopped` says that the node ended it, `output` and `errors` are the end of its streams.
    """

    code: int | None
    output: str = ""
    errors: str = ""
    trouble: str = ""
    stopped: bool = False

    @property
    def is_good(self) -> bool:
        """Whether it ended by itself, as a program does that has done its work."""
        return self.code == 0 and not self.stopped

    @property
    def says(self) -> str:
        """One sentence on how it ended, and the end of its standard error, for a person."""
        if self.code is None:
            return f"Its program could not be started: {self.trouble}"
        how = f"by signal {-self.code}" if self.code < 0 else f"with exit code {self.code}"
        last = self.errors.strip()[-SHOWN_ERRORS:]
        return f"Its program ended {how}." + (f" Its standard error ended: {last}" if last else "")
