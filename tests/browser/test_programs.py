"""A program at the real server: it follows a job, and what it leaves is given up."""

import re

import httpx2
import pytest

from base import ids
from tests.browser.conftest import Studio
from tests.builders import World, a_job, cancelled
from tests.pages.test_tokens import made as a_token
from tests.pages.visitors import visitor
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


def readers(studio: Studio) -> int:
    found = re.search(r"^oz0_readers (\d+)", httpx2.get(f"{studio.url}/metrics", timeout=30).text, re.MULTILINE)
    assert found
    return int(found[1])


def test_a_jobs_events_come_over_the_wire_as_they_happen_and_a_reader_that_leaves_is_forgotten(
    studio: Studio, world: World
) -> None:
    token = a_token(visitor(world), scope=["read", "start"])
    job, other = a_job(world), a_job(world)
    headers = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}

    def address(of: object) -> str:
        return f"{studio.url}/api/v1/jobs/{ids.show(ids.JOB, of)}/events"

    with httpx2.Client(headers=headers, timeout=60) as client:
        with client.stream("GET", address(other)) as left:
            lines_left = left.iter_lines()  # kept, since giving it up closes the connection
            assert next(lines_left) == "retry: 2000"
            with client.stream("GET", address(job)) as read:
                assert (read.status_code, read.headers["Content-Type"]) == (200, "text/event-stream")
                lines = read.iter_lines()
                assert any(line == "event: job.started" for line in lines)
                assert readers(studio) == 2
                cancelled(world, job)
                rest = list(lines)  # ends by itself, with the job
                assert any('"to":"CANCELED"' in line for line in rest)
        until(lambda: readers(studio) == 0, "readers that have left are still counted", 60)
        last = max(int(line[4:]) for line in rest if line.startswith("id: "))
        assert client.get(address(job), headers={"Last-Event-ID": str(last)}).status_code == 204
