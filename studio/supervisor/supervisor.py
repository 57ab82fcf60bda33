"""Start parts in order, restart what dies with back-off, stop in reverse order."""

import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from studio.embedded.failure import CannotStart, Interrupted
from studio.supervisor.parts import Haste, Part, Program
from studio.supervisor.terminal import Terminal

FIRST_PAUSE: Final = 0.5  # seconds before the first restart; doubled for each further one
LONGEST_PAUSE: Final = 30.0
STEADY: Final = 20.0  # seconds alive after which earlier deaths no longer count
QUICK_STOP: Final = 4.6  # seconds after Ctrl-C in which everything has ended
WATCHED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class _Running:
    part: Part
    since: float = 0.0
    deaths: int = 0
    again_at: float | None = None  # when it is started again, while it is down


class Supervisor:
    """Runs its parts until a signal asks it to stop. Use it as a context manager: leaving stops everything."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal: Final = terminal
        self._running: list[_Running] = []
        self.haste = Haste.NONE
        self._wake, self._ring = os.pipe()
        self._before: dict[int, Any] = {}
        self._gone_by: float | None = None  # when everything has ended, once that is to be soon

    def __enter__(self) -> "Supervisor":
        for end in (self._wake, self._ring):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self._ring, warn_on_full_buffer=False)
        for number in WATCHED:
            self._before[number] = signal.signal(number, self._asked)
        self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        return self

    def __exit__(self, *_: object) -> None:
        self.haste = self.haste or Haste.QUICK
        for running in reversed(self._running):
            self._stop(running.part)
        signal.set_wakeup_fd(-1)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _asked(self, number: int, _frame: object) -> None:
        if self.haste is Haste.NONE:
            self.haste = Haste.DRAIN if number == signal.SIGTERM else Haste.QUICK
        elif self.haste is Haste.DRAIN and number == signal.SIGTERM:
            self.haste = Haste.QUICK
        else:
            self.haste = min(Haste.NOW, Haste(self.haste + 1)) if self.haste < Haste.NOW else Haste.NOW

    def stopping(self) -> bool:
        """Whether a stop was asked for, or nobody reads the terminal any more."""
        if self._terminal.closed and self.haste is Haste.NONE:
            self.haste = Haste.QUICK
        return self.haste is not Haste.NONE

    def add(self, part: Part) -> None:
        """Start a part and keep it running from now on. Raises `CannotStart` and `Interrupted`."""
        self._check()
        self._running.append(_Running(part, time.monotonic()))
        part.start(self.stopping)

    def run_once(self, program: Program) -> None:
        """Run a program to its end. Raises `CannotStart` with its last words when that is a failure."""
        with self.meanwhile(program):
            pass

    @contextmanager
    def meanwhile(self, program: Program) -> Iterator[None]:
        """Run a program beside what is done inside, and then to its end. Raises as `run_once` does."""
        self._check()
        program.start(self.stopping)
        try:
            yield
            self.wait_until(lambda: program.ended() is not None)
        finally:
            program.kill()
        if program.ended() != 0:
            raise CannotStart(f"{program.name} failed (exit code {program.ended()}):\n{program.last_words()}")

    def wait_until(self, truth: Callable[[], bool], *, poll: float = 0.5) -> None:
        """Keep everything running until `truth()` holds. Raises `Interrupted` when a stop is asked for."""
        while not truth():
            self._check()
            self._revive()
            self._sleep(min([poll, *(running.again_at - time.monotonic() for running in self._down())]))

    def _down(self) -> list[Any]:
        return [running for running in self._running if running.again_at is not None]

    def _check(self) -> None:
        if self.stopping():
            raise Interrupted

    def _sleep(self, seconds: float) -> None:
        """Wait for a signal (a child's end is one too) or for `seconds`."""
        if select.select([self._wake], [], [], max(0.0, seconds))[0]:
            try:
                os.read(self._wake, 4096)
            except BlockingIOError:
                return

    def _revive(self) -> None:
        now = time.monotonic()
        for running in self._running:
            part = running.part
            if running.again_at is None and (code := part.ended()) is not None:
                running.deaths = 0 if now - running.since > STEADY else running.deaths
                pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2**running.deaths)
                running.deaths += 1
                running.again_at = now + pause
                self._terminal.say(f"{part.name} ended ({_how(code)}); it starts again in {pause:g} s")
            elif running.again_at is not None and running.again_at <= now:
                running.again_at = None
                running.since = time.monotonic()
                try:
                    part.start(self.stopping)
                except CannotStart as error:
                    self._terminal.say(str(error))

    def _stop(self, part: Part) -> None:
        """Ask, wait, ask harder when the person does, and kill at the limit."""
        asked = Haste.NONE
        limit = 0.0
        while part.ended() is None:
            if self.haste > asked:
                asked = self.haste
                limit = time.monotonic() + part.stop(asked)
            if asked >= Haste.QUICK:
                self._gone_by = self._gone_by or time.monotonic() + QUICK_STOP
                limit = min(limit, self._gone_by)
            if time.monotonic() > limit:
                self._terminal.say(f"{part.name} did not end in time and is killed")
                break
            self._sleep(min(0.5, limit - time.monotonic() + 0.01))
        part.kill()


def _how(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
