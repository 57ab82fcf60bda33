"""Questions answered while no worker lives: not one answer is lost, and each does what it says once (RULES A7)."""

import json
import os
from collections import Counter

import pytest

from approvals.models import Way
from approvals.operations import channels
from approvals.operations.channels import Wanted
from approvals.operations.decide import Person, decide
from approvals.rules.deciding import Decider
from base import db
from jobs.models import Attempt, Event, Hold
from jobs.rules.states import CallState, HoldState, JobState
from tenants.rules.who import SYSTEM, Actor
from tests.faults.stand import PATIENCE, Services
from tests.faults.test_kills import pass_the_limit
from tests.races import told
from tests.servers.receivers import Receiver, a_receiver
from tests.waiting import until

pytestmark = pytest.mark.faults

JOBS = int(os.environ.get("RACES", "0")) // 500 or 1  # of fifty calls each; `make races` has 200 answers


@pytest.mark.rule("A7")
def test_what_was_answered_with_every_worker_down_runs_once_when_one_comes_back(stand: Services) -> None:
    """CASES A06, A07, A13, A14."""
    stand.drill()
    with a_receiver() as duty:
        wanted = Wanted("on-call", url=duty.url, allowed=[duty.place], tells_end=True)
        channels.make(tenant=stand.tenant, way=Way.WEBHOOK, wanted=wanted, secret="s", actor=SYSTEM)
        answered_without_workers(stand, duty)
    assert {json.loads(body)["about"] for _, body in duty.got} <= {"asked", "closed"}, "no failure is told"


def answered_without_workers(stand: Services, duty: Receiver) -> None:
    """Fifty calls of each job: held, told of by a node that is then killed, answered, and made by another one."""
    node = stand.node()
    stand.until_listed()
    jobs = [stand.start("fifty") for _ in range(JOBS)]
    until(lambda: len(stand.holds(*jobs)) == 50 * JOBS, "the calls were never held", PATIENCE * JOBS)
    until(lambda: bool(duty.got), "nobody on duty was told that calls wait", PATIENCE)
    node.kill()
    pass_the_limit(stand)
    held = stand.holds(*jobs)
    assert {stand.job(job).state for job in jobs} == {JobState.WAITING}  # a dead node is no failure of what waits
    who = Person(Decider(stand.person, "admin"), Actor("pat", "link, 127.0.0.1", stand.person))
    for place, hold in enumerate(held):
        said = "deny" if place % 10 == 0 else "approve"
        decide(tenant=stand.tenant, hold_id=hold.pk, person=who, answer=said, note="not this one")
    denied = {hold.call_id for place, hold in enumerate(held) if place % 10 == 0}
    calls = stand.calls(*jobs)
    assert {call.state for call in calls if call.pk not in denied} == {CallState.QUEUED}
    with db.read(stand.tenant):
        assert not Attempt.objects.filter(call__job_id__in=jobs).exists()
    node = stand.node()
    stand.until_over(*jobs, seconds=PATIENCE * (1 + JOBS))
    calls = stand.calls(*jobs)
    assert Counter(call.state for call in calls) == {
        CallState.SUCCEEDED: 45 * JOBS,
        CallState.REFUSED: 5 * JOBS,
    }
    made = stand.begun()
    assert [made[call.key] for call in calls] == [0 if call.pk in denied else 1 for call in calls]
    with db.read(stand.tenant):
        closed = Event.objects.filter(kind="hold.closed", job_id__in=jobs).values_list("data__hold", flat=True)
        assert set(Counter(closed).values()) == {1} and len(closed) == 50 * JOBS
        assert set(Hold.objects.filter(job_id__in=jobs).values_list("state", flat=True)) == {HoldState.ANSWERED}
    told("answered with every worker down", Counter(call.state for call in calls))
    node.kill()
