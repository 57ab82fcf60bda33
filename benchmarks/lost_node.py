"""lost-node: a node is killed with calls in flight; how long until reads run again and the write is asked about."""

import time
from typing import Final

from base import db
from benchmarks.echoing import services
from benchmarks.figures import Figure
from jobs.models import Attempt, Hold
from jobs.rules.limits import LEASE
from tests.faults.stand import Services
from tests.waiting import until

TIMEOUT: Final = 5.0  # seconds an attempt may take
ALLOWED: Final = LEASE + 5


def measure() -> Figure:
    """Seconds from the later of the kill and the attempts' own limit to the last of: next attempts, the question."""
    with services() as stand:
        stand.use_plugin(timeout=TIMEOUT)
        first = stand.node()
        stand.until_listed()
        stand.drill(wait_after=60.0)
        job = stand.start("three-kinds")
        until(lambda: len(stand.begun()) == 3, "the calls never reached their server", 30)
        open_ = stand.open_attempts(job)
        limit = max(one.limit_at for one in open_)
        first.kill()
        killed = time.time()
        stand.drill()
        stand.node()
        until(lambda: _seen_to(stand, len(open_)), "the cut calls were never seen to", 60)
        with db.read(stand.tenant):
            last = max(
                [Hold.objects.get().opened_at, *Attempt.objects.filter(number=2).values_list("started_at", flat=True)]
            )
        stand.answer(stand.holds(job)[0], "happened")
        stand.until_over(job)
        doubled = sum(stand.ledger()[stand.call(job, name).key] - 1 for name in ("charge", "note"))
        lost = sum(call.state not in ("SUCCEEDED", "HAPPENED") for call in stand.calls(job))
    took = last.timestamp() - max(killed, limit.timestamp())
    return Figure(
        "lost-node",
        took,
        "s",
        f"the lease of {LEASE:.0f} s + 5 s",
        took / ALLOWED,
        "≤ lease + 5 s; 0 lost; 0 doubled",
        took <= ALLOWED and lost == 0 and doubled == 0,
        f"{lost} calls lost, {doubled} written twice",
    )


def _seen_to(stand: Services, cut: int) -> bool:
    with db.read(stand.tenant):
        asked = Hold.objects.count()
        again = Attempt.objects.filter(number=2).count()
    return asked + again == cut
