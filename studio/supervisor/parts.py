"""What the supervisor runs: embedded services, and programs of the product."""

import enum
import subprocess
from collections.abc import Callable, Mapping, Sequence
from signal import SIGINT, SIGKILL, SIGTERM, Signals
from typing import Final, Protocol

from base import children
from studio.embedded.service import Service
from studio.embedded.spoken import Sink, Spoken


class Haste(enum.IntEnum):
    """How a stop was asked for; it only ever grows."""

    NONE = 0
    DRAIN = 1
    """SIGTERM: running attempts may end by themselves."""
    QUICK = 2
    """Ctrl-C: everything is gone in under five seconds."""
    NOW = 3
    """Asked once more: kill."""


class Part(Protocol):
    """Something that is started, may die and be started again, and is stopped."""

    name: str

    def start(self, give_up: Callable[[], bool]) -> None:
        """Run it. May raise `CannotStart`, or `Interrupted` once `give_up` is true."""

    def ended(self) -> int | None:
        """Its return code, or None while it runs."""

    def stop(self, haste: Haste) -> float:
        """Ask it to end; the value is how many seconds it may take."""

    def kill(self) -> None:
        """End it with all descendants and wait for that."""


class ServicePart:
    """An embedded server."""

    def __init__(self, name: str, service: Service, patience: float) -> None:
        self.name = name
        self._service: Final = service
        self._patience: Final = patience

    def start(self, give_up: Callable[[], bool]) -> None:
        """Run it until it answers."""
        self._service.start(give_up)

    def ended(self) -> int | None:
        """Its return code, or None while it runs."""
        return self._service.ended()

    def stop(self, haste: Haste) -> float:
        """Its own orderly end is always quick."""
        if self._service.child is not None:
            self._service.child.send(SIGKILL if haste is Haste.NOW else self._service.stop_with)
        return self._patience

    def kill(self) -> None:
        """End it as a power cut would; it recovers at the next start."""
        self._service.kill()


class Program:
    """A program of the product. `patience` is how many seconds it may take to end, for each haste below NOW."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        env: Mapping[str, str],
        sink: Sink,
        *,
        farewell: Signals = SIGTERM,
        grace: float = 1.5,
        patience: Mapping[Haste, float] | None = None,
    ) -> None:
        """`farewell` and `grace` are what its guardian does when the supervisor is gone."""
        self.name = name
        self._argv: Final = list(argv)
        self._env: Final = dict(env)
        self._sink: Final = sink
        self._farewell: Final = farewell
        self._grace: Final = grace
        self._patience: Final = patience or {}
        self._child: children.Child | None = None
        self._spoken: Spoken | None = None

    def start(self, give_up: Callable[[], bool]) -> None:
        """Run it; it is not waited for."""
        self._child = children.start(
            self._argv,
            env=self._env,
            end=self._farewell,
            grace=self._grace,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        if self._child.process.stdout is not None:
            self._spoken = Spoken(self._child.process.stdout, self._sink)

    def ended(self) -> int | None:
        """Its return code, or None while it runs."""
        return self._child.returncode if self._child else 0

    def last_words(self) -> str:
        """The last lines it printed."""
        return self._spoken.last_words() if self._spoken else ""

    def stop(self, haste: Haste) -> float:
        """SIGTERM lets attempts finish, SIGINT ends them soon."""
        if self._child is not None:
            self._child.send({Haste.DRAIN: SIGTERM, Haste.QUICK: SIGINT}.get(haste, SIGKILL))
        return self._patience.get(haste, 1.0)

    def kill(self) -> None:
        """End it with all descendants."""
        if self._child is not None:
            self._child.stop(SIGKILL, grace=10.0)
