"""Executors that are ended on purpose: forked from one process that has read the code, and watched by their state.

    python -m tests.budgets.executors

Each line on stdin is an object: what is asked for, and where the process is to end. The answer says how it ended. They
end with their parent, and that with its stdin.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import UUID

from base import crash_points

if TYPE_CHECKING:  # the executors set Django up before they read what has models
    from tests.budgets.ledgers import Ledger


class Executors:
    """The parent of all executors."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def execute(self, ledger: "Ledger", operation: UUID, cents: list[int], *, crash_at: str = "") -> str:
        """Submit these checks in a process of its own: `killed`, or `ended`, and then its answer never arrived."""
        asked = {
            "tenant": str(ledger.tenant),
            "project": str(ledger.project),
            "operation": str(operation),
            "cents": cents,
            "crash_at": crash_at,
        }
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()


@contextmanager
def executors(database_url: str) -> Iterator[Executors]:
    """Executors on this database, for as long as they are wanted."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.budgets.executors"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "DATABASE_URL": database_url},
    )
    try:
        assert process.stdout and process.stdout.readline().strip() == "ready"
        yield Executors(process)
    finally:
        assert process.stdin and process.stdout
        process.stdin.close()
        process.stdout.close()
        process.wait(30)


def main() -> None:
    """Fork an executor for each line and say how it ended."""
    import django

    django.setup()
    import budgets.operations.admitting  # noqa: F401 - read once, for all

    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _submit(json.loads(line))
        _, how = os.waitpid(child, 0)
        sys.stdout.write(("killed" if os.WIFSIGNALED(how) else f"ended {os.WEXITSTATUS(how)}") + "\n")
        sys.stdout.flush()


def _submit(asked: dict[str, Any]) -> None:
    from budgets.operations import admitting
    from tests.budgets.ledgers import cents

    if asked["crash_at"]:
        os.environ[crash_points.VARIABLE] = asked["crash_at"]
    checks = [cents(count) for count in asked["cents"]]
    try:
        whose = (UUID(asked["tenant"]), UUID(asked["project"]), UUID(asked["operation"]))
        admitting.submit(admitting.Asking(*whose, checks))
    finally:
        os._exit(0 if sys.exc_info()[0] is None else 1)


if __name__ == "__main__":
    main()
