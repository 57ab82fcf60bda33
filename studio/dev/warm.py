"""An interpreter that has read the MCP library already, and becomes a plugin's server when one is to be tried.

Of the time that a server written in Python takes to start, nearly all goes into reading that library, at every save
anew. So one process reads it once, and forks for each trial. It is used for trials alone: what a node starts, it
starts as ever, and what cannot be started alike from here is started as ever too.

    python warm.py serve SOCKET                 the process that forks
    python -I -S warm.py start SOCKET -- ARGV   what runs in a server's place: its streams, folder, variables and end
                                                are the server's

Whoever ends the second ends the server; when the first is gone, the second runs ARGV itself.
"""

import contextlib
import json
import os
import runpy
import select
import signal
import socket
import sys
from pathlib import Path
from types import ModuleType
from typing import Final, NoReturn

LIBRARY: Final = ("mcp.server", "mcp.server.mcpserver", "mcp.types")
STREAMS: Final = (0, 1, 2)
WARM: Final = b"w"
COLD: Final = b"c"
TERM: Final = b"t"
LENGTH: Final = 4  # bytes that say how long the order is


def serve(place: str) -> NoReturn:
    """Read the library, then fork for each that asks at the socket, for ever."""
    del sys.path[0]  # the folder of this file, where a server's modules are not
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    listener = socket.socket(socket.AF_UNIX)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(place)  # noqa: PTH108  of a process that is gone
    listener.bind(place)
    listener.listen()  # who asks already waits for the reading, which takes no longer than their own would
    for name in LIBRARY:
        with contextlib.suppress(ImportError):
            __import__(name)
    known = frozenset(name.partition(".")[0] for name in sys.modules)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        asked, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            _keep(asked, known)
        asked.close()


def _keep(asked: socket.socket, known: frozenset[str]) -> NoReturn:
    """Start what one asks for, tell how it ended, and end it when they are gone."""
    bell, ringer = os.pipe()
    os.set_blocking(ringer, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(ringer, warn_on_full_buffer=False)
    try:
        head, streams, _, _ = socket.recv_fds(asked, LENGTH, len(STREAMS))
        order = json.loads(_read(asked, int.from_bytes(head)))
        if _hides(order["cwd"], known):
            asked.sendall(COLD)
            os._exit(0)
    except (OSError, ValueError):
        os._exit(0)  # they were gone before they had said what they want
    server = os.fork()
    if server == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for open_here in (bell, ringer):
            os.close(open_here)
        asked.close()
        _become(order["argv"], order["cwd"], order["env"], streams)
    for stream in streams:
        os.close(stream)
    with contextlib.suppress(OSError):  # they may be gone already, which is then seen below
        asked.sendall(WARM)
    while True:
        ready = select.select([asked.fileno(), bell], [], [])[0]
        if bell in ready:
            os.read(bell, 64)
        ended, status = os.waitpid(server, os.WNOHANG)
        if ended:
            with contextlib.suppress(OSError):
                asked.sendall(os.waitstatus_to_exitcode(status).to_bytes(LENGTH, signed=True))
            os._exit(0)
        if asked.fileno() in ready:
            try:
                word = asked.recv(1)
            except OSError:
                word = b""
            _send(server, signal.SIGTERM if word == TERM else signal.SIGKILL)
            if not word:
                os._exit(0)


def _send(server: int, number: int) -> None:
    """Send a signal to its group, and to itself before it has one."""
    for send in (os.killpg, os.kill):
        try:
            send(server, number)
        except ProcessLookupError:
            continue
        return


def _become(argv: list[str], cwd: str, env: dict[str, str], streams: list[int]) -> NoReturn:
    """Be the program of `python ARGV`, a module or a file, as if it had just been started."""
    os.setsid()
    for wanted, stream in zip(STREAMS, streams, strict=True):
        os.dup2(stream, wanted)
        os.close(stream)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    if argv[0] == "-m":
        sys.argv = argv[1:]
        sys.path.insert(0, cwd)
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = argv
        sys.path.insert(0, str(Path(argv[0]).resolve().parent))
        file = Path(argv[0]).absolute()
        main = sys.modules["__main__"] = ModuleType("__main__")
        main.__file__ = str(file)
        exec(compile(file.read_bytes(), file, "exec"), main.__dict__)  # noqa: S102  a script is what it is
    sys.exit()  # as any error that was raised: through the interpreter, which tells it and tidies up


def _hides(folder: str, known: frozenset[str]) -> bool:
    """Whether a module in the folder is called like one that was read already, and would have been read instead."""
    return any(path.stem in known for path in Path(folder).iterdir() if path.suffix in ("", ".py"))


def through(place: str, argv: tuple[str, ...]) -> tuple[str, ...]:
    """The command line that has `argv` started at that socket, where this interpreter is to run a module or a file."""
    if argv[:1] != (sys.executable,) or not (argv[1:2] == ("-m",) or (argv[1:2] and argv[1].endswith(".py"))):
        return argv
    return (sys.executable, "-I", "-S", str(Path(__file__).resolve()), "start", place, "--", *argv)


def start(place: str, argv: list[str]) -> NoReturn:
    """Have `argv` started there and end as it ends; run it here when that cannot be."""
    asked = socket.socket(socket.AF_UNIX)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # until it is known whose it is
    try:
        asked.connect(place)
        order = json.dumps({"argv": argv[1:], "cwd": os.getcwd(), "env": dict(os.environ)}).encode()  # noqa: PTH109
        socket.send_fds(asked, [len(order).to_bytes(LENGTH)], STREAMS)
        asked.sendall(order)
        taken = asked.recv(1) == WARM
    except OSError:
        taken = False
    if taken:
        signal.signal(signal.SIGTERM, lambda *_: asked.sendall(TERM))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    if not taken:
        os.execv(argv[0], argv)  # noqa: S606  what we stand for
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in STREAMS:
        os.dup2(nothing, stream)
    told = _read(asked, LENGTH)
    code = int.from_bytes(told, signed=True) if len(told) == LENGTH else 1
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _read(asked: socket.socket, length: int) -> bytes:
    found = b""
    while len(found) < length and (more := asked.recv(length - len(found))):
        found += more
    return found


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    start(sys.argv[2], sys.argv[4:])
