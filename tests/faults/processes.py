"""Real processes in tests: waiting for a truth, and finding out who is still there."""

import select
import time
from collections.abc import Callable, Iterable

import psutil


def until(truth: Callable[[], object], seconds: float = 5.0) -> bool:
    """Wait until `truth()` holds, at most `seconds`; whether it did."""
    limit = time.monotonic() + seconds
    while not truth():
        if time.monotonic() > limit:
            return False
        select.select([], [], [], 0.01)
    return True


def lives(process: psutil.Process | int) -> bool:
    """Whether it still runs; one that ended and was not collected yet does not."""
    try:
        found = psutil.Process(process) if isinstance(process, int) else process
        return found.is_running() and found.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def alive(processes: Iterable[psutil.Process]) -> list[list[str]]:
    """The command lines of those that still run."""
    left = []
    for process in processes:
        if lives(process):
            try:
                left.append(process.cmdline())
            except psutil.NoSuchProcess:
                continue
    return left


def family(pid: int) -> list[psutil.Process]:
    """Every descendant of a process, at this moment."""
    return psutil.Process(pid).children(recursive=True)
