"""Nodes without the seconds it takes to read their code: one process has read it and forks a node when it is asked.

    python -m tests.faults.nursery

Each line on stdin is an object: `log` is the node's log, `without` the guard it is to do without, `env` what is added
to its environment; `run` names a function to be run instead of a node, with the rest. The answer is the process's id.
They are as separate from each other as any: each has its own session, threads, connections and servers. They end with
the nursery, and that with its stdin, so that none outlives a test run that is cut off.
"""

import ctypes
import importlib
import json
import os
import signal
import sys
import traceback
from typing import Any

import django

from tests.faults.without import GUARDS

PARENT_DEATH_SIGNAL = 1  # of prctl
READ_BEFORE = (
    "celery.apps.worker",
    "celery.bin.worker",
    "celery.concurrency.thread",
    "celery.worker.components",
    "celery.worker.consumer",
    "channels_redis.pubsub",
    "jobs.tasks.host",
    "kombu.transport.redis",
    "studio.cli.node",
    "studio.urls",
)


def main() -> None:
    """Fork a process for each line."""
    importlib.import_module("studio.celery")  # names the settings
    django.setup()
    for module in READ_BEFORE:
        importlib.import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel buries them
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            live(**json.loads(line))
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()


def live(log: str, without: str = "", env: dict[str, str] | None = None, run: str = "", **words: Any) -> None:
    """Go on as `oz0 node` would, or run a function and end."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), written, written)):
        os.dup2(file, number)
    os.environ |= env or {}
    try:
        GUARDS[without]()
        if run:
            module, _, name = run.partition(":")
            getattr(importlib.import_module(module), name)(**words)
            os._exit(0)
        from studio.cli import main as oz0

        oz0(["node"])
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()
