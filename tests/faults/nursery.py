"""Nodes without the seconds it takes to read their code: one process has read it and forks a node when it is asked.

    python -m tests.faults.nursery

Each line on stdin names a guard the node is to do without, or none, and its log; the answer is the new node's process
id. The nodes are as separate from each other as any: each has its own session, threads, connections and servers. They
end with the nursery, and that with its stdin, so that none outlives a test run that is cut off.
"""

import ctypes
import importlib
import os
import signal
import sys

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
    """Fork a node for each line."""
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
            be_a_node(*line.rstrip("\n").split(" ", 1))
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()


def be_a_node(guard: str, log: str) -> None:
    """Go on as `oz0 node` would."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), written, written)):
        os.dup2(file, number)
    from studio.cli import main as oz0

    try:
        GUARDS[guard]()
        oz0(["node"])
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()
