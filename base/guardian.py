"""Runs one command and lets nothing of it outlive its parent (RULES L10).

    python -I -S guardian.py --line FD [--end SIGNAL] [--delay S] [--grace S] [--uid N --gid N] -- COMMAND…

FD is the read end of a pipe whose only write end the parent holds. The command runs in a session of its own
with this program's standard streams. A byte in the pipe is a signal number for the command's process group;
9 ends everything at once. When the pipe closes, which the kernel does even for a parent that was killed, the
guardian waits `--delay`, sends `--end`, waits `--grace`, and then kills every descendant; without `--end` it
kills after the delay. When the command ends, whatever it left behind is killed, and the guardian ends the
same way: with its exit code, or by its signal.

It is a file of its own that imports only the standard library, so that it starts in a few milliseconds.
`base.children` starts it.
"""

import os
import select
import signal
import sys
import time
from typing import Final, NoReturn

SUBREAPER: Final = 36  # PR_SET_CHILD_SUBREAPER: orphans among our descendants become our own children
PARENT_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG
KILLING_LIMIT: Final = 5.0  # seconds; a process stuck in the kernel must not hold the guardian for ever
OPTIONS: Final = {"--line", "--end", "--delay", "--grace", "--uid", "--gid"}
HANDED_ON: Final = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT)
# A terminal's Ctrl-C is the parent's to answer
DEAF_TO: Final = (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE)


def main(argv: list[str]) -> int:
    """Guard the command of `argv`; the value is its exit code. Ends by the same signal when it was killed."""
    options, command = _parse(argv)
    guardian = _Guardian(options)
    guardian.start(command)
    return guardian.watch()


def _parse(argv: list[str]) -> tuple[dict[str, str], list[str]]:
    options: dict[str, str] = {}
    rest = iter(argv)
    for word in rest:
        if word == "--":
            break
        if word not in OPTIONS:
            _fail(f"unknown option {word}; known: {', '.join(sorted(OPTIONS))}")
        options[word] = next(rest, "")
    command = list(rest)
    if not command or "--line" not in options:
        _fail("needs --line FD and, after --, a command")
    return options, command


