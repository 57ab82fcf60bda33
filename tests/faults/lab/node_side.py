"""What is otherwise in the lab's own processes: short leases, commits that are made and not seen, errands of people."""

import os
from random import Random
from typing import Final
from uuid import UUID

from django.db import OperationalError

from approvals.operations.decide import Person, decide
from approvals.rules.deciding import Decider
from base import crash_points, db
from jobs.operations import nodes, sweep
from jobs.tasks import pulse
from tenants.rules.who import Actor

LEASE: Final = 4.0  # seconds instead of ten
UNSEEN: Final = "LAB_UNSEEN"  # the share of commits whose caller is told that they failed, and a seed
SAID: Final = "commit unseen:"


def prepare() -> None:
    """For a node's process, before it begins."""
    nodes.LEASE = sweep.LEASE = pulse.LEASE = LEASE  # type: ignore[misc,attr-defined]
    db.STANDSTILL = LEASE  # type: ignore[misc]
    if UNSEEN in os.environ:
        share, seed = os.environ[UNSEEN].split(":")
        lose_sight(float(share), Random(seed))


def lose_sight(share: float, dice: Random) -> None:
    """From now on some commits happen while the caller is told that the database has gone."""
    real = crash_points.reached

    def reached(point: str) -> None:
        real(point)
        if point.endswith(".after_commit") and dice.random() < share:
            os.write(2, f"{SAID} {point.partition('.')[0]}\n".encode())
            raise OperationalError("the connection broke before the commit was answered")

    crash_points.reached = reached


def answer(*, tenant: str, hold: str, person: int, said: str) -> None:
    """A person's answer, here or in a process of its own that dies over it."""
    who = Person(Decider(person, "admin"), Actor("pat", "link, 127.0.0.1", person))
    decide(tenant=UUID(tenant), hold_id=UUID(hold), person=who, answer=said, note="as drawn")
