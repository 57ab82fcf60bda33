"""What says that the studio is of use, and what a visitor sees while it is not (CASES F01, F03)."""

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import OperationalError, connections
from django.test import Client

from jobs.operations import nodes
from studio.asgi import application
from studio.embedded import Postgres
from tests.builders import a_node, a_world
from tests.pages.visitors import visitor


def asked(path: str) -> tuple[int, str]:
    """What a probe is answered that comes by an address of no allowed host."""
    sent: list[dict[str, Any]] = []
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": [(b"host", b"10.9.8.7")]}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(application(scope, receive, send))
    return sent[0]["status"], sent[1]["body"].decode()


def probed(path: str) -> tuple[int, dict[str, Any]]:
    status, said = asked(path)
    return status, json.loads(said)


@pytest.fixture
def lacking(database: Postgres) -> Iterator[None]:
    """A database that has yet to get the last migration's table."""
    with psycopg.connect(database.url_admin, autocommit=True) as admin:
        (last,) = admin.execute("DELETE FROM django_migrations WHERE app = 'jobs' AND name LIKE '0001%' RETURNING name")
        admin.execute("ALTER TABLE jobs_job RENAME TO jobs_job_to_come")
        yield
        admin.execute("ALTER TABLE jobs_job_to_come RENAME TO jobs_job")
        admin.execute("INSERT INTO django_migrations (app, name, applied) VALUES ('jobs', %s, now())", last)


@pytest.fixture
def away(database: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that takes no connection."""

    def refuse(*_: object, **__: object) -> None:
        raise OperationalError("connection refused")

    connections.close_all()
    monkeypatch.setattr("django.db.backends.base.base.BaseDatabaseWrapper.cursor", refuse)  # of a connection kept
    monkeypatch.setattr("django.db.backends.postgresql.base.DatabaseWrapper.get_new_connection", refuse)


def test_it_is_up_and_ready(database: Postgres) -> None:
    assert probed("/healthz") == (200, {"status": "up"})
    status, said = probed("/readyz/pages")
    assert (status, said["status"]) == (200, "ready")


def test_it_is_ready_for_work_while_a_nodes_pulse_is_young_and_says_whether_messages_get_through(
    database: Postgres, move_clock: Callable[[timedelta], None]
) -> None:
    status, said = probed("/readyz")
    assert (status, said["status"]) == (503, "no node")
    assert "oz0 node" in said["detail"] and said["pulse_seconds"] is None
    node = a_node()
    status, said = probed("/readyz")
    assert (status, said["status"], said["nodes"], said["messages"]) == (200, "ready", 1, "silent")
    nodes.consumed(node_id=node)
    status, said = probed("/readyz")
    assert (status, said["messages"], said["message_seconds"] < 20) == (200, "consumed", True)
    move_clock(timedelta(seconds=11))
    assert probed("/readyz")[0] == 503 and probed("/readyz/pages")[0] == 200
    nodes.beat(node_id=node, servers=[])
    assert probed("/readyz")[0] == 200
    nodes.drain(node_id=node)  # what drains takes nothing new
    assert probed("/readyz")[0] == 503


@pytest.mark.usefixtures("lacking")
def test_without_its_migrations_it_says_migrating_and_a_visitor_waits() -> None:
    assert probed("/healthz")[0] == 200
    status, said = probed("/readyz")
    assert (status, said["status"]) == (503, "migrating")
    assert "oz0 migrate" in said["detail"]
    client = visitor(a_world())
    client.raise_request_exception = False
    seen = client.get("/jobs/")
    assert (seen.status_code, seen.headers["Retry-After"]) == (503, "3")
    assert "Not ready: migrating" in seen.text
    assert 'http-equiv="refresh"' in seen.text


@pytest.mark.usefixtures("away")
def test_without_its_database_it_says_so_and_a_visitor_waits() -> None:
    assert probed("/healthz")[0] == 200
    status, said = probed("/readyz")
    assert (status, said["status"]) == (503, "database away")
    client = Client(raise_request_exception=False)
    seen = client.get("/sign-in/link/x/")
    assert (seen.status_code, "Not ready: database away" in seen.text) == (503, True)


def test_an_error_of_ours_is_no_want_of_a_database(database: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    client = visitor(a_world())
    client.raise_request_exception = False
    monkeypatch.setattr("jobs.views.lists.jobs_page", lambda *_, **__: 1 / 0)
    seen = client.get("/jobs/")
    assert (seen.status_code, "The studio failed at this" in seen.text) == (500, True)


def test_a_host_it_does_not_answer_to_is_named_with_the_setting(database: Postgres) -> None:
    assert "studio.example.com" not in settings.ALLOWED_HOSTS
    seen = Client(headers={"host": "studio.example.com<b>\u202e"}).get("/sign-in/")
    assert seen.status_code == 421
    assert "OZ0_ALLOWED_HOSTS" in seen.text
    assert "studio.example.com&lt;b&gt;" in seen.text
    assert "\u202e" not in seen.text
    settings.ALLOWED_HOSTS.append("studio.example.com")
    try:
        assert Client(headers={"host": "studio.example.com"}).get("/sign-in/").status_code == 200
    finally:
        settings.ALLOWED_HOSTS.remove("studio.example.com")
