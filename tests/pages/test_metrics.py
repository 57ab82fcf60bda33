"""What Prometheus reads, and that nothing in it tells of a workspace."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from base import db, ids
from jobs.models import Attempt, Call, Job
from jobs.operations import nodes
from jobs.queries import gauges
from jobs.rules.states import CallState, HoldKind, JobState, NodeState
from studio import metrics
from tenants.models import Tenant, User
from tests.builders import a_call, a_held_call, a_job, a_node, a_world, an_order, an_unknown_call
from tests.pages.test_health import asked

pytestmark = pytest.mark.usefixtures("database")
OURS = {
    *JobState,
    *CallState,
    *HoldKind,
    *NodeState,
    *metrics.METHODS,
    "other",
    "1xx",
    "2xx",
    "3xx",
    "4xx",
    "5xx",
}
OF_PYTHON = re.compile(r"(python_|process_)\w+")


@pytest.fixture(autouse=True)
def fresh() -> None:
    metrics._gauges.cache_clear()


def read() -> dict[tuple[str, str], float]:
    """Each figure by its name and its label's value."""
    status, text = asked("/metrics")
    assert status == 200
    return {
        (sample.name, "/".join(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_figures_are_those_of_all_workspaces_together(move_clock: Callable[[timedelta], None]) -> None:
    ours, theirs = a_world("ours"), a_world("theirs")
    a_held_call(ours)
    a_held_call(theirs)
    an_unknown_call(ours)
    a_job(theirs)
    an_order(ours, a_call(ours))
    a_call(theirs)
    nodes.consumed(node_id=ours.node)
    move_clock(timedelta(seconds=5))
    found = read()
    assert (found["oz0_jobs", "waiting"], found["oz0_jobs", "queued"]) == (3, 1)
    assert (found["oz0_calls", "held"], found["oz0_calls", "unknown"], found["oz0_calls", "running"]) == (2, 1, 1)
    assert (found["oz0_questions", "approve"], found["oz0_questions", "unknown"]) == (2, 1)
    assert (found["oz0_calls_due", ""], found["oz0_attempts_open", ""]) == (1, 1)
    assert (found["oz0_nodes", "alive"], found["oz0_node_slots", ""]) == (2, 64)
    for name in ("question_oldest", "call_due_oldest", "node_pulse_age", "message_age"):
        assert 5 <= found[f"oz0_{name}_seconds", ""] < 60


def test_nothing_in_them_tells_of_a_workspace() -> None:
    names = ["slug-4711", "name-4712", "person-4713"]
    world = a_world(names[0])
    User.objects.filter(pk=world.person).update(username=names[2])
    with db.write(world.tenant):
        Tenant.objects.update(name=names[1])
    call, hold = a_held_call(world)
    running = an_order(world, a_call(world))
    a_node(name="node-4714")
    Client().get("/jobs/", headers={"Authorization": "Bearer secret-4715"})
    _, text = asked("/metrics")
    with db.read(world.tenant):
        rows = [*Job.objects.values_list("pk", flat=True), *Call.objects.values_list("pk", flat=True)]
        rows += [*Attempt.objects.values_list("pk", flat=True), world.tenant, world.node, hold, call, running.call_id]
    told = [str(row) for row in rows] + [row.hex for row in rows] + [ids.show(ids.JOB, row)[4:] for row in rows]
    told += ["471", "clerk", "shop", "refund", "note", "A job"]
    assert not [word for word in told if word in text]


def test_every_label_is_a_word_of_our_own() -> None:
    a_held_call(a_world())
    metrics.answered("BREW", 418, 0.1)
    _, text = asked("/metrics")
    labelled = 0
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if OF_PYTHON.match(sample.name):
                continue
            for label, value in sample.labels.items():
                labelled += 1
                assert label in {"state", "kind", "method", "status", "le"}, (sample.name, label)
                assert value in OURS or label == "le", (sample.name, value)
    assert labelled > 30


def test_however_many_ask_the_database_is_read_once_in_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    reads, moment, real = [0], [100], gauges.gauges

    def counted() -> gauges.Gauges:
        reads[0] += 1
        return real()

    monkeypatch.setattr("studio.metrics.gauges", counted)
    monkeypatch.setattr("studio.metrics._moment", lambda: moment[0])
    for _ in range(3):
        metrics.text()
    assert reads == [1]
    moment[0] += 1
    metrics.text()
    assert reads == [2]
