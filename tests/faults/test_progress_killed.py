"""A node is killed while a call reports: the next attempt goes on from what was told just before (RULES P5)."""

import time

import pytest

from jobs.queries.call_page import call_page
from jobs.rules.limits import LEASE
from jobs.rules.reasons import Reason
from jobs.rules.states import CallState
from tests.faults.archive import NOTES, Reporting, use_archive
from tests.faults.stand import PATIENCE, Services
from tests.servers.raw_http import RawServer
from tests.waiting import until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]
LAG = 1.0  # seconds in which a token is durable after its arrival
ON_THE_WAY = 0.5  # seconds from the server's hand into the node's, on a busy machine
TIMEOUT = 60.0  # of the archive


@pytest.mark.rule("P2")
@pytest.mark.rule("P5")
def test_after_two_hundred_reports_a_second_the_next_attempt_is_sent_one_of_the_last_second(stand: Services) -> None:
    """CASES P05."""
    with RawServer("search") as server:
        reporting = Reporting(server)
        node = stand.node()
        use_archive(stand, server)
        job = stand.start("archivist")
        until(lambda: len(reporting.sent) >= NOTES // 2, "it never reported", PATIENCE)
        killed = time.monotonic()
        node.kill()
        stand.move_clock(LEASE + TIMEOUT + 1)
        stand.node()
        stand.until_over(job)
    (call,) = stand.calls(job)
    first, second = stand.attempts(call)
    assert (call.state, first.reason) == (CallState.SUCCEEDED, Reason.NODE_LOST)
    at = int(second.resumed_from or 0)
    assert reporting.resumed == [None, {"token": f"page-{at}", "progress": at}]
    assert reporting.sent_until(killed - LAG - ON_THE_WAY) <= at <= len(reporting.sent)
    assert at > 1, "the first report of all is not the last one"
    shown = call_page(stand.tenant, call.pk)
    assert shown is not None
    assert shown.attempts[-1].began == f"resumed from progress {at} of {NOTES}"
