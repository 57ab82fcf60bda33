"""What people see of a harness session: on its job's page where it runs, and as a card when it was lost."""

import pytest
from django.test import Client

from base import ids
from jobs.operations import nodes
from jobs.rules.orders import End
from jobs.rules.sessions import SessionEnd
from jobs.rules.states import JobState
from tests.builders import a_job, a_node, an_outcome, made, swept, the_hold, the_job
from tests.harnesses import a_harness, called, ended, program
from tests.pages.visitors import answer, hold_url, plain, text_of, visitor

pytestmark = pytest.mark.usefixtures("database")


def text(client: Client, address: str) -> str:
    found = client.get(address)
    assert found.status_code == 200
    return found.content.decode()


def test_a_jobs_page_tells_of_its_session_and_a_lost_one_is_a_card_with_three_answers() -> None:
    world = a_harness()
    client = visitor(world)
    job, node = a_job(world), a_node("night-node")
    address = f"/jobs/{ids.show(ids.JOB, job)}/"
    assert "A node starts the agent" in text(client, address)
    write = made(world, called(program(world, job, node=node), "note"), an_outcome(End.ANSWERED))
    page = text(client, address)
    assert 'id="session"' in page and "night-node" in page
    nodes.leave(node_id=node)
    swept(lose_nodes=False)
    hold = the_hold(world, write.pk).pk
    assert "lost with its node" in text(client, address)
    card = text(client, hold_url(hold))
    assert "What of the session that called" in card and "not safe to repeat" in card
    for given in ("start_again", "finished", "stop"):
        assert f'id="answer-{given}"' in card
    said = answer(client, hold, answer="finished", note="all is paid")
    assert "You said it is finished" in plain(text_of(said) if said.status_code == 200 else text(client, said.url))
    assert (the_job(world, write.pk).state, the_job(world, write.pk).output) == (JobState.COMPLETED, "all is paid")


def test_a_failed_programs_last_words_are_on_its_jobs_page() -> None:
    world = a_harness()
    client = visitor(world)
    job = a_job(world)
    program(world, job)
    ended(world, job, SessionEnd(3, errors="Traceback:\n  line 3\n<b>no such order</b>"))
    page = text(client, f"/jobs/{ids.show(ids.JOB, job)}/")
    assert "with exit code 3" in page and "&lt;b&gt;no such order" in page
    assert "Traceback:\n  line 3\n&lt;b&gt;no such order" in page, "a traceback keeps its lines"
