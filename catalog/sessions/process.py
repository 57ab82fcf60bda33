"""A plugin's server as a process: started under the guardian, its pipes ours, its end noticed at once (RULES L10)."""

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from base import children, sandbox
from catalog.rules.sandbox import Sandbox
from catalog.rules.servers import HANDED_ON
from catalog.sessions.lines import Lines, Overlong
from catalog.sessions.log import LONGEST, Log

CHUNK: Final = 256 * 1024  # bytes read at a time
LAST_WORDS: Final = 0.3  # seconds a process that has ended has for what it wrote to arrive
AFTER_EOF: Final = 1.0  # seconds a server has to leave once its stdin is closed
AFTER_TERM: Final = 0.5
AFTER_KILL: Final = 5.0


class StartFailed(Exception):
    """The server's program could not be started. The message says what to change."""


class ServerProcess:
    """One running server. `on_output` gets each chunk of its stdout, `on_end` one sentence once it is gone."""

    def __init__(
        self, process: asyncio.subprocess.Process, held: children.Leash, pipes: tuple[int, int, int], log: Log
    ) -> None:
        self._process: Final = process
        self._leash: Final = held
        self._stdin, self._stdout, self._stderr = pipes
        self._log: Final = log
        self._loop: Final = asyncio.get_running_loop()
        self._errors: Final = Lines(LONGEST)
        self._on_output: Callable[[bytes], None] = lambda _chunk: None
        self._on_end: Callable[[str], None] = lambda _why: None
        self._told = False
        self._output_ended: Final = asyncio.Event()
        self._watch: Final = self._loop.create_task(self._watched())

    @classmethod
    async def start(
        cls,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        log: Log,
        asked: Sandbox | None = None,
        given: bytes | None = None,
        way_out: tuple[str, int] | None = None,
    ) -> "ServerProcess":
        """Start `argv` with a small environment (`HANDED_ON` and `env`), in a room of its own when one is `asked` for.

        With `given` its standard input is that, to its end, and `stdin` is -1. `way_out` is its room's. Raises
        `StartFailed`.
        """
        environment = {name: os.environ[name] for name in HANDED_ON if name in os.environ} | dict(env)
        program = _program(argv, cwd, environment.get("PATH", os.defpath))
        if asked is not None:
            kept_by = sandbox.measured()
            folder = os.path.realpath(cwd)  # noqa: ASYNC240
            room = sandbox.Room(folder=folder, network=asked.network, memory=asked.memory, way_out=way_out)
            argv, environment = sandbox.command([program, *argv[1:]], room, kept_by), sandbox.environment(kept_by, env)
        theirs_in, stdin = os.pipe() if given is None else (_holding(given), -1)
        stdout, theirs_out = os.pipe()
        stderr, theirs_err = os.pipe()
        held = children.leash(argv)
        try:
            process = await asyncio.create_subprocess_exec(
                *held.argv,
                stdin=theirs_in,
                stdout=theirs_out,
                stderr=theirs_err,
                pass_fds=held.pass_fds,
                cwd=cwd,
                env=environment,
                start_new_session=True,
            )
        except BaseException as error:
            for fd in (stdin, stdout, stderr):
                if fd >= 0:
                    os.close(fd)
            held.let_go()
            if isinstance(error, OSError):
                raise StartFailed(f"{argv[0]} could not be started: {error.strerror}.") from error
            raise
        finally:
            held.handed_over()
            for fd in (theirs_in, theirs_out, theirs_err):
                os.close(fd)
        for fd in (stdin, stdout, stderr):
            if fd >= 0:
                os.set_blocking(fd, False)
        return cls(process, held, (stdin, stdout, stderr), log)

    @property
    def pid(self) -> int:
        """The guardian's process id; the server is its child."""
        return self._process.pid

    @property
    def stdin(self) -> int:
        """The write end of its stdin, non-blocking; -1 once closed."""
        return self._stdin

    def listen(self, on_output: Callable[[bytes], None], on_end: Callable[[str], None]) -> None:
        """Begin to read. Both callbacks run in the loop; `on_end` runs once and last."""
        self._on_output, self._on_end = on_output, on_end
        self._loop.add_reader(self._stdout, self._read_output)
        self._loop.add_reader(self._stderr, self._read_errors)

    def _read_output(self) -> None:
        try:
            chunk = os.read(self._stdout, CHUNK)
        except BlockingIOError:
            return
        if chunk:
            self._on_output(chunk)
            return
        self._stdout = self._shut(self._stdout)
        self._output_ended.set()
        self._loop.call_later(LAST_WORDS, self._tell, "The server closed its output.")

    def _read_errors(self) -> None:
        try:
            chunk = os.read(self._stderr, CHUNK)
        except BlockingIOError:
            return
        for line in self._errors.feed(chunk):
            self._log.add("stderr", line.head if isinstance(line, Overlong) else line)
        if not chunk:
            if self._errors.rest():
                self._log.add("stderr", self._errors.rest())
            self._stderr = self._shut(self._stderr)

    async def _watched(self) -> None:
        code = await self._process.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS):
                await self._output_ended.wait()
        self._tell(_how_it_ended(code))

    def _tell(self, why: str) -> None:
        if not self._told:
            self._told = True
            self._on_end(why)

    async def ended(self) -> int:
        """Its exit code, or minus the number of the signal that ended it, once it and its output have ended."""
        await asyncio.wait([self._watch])
        code = self._process.returncode
        return code if code is not None else -signal.SIGKILL

    async def close(self, *, after_eof: float = AFTER_EOF, after_term: float = AFTER_TERM) -> None:
        """End it: close its stdin, wait, SIGTERM, wait, then kill it with all its descendants. Twice is no error."""
        self._stdin = self._shut(self._stdin)
        for patience, number in ((after_eof, signal.SIGTERM), (after_term, signal.SIGKILL)):
            if await self._gone(patience):
                break
            self._leash.send(number)
        if not await self._gone(AFTER_KILL):
            self._log.add("oz0", f"process {self.pid} could not be killed and was given up")
        self._leash.let_go()
        self._stdout, self._stderr = self._shut(self._stdout), self._shut(self._stderr)

    def kill(self) -> None:
        """End it with all its descendants at once; does not wait."""
        self._leash.send(signal.SIGKILL)

    async def _gone(self, patience: float) -> bool:
        done, _ = await asyncio.wait([self._watch], timeout=patience)
        return bool(done)

    def _shut(self, fd: int) -> int:
        if fd >= 0:
            self._loop.remove_reader(fd)
            self._loop.remove_writer(fd)
            os.close(fd)
        return -1


def _holding(given: bytes) -> int:
    """A file that holds these bytes and has no name, to be read from its beginning."""
    with tempfile.TemporaryFile() as file:
        file.write(given)
        file.flush()
        fd = os.dup(file.fileno())
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _program(argv: Sequence[str], cwd: str, path: str) -> str:
    """The path of the program to start. Raises `StartFailed`."""
    if not argv:
        raise StartFailed("The tool names no program: give `mcp:` a command.")
    if not os.path.isdir(cwd):  # noqa: PTH112  a text from the specification, not a path of ours
        raise StartFailed(f"The folder {cwd} of the tool is not there.")
    program = argv[0] if "/" in argv[0] else shutil.which(argv[0], path=path)
    if program is None:
        raise StartFailed(
            f"{argv[0]} was not found in {path}. Install it there, give its full path in `mcp:`, "
            "or start the studio with a PATH that has it."
        )
    return program


def _how_it_ended(code: int) -> str:
    if code < 0:
        try:
            return f"The server's process was ended by {signal.Signals(-code).name}."
        except ValueError:
            return f"The server's process was ended by signal {-code}."
    return f"The server's process ended with code {code}."
