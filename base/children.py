"""Starting programs that must not outlive this process: each runs under `base/guardian.py` (RULES L10).

Sync code calls `start(...)`. Async code builds the command itself and keeps the leash:

    leash = children.leash(argv, end=signal.SIGTERM, grace=2.0)
    try:
        process = await asyncio.create_subprocess_exec(
            *leash.argv, pass_fds=leash.pass_fds, start_new_session=True, stdin=PIPE, stdout=PIPE
        )
    finally:
        leash.handed_over()
    …
    leash.let_go()  # end, grace, kill; then `await process.wait()`

`process` is then the guardian: its standard streams are the program's own, and it ends as the program ended.
Never send SIGKILL to the guardian: `leash.send(signal.SIGKILL)` ends the program with all its descendants.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL, Signals
from types import TracebackType
from typing import IO, Any, Final, Self

GUARDIAN: Final = Path(__file__).with_name("guardian.py")
Stream = int | IO[Any] | None


class Leash:
    """The pipe between this process and one guardian: its closing, or our death, ends the program."""

    def __init__(self, argv: Sequence[str], options: Sequence[str]) -> None:
        self._theirs, self._ours = os.pipe()  # neither is inherited by any other child
        line = ["--line", str(self._theirs)]
        self.argv: Final = [sys.executable, "-I", "-S", str(GUARDIAN), *line, *options, "--", *argv]
        self.pass_fds: Final = (self._theirs,)

    def handed_over(self) -> None:
        """Close this process's copy of the guardian's end. Call it after starting, also when that failed."""
        if self._theirs >= 0:
            os.close(self._theirs)
            self._theirs = -1

    def send(self, number: Signals) -> None:
        """Send a signal to the program's process group; SIGKILL ends all descendants. Late is no error."""
        if self._ours >= 0:
            with suppress(BrokenPipeError):
                os.write(self._ours, bytes([number]))

    def let_go(self) -> None:
        """End the program the way it was started with: delay, signal, grace, then kill. Twice is no error."""
        if self._ours >= 0:
            os.close(self._ours)
            self._ours = -1

    def __del__(self) -> None:
        self.handed_over()
        self.let_go()


def leash(
    argv: Sequence[str],
    *,
    end: Signals | None = None,
    delay: float = 0.0,
    grace: float = 0.0,
    uid: int | None = None,
    gid: int | None = None,
) -> Leash:
    """The command line that runs `argv` under a guardian, and the pipe that holds it.

    When this process ends or lets go, the guardian waits `delay` seconds, sends `end`, waits `grace` seconds
    and kills every descendant; without `end` it kills after the delay. `uid` and `gid` run the program as
    another account (root only).
    """
    options = ["--delay", str(delay), "--grace", str(grace)]
    for name, value in (("--end", end), ("--uid", uid), ("--gid", gid)):
        if value is not None:
            options += [name, str(int(value))]
    return Leash(argv, options)


class Child:
    """A running guarded program."""

    def __init__(self, process: subprocess.Popen[bytes], held: Leash) -> None:
        self.process: Final = process
        self._leash: Final = held

    @property
    def returncode(self) -> int | None:
        """How it ended (minus a signal's number when it was killed), or None while it runs."""
        return self.process.poll()

    def send(self, number: Signals) -> None:
        """Send a signal to the program's process group; SIGKILL ends it with all descendants."""
        self._leash.send(number)

    def let_go(self) -> None:
        """End it the way it was started with; does not wait."""
        self._leash.let_go()

    def wait(self, timeout: float) -> int | None:
        """Its return code once it has ended with all descendants, or None after `timeout` seconds."""
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    def stop(self, number: Signals, *, grace: float) -> int:
        """Send a signal, wait `grace` seconds, then kill; its return code."""
        self.send(number)
        code = self.wait(grace)
        if code is None:
            self.send(SIGKILL)
            code = self.process.wait()
        self.let_go()
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.send(SIGKILL)
        self.let_go()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


def start(
    argv: Sequence[str],
    *,
    end: Signals | None = None,
    delay: float = 0.0,
    grace: float = 0.0,
    uid: int | None = None,
    gid: int | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: Stream = subprocess.DEVNULL,
    stdout: Stream = None,
    stderr: Stream = None,
) -> Child:
    """Run `argv` under a guardian; the other arguments are those of `leash` and of `subprocess.Popen`.

    A program that cannot be started ends with 127 (no such file) or 126 and one line on `stderr`.
    """
    held = leash(argv, end=end, delay=delay, grace=grace, uid=uid, gid=gid)
    try:
        process = subprocess.Popen(
            held.argv,
            pass_fds=held.pass_fds,
            start_new_session=True,  # a terminal's Ctrl-C reaches this process only, which then decides
            env=env,
            cwd=cwd,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
        )
    except BaseException:
        held.let_go()
        raise
    finally:
        held.handed_over()
    return Child(process, held)
