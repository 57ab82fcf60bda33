"""What the embedded services share: started under the guardian, asked until they answer, stopped in order."""

import abc
import os
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL, Signals
from types import TracebackType
from typing import Final, Self

from base import children
from studio.embedded.failure import CannotStart, Interrupted, cannot_keep
from studio.embedded.place import place_of
from studio.embedded.spoken import Sink, Spoken

LIMIT: Final = 60.0  # seconds to answer; a database that recovers from a crash may need many of them
RETRIES_FOR: Final = 12.0  # seconds in which a service that ends at once is tried again: its predecessor may be dying
FIRST_PAUSE: Final = 0.25  # seconds between two of those tries, doubled for each
PAUSE: Final = 0.05  # seconds between two questions whether it answers
NEVER_RAN: Final = (126, 127)  # the exit codes of a program that could not be executed
# Its environment is its own, but what the dynamic linker was told is needed to run anything here at all.
LINKER: Final = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH")


class Service(abc.ABC):
    """One embedded server. As a context manager it runs from entry to exit."""

    name: str
    stop_with: Signals
    grace: float  # seconds between that signal and the kill
    farewell: Signals | None  # what it gets when this process is gone; None is the kill

    def __init__(self, home: Path, *, keep: bool = True, outlive: float = 0.0, sink: Sink | None = None) -> None:
        """`home` is the state folder; `outlive` is how many seconds the server survives our sudden death.

        Without `keep` its data is deleted when the context ends. `sink` is given each line the server prints.
        """
        self.home: Final = home.absolute()
        self.place: Final = place_of(self.home)
        self.child: children.Child | None = None
        self._keep = keep
        self._outlive = outlive
        self._sink: Sink = sink or (lambda _line: None)
        self._spoken: Spoken | None = None

    @abc.abstractmethod
    def argv(self) -> list[str]:
        """The command that runs the server in the foreground; prepares what it needs."""

    def stdin(self) -> bytes:
        """What the server reads from its standard input."""
        return b""

    @abc.abstractmethod
    def ask(self) -> str | None:
        """None when the server answers us, else why it does not yet."""

    @abc.abstractmethod
    def remains(self) -> list[Path]:
        """The files and folders it leaves behind."""

    def start(self, give_up: Callable[[], bool] = lambda: False) -> None:
        """Run it until it answers. A server that ends while starting is tried again for a while.

        Raises `CannotStart` with its last words, and `Interrupted` when `give_up` turns true.
        """
        began = time.monotonic()
        argv = self.argv()
        pause = FIRST_PAUSE
        while True:
            self._launch(argv)
            why = self._until_it_answers(began, give_up)
            if why is None:
                return
            self.kill()
            if self.ended() in NEVER_RAN or time.monotonic() - began > RETRIES_FOR:
                raise CannotStart(f"{self.name} does not start: {why}")
            self._pause(pause, give_up)
            pause *= 2

    def environment(self) -> dict[str, str]:
        """What the server's programs see of ours: nothing that could change what they do."""
        linker = {name: os.environ[name] for name in LINKER if name in os.environ}
        return {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC", "HOME": str(self.place.data)} | linker

    def _launch(self, argv: list[str]) -> None:
        try:
            self.child = children.start(
                argv,
                end=self.farewell,
                delay=self._outlive,
                grace=1.0,
                uid=self.place.uid,
                gid=self.place.gid,
                env=self.environment(),
                cwd=self.place.data,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        except OSError as error:
            raise cannot_keep(f"{self.name} running", error) from error
        process = self.child.process
        if process.stdin is None or process.stdout is None:
            raise AssertionError("both were asked for")
        self._spoken = Spoken(process.stdout, self._sink)
        with suppress(BrokenPipeError):  # it has ended already; its last words say why
            process.stdin.write(self.stdin())
            process.stdin.close()

    def _until_it_answers(self, began: float, give_up: Callable[[], bool]) -> str | None:
        """None once it answers, else why it ended; raises `CannotStart` at the limit."""
        while True:
            reason = self.ask()
            if reason is None:
                return None
            if self.ended() is not None:
                return self.last_words() or f"it ended with code {self.ended()}"
            if time.monotonic() - began > LIMIT:
                self.kill()
                raise CannotStart(f"{self.name} did not answer in {LIMIT:.0f} s: {reason}")
            self._pause(PAUSE, give_up)

    def _pause(self, seconds: float, give_up: Callable[[], bool]) -> None:
        if give_up():
            self.stop()
            raise Interrupted
        time.sleep(seconds)

    def ended(self) -> int | None:
        """How the server ended (minus a signal's number), or None while it runs."""
        return self.child.returncode if self.child else 0

    def last_words(self) -> str:
        """The last lines it printed."""
        return self._spoken.last_words() if self._spoken else ""

    def stop(self) -> None:
        """End it in order, and by force when that takes too long. Not running is no error."""
        if self.child:
            self.child.stop(self.stop_with, grace=self.grace)

    def kill(self) -> None:
        """End it with all its processes as a power cut would."""
        if self.child:
            self.child.stop(SIGKILL, grace=10.0)

    def restart(self) -> None:
        """Stop and start again, at the same address."""
        self.stop()
        self.start()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if not self._keep:
            self.place.remove(*self.remains())