class _Guardian:
    def __init__(self, options: dict[str, str]) -> None:
        self.line = int(options["--line"])
        self.end = signal.Signals(int(options["--end"])) if "--end" in options else None
        self.delay = float(options.get("--delay", 0))
        self.grace = float(options.get("--grace", 0))
        self.uid = int(options["--uid"]) if "--uid" in options else None
        self.gid = int(options["--gid"]) if "--gid" in options else None
        self.child = 0
        self.status: int | None = None
        self.wake = -1
        self.asked: list[int] = []

    def start(self, command: list[str]) -> None:
        """Run the command in a session of its own, and give up our copies of its streams."""
        os.set_inheritable(self.line, False)
        control = _prctl()
        if control is not None:
            control(SUBREAPER, 1)
        self.wake, ringer = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(ringer, False)
        signal.set_wakeup_fd(ringer, warn_on_full_buffer=False)
        for number in DEAF_TO:
            signal.signal(number, signal.SIG_IGN)
        for number in HANDED_ON:
            signal.signal(number, lambda asked, _frame: self.asked.append(asked))
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        self.child = os.fork()
        if self.child == 0:
            self._become(command, control)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        os.close(nothing)

    def _become(self, command: list[str], control: "_Prctl | None") -> NoReturn:
        try:
            os.setsid()
            if self.gid is not None:
                os.setgroups([])
                os.setgid(self.gid)
            if self.uid is not None:
                os.setuid(self.uid)
            if control is not None:  # the last net, for a guardian that is itself killed
                control(PARENT_DEATH_SIGNAL, signal.SIGKILL)
            signal.set_wakeup_fd(-1)
            for number in (*DEAF_TO, *HANDED_ON, signal.SIGCHLD, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            os.closerange(3, os.sysconf("SC_OPEN_MAX") if sys.platform != "linux" else _highest_fd() + 1)
            os.execv(_found(command[0]), command)  # noqa: S606  running what the parent asked for is our purpose
        except FileNotFoundError as error:
            _say(f"cannot start {command[0]}: {error.strerror}")
            os._exit(127)
        except OSError as error:
            _say(f"cannot start {command[0]}: {error.strerror}")
        finally:
            os._exit(126)

    def watch(self) -> int:
        """Wait for the command's end or the parent's; the value is the exit code."""
        steps: list[tuple[float, int]] = []  # (when, signal), once the parent is gone
        poll = select.poll()
        poll.register(self.line, select.POLLIN)
        poll.register(self.wake, select.POLLIN)
        while self._alive():
            while self.asked:
                self._send(self.asked.pop(0))
            while steps and steps[0][0] <= time.monotonic():
                self._send(steps.pop(0)[1])
            if not self._alive():
                break
            timeout = max(0.0, steps[0][0] - time.monotonic()) * 1000 + 1 if steps else None
            ready = {fd for fd, _ in poll.poll(timeout)}
            if self.wake in ready:
                self._hush()
            if self.line in ready:
                orders = os.read(self.line, 64)
                self.asked.extend(orders)
                if not orders:
                    poll.unregister(self.line)
                    steps = self._farewell(time.monotonic())
        self._kill_descendants()
        return self._leave()

    def _farewell(self, now: float) -> list[tuple[float, int]]:
        if self.end is None:
            return [(now + self.delay, signal.SIGKILL)]
        return [(now + self.delay, self.end), (now + self.delay + self.grace, signal.SIGKILL)]

    def _send(self, number: int) -> None:
        if number == signal.SIGKILL:
            self._kill_descendants()
            return
        try:
            os.killpg(self.child, number)
        except OSError:
            return  # it has just ended, or the number is no signal: there is nobody to tell

    def _alive(self) -> bool:
        """Collect whatever ended, orphans of descendants too; whether the command still runs."""
        self._reap()
        return self.status is None

    def _reap(self) -> bool:
        """Collect every ended child; whether any child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.child:
                self.status = status

    def _kill_descendants(self) -> None:
        """Kill until no child is left: what forks meanwhile is found by the next round."""
        limit = time.monotonic() + KILLING_LIMIT
        while self._reap() and time.monotonic() < limit:
            for pid in _descendants(os.getpid()) or {self.child}:
                try:
                    os.kill(pid, signal.SIGKILL)
                except (ProcessLookupError, PermissionError):
                    continue
            if sys.platform != "linux" and self.status is None:
                self._kill_group()
            if select.select([self.wake], [], [], 0.01)[0]:
                self._hush()
        if sys.platform != "linux":
            self._kill_group()

    def _hush(self) -> None:
        """Empty the bell that signals ring."""
        try:
            os.read(self.wake, 4096)
        except BlockingIOError:
            return

    def _kill_group(self) -> None:
        """Where no process can adopt orphans, the command's process group is what can be known of them."""
        try:
            os.killpg(self.child, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return

    def _leave(self) -> int:
        if self.status is None:
            return 137
        if not os.WIFSIGNALED(self.status):
            return os.WEXITSTATUS(self.status)
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        number = os.WTERMSIG(self.status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        return 128 + number


class _Prctl:
    def __init__(self) -> None:
        import ctypes

        self._call = ctypes.CDLL(None, use_errno=True).prctl

    def __call__(self, option: int, value: int) -> None:
        if self._call(option, value, 0, 0, 0) != 0:
            _fail(f"prctl({option}) was refused: guarding descendants needs Linux 3.4 or newer")


def _prctl() -> _Prctl | None:
    return _Prctl() if sys.platform == "linux" else None


def _descendants(root: int) -> set[int]:
    """Every process below `root` at this moment, from /proc; empty where there is none."""
    children: dict[int, list[int]] = {}
    try:
        names = os.listdir("/proc")  # noqa: PTH208  pathlib would double the start-up time
    except FileNotFoundError:
        return set()
    for name in names:
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123  as above
                parent = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, IndexError):
            continue  # it ended while we looked
        children.setdefault(parent, []).append(int(name))
    found: set[int] = set()
    todo = [root]
    while todo:
        for pid in children.get(todo.pop(), ()):
            if pid not in found:
                found.add(pid)
                todo.append(pid)
    return found


def _found(name: str) -> str:
    """The file that `name` means. By hand: `os.execvp` imports modules that another account may not read."""
    if "/" in name:
        return name
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if os.access(f"{folder}/{name}", os.X_OK):
            return f"{folder}/{name}"
    raise FileNotFoundError(2, "no such program on PATH")


def _highest_fd() -> int:
    return max((int(name) for name in os.listdir("/proc/self/fd")), default=2)  # noqa: PTH208  as above


def _say(text: str) -> None:
    os.write(2, f"guardian: {text}\n".encode())


def _fail(text: str) -> NoReturn:
    _say(text)
    sys.exit(2)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
