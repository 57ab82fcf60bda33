"""A job from its start to its end, through the operations alone."""

import pytest

from base import db
from jobs.models import Event, Job
from jobs.rules.orders import End
from jobs.rules.states import CallState, JobState
from tests.builders import a_job, a_turn, a_world, an_order, an_outcome, made, settle


@pytest.mark.usefixtures("database")
def test_a_job_runs_its_calls_asks_again_and_completes_with_what_the_model_says() -> None:
    world = a_world()
    job = a_job(world)
    look, note = a_turn(world, job, "look", "note")
    first, second = an_order(world, look), an_order(world, note)
    settle(world, first, an_outcome(End.ANSWERED, text="three books"))
    settle(world, second, an_outcome(End.ANSWERED))
    a_turn(world, job, say="All done.")
    with db.read(world.tenant):
        row = Job.objects.get(pk=job)
        events = list(Event.objects.filter(job_id=job).order_by("seq").values_list("seq", "kind"))
    assert (row.state, row.output) == (JobState.COMPLETED, "All done.")
    assert [seq for seq, _ in events] == list(range(1, len(events) + 1))


@pytest.mark.usefixtures("database")
def test_a_plain_write_whose_connection_broke_becomes_a_question_and_the_job_waits() -> None:
    world = a_world()
    job = a_job(world)
    (call,) = a_turn(world, job, "note")
    assert made(world, call, an_outcome(End.BROKEN)).state == CallState.UNKNOWN
    with db.read(world.tenant):
        assert Job.objects.get(pk=job).state == JobState.WAITING
