"""Runs one command in a room without a network, and carries what comes to a port of the room's loopback out of it.

    python -I -S bridge.py --socket PATH --port N -- COMMAND…

Each connection to 127.0.0.1:N is joined to one of its own at the Unix socket PATH, whose other end says what may be
reached (`jobs/node/relay.py`). Signals are for the command. This program ends as the command ends, with its exit code
or by its signal.

It is a file of its own that imports only the standard library; `base.sandbox` says what to call it with.
"""

import contextlib
import os
import signal
import socket
import sys
import threading
import time
from typing import Final, NoReturn

CHUNK: Final = 64 * 1024
FOR_THE_COMMAND: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT, signal.SIGHUP)


def main(argv: list[str]) -> int:
    """Run the command of `argv` beside the bridge; the value is its exit code."""
    if argv[0:5:2] != ["--socket", "--port", "--"] or len(argv) < 6:
        _fail("needs --socket PATH --port N -- COMMAND")
    path, port, command = argv[1], int(argv[3]), argv[5:]
    try:
        door = socket.create_server(("127.0.0.1", port), backlog=64)
    except OSError as error:
        _fail(f"cannot listen on port {port} of the room: {error.strerror}")
    for number in FOR_THE_COMMAND:
        signal.signal(number, signal.SIG_IGN)
    child = os.fork()
    if child == 0:
        for number in FOR_THE_COMMAND:
            signal.signal(number, signal.SIG_DFL)
        _run(command)
    threading.Thread(target=_carry, args=(door, path), daemon=True).start()
    _, status = os.waitpid(child, 0)
    return _leave(status)


def _run(command: list[str]) -> NoReturn:
    try:
        os.execv(command[0], command)  # noqa: S606  running what the parent asked for is our purpose
    except OSError as error:
        _fail(f"cannot start {command[0]}: {error.strerror}")


def _carry(door: socket.socket, path: str) -> None:
    while True:
        try:
            _carry_one(door, path)
        except (OSError, RuntimeError):  # for a moment there are no descriptors, or threads, for one more
            time.sleep(0.1)


def _carry_one(door: socket.socket, path: str) -> None:
    inside, _ = door.accept()
    outside = socket.socket(socket.AF_UNIX)
    try:
        outside.connect(path)
        for source, sink in ((inside, outside), (outside, inside)):
            threading.Thread(target=_join, args=(source, sink), daemon=True).start()
    except (OSError, RuntimeError):
        inside.close()  # among others when the node lets nothing through any more and this program is about to be ended
        outside.close()
        raise


def _join(source: socket.socket, sink: socket.socket) -> None:
    """Carry one direction until its end, and tell the other side of it."""
    with contextlib.suppress(OSError):
        while chunk := source.recv(CHUNK):
            sink.sendall(chunk)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def _leave(status: int) -> int:
    if not os.WIFSIGNALED(status):
        return os.WEXITSTATUS(status)
    number = os.WTERMSIG(status)
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number


def _fail(text: str) -> NoReturn:
    os.write(2, f"bridge: {text}\n".encode())
    os._exit(126)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
