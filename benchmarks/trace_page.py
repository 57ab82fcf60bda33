"""trace-page: the first view of a job of 10,000 calls; beside its rows read by one statement and joined as text."""

import time
from html import escape
from typing import Final
from uuid import UUID

import psycopg
from django.db import connection
from django.test import Client
from psycopg import sql

from base import ids
from benchmarks.echoing import services
from benchmarks.figures import Figure, medians
from catalog.rules.agents import Limits
from jobs.rules.orders import End
from tenants.models import User
from tests.builders import a_job, a_turn, a_world, an_outcome, made

CALLS: Final = 10_000
COPY: Final = """
INSERT INTO {table} SELECT (jsonb_populate_record(row, {changes})).* FROM {table} row, generate_series(2, {count}) n
WHERE row.{column} = {pk}
"""


def measure() -> Figure:
    """Milliseconds of the server for the page, its bytes, its queries."""
    with services() as stand:
        world = a_world("bench", limits=Limits(calls=CALLS))
        job = a_job(world)
        (call,) = a_turn(world, job, "look")
        made(world, call, an_outcome(End.ANSWERED))
        _copy(stand.postgres.url_admin, call)
        client = Client(SERVER_NAME="127.0.0.1")
        client.force_login(User.objects.get(pk=world.person))
        address = f"/jobs/{ids.show(ids.JOB, job)}/"
        client.get(address)  # reads the templates
        queries: list[str] = []
        sizes: list[int] = []

        def ours() -> float:
            queries.clear()

            def count(execute, statement, *rest):  # type: ignore[no-untyped-def]
                queries.append(statement)
                return execute(statement, *rest)

            began = time.perf_counter()
            with connection.execute_wrapper(count):
                response = client.get(address)
            took = (time.perf_counter() - began) * 1000
            assert response.status_code == 200
            assert b"9,800 earlier calls" in response.content
            sizes.append(len(response.content))
            return took

        page, bare = medians(ours, lambda: _bare(stand.postgres.url_admin, job))
    size = sizes[-1] / 1000
    asked = len([one for one in queries if not one.startswith(("SET", "SAVEPOINT", "RELEASE"))])
    return Figure(
        "trace-page",
        page,
        "ms",
        f"its 200 rows by one statement, joined as text {bare:.1f} ms",
        page / bare,
        "≤ 150 ms, ≤ 400 KB, ≤ 15 queries",
        page <= 150 and size <= 400 and asked <= 15,
        f"{size:,.0f} KB, {asked} queries",
    )


def _copy(url: str, call: UUID) -> None:
    """Make the one finished call 10,000, with its attempt."""
    new = "jsonb_build_object('id', gen_random_uuid(), 'activity', n, 'key', row.key || '/' || n)"
    attempt = """
    INSERT INTO jobs_attempt
    SELECT (jsonb_populate_record(row, jsonb_build_object('id', gen_random_uuid(), 'call_id', c.id))).*
    FROM jobs_attempt row JOIN jobs_call c ON c.job_id = row.job_id AND c.id <> row.call_id
    """
    calls = sql.SQL(COPY).format(
        table=sql.Identifier("jobs_call"),
        changes=sql.SQL(new),  # type: ignore[arg-type]
        count=sql.Literal(CALLS),
        column=sql.Identifier("id"),
        pk=sql.Literal(call),
    )
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("SET session_replication_role = replica")
        admin.execute(calls)
        admin.execute(attempt)  # type: ignore[arg-type]
        admin.execute("ANALYZE")


def _bare(url: str, job: UUID) -> float:
    began = time.perf_counter()
    with psycopg.connect(url, autocommit=True) as admin:
        began = time.perf_counter()
        rows = admin.execute(
            "SELECT c.id, c.activity, c.function_name, c.state, c.arguments, a.state, a.started_at, a.ended_at "
            "FROM jobs_call c LEFT JOIN jobs_attempt a ON a.call_id = c.id WHERE c.job_id = %s "
            "ORDER BY c.activity DESC LIMIT 200",
            [job],
        ).fetchall()
        page = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    assert page.count("<tr>") == 200
    return (time.perf_counter() - began) * 1000
