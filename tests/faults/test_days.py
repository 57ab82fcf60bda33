"""Days pass with nobody there: what waited wakes, expires or asks as it must, for no message, and nothing is left."""

import secrets
from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import parse_qsl, urlsplit
from uuid import UUID

import httpx2
import psycopg
import pytest
import redis
from django.test import Client

from base import db, ids
from catalog.models import Connection, Credential
from catalog.operations import connections, signing_in
from catalog.operations.connections import Given
from jobs.rules.limits import LEASE
from jobs.rules.reasons import Reason
from jobs.rules.states import AttemptState, CallState, Effect, HoldKind, JobState, NodeState
from jobs.rules.why import Why
from studio.celery import QUEUES
from tenants.models import User
from tenants.operations import sign_in
from tenants.rules.who import SYSTEM, Actor
from tests.faults.archive import NOTES, Reporting, use_archive
from tests.faults.lab.bulk import LEFT
from tests.faults.processes import lives
from tests.faults.stand import DAY, PATIENCE, RunningNode, Services
from tests.servers.guarded import Guarded, a_guarded_server
from tests.servers.raw_http import RawServer
from tests.waiting import until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]
TIMEOUT = 120.0  # seconds; of the billing tool: what is cut runs on until its node is killed
BUSY_FOR = 50.0  # seconds
DAYS = timedelta(days=3)
READ, KEYED, PLAIN = "balance", "charge", "note"


@pytest.fixture
def guarded() -> Iterator[Guarded]:
    with a_guarded_server() as server:
        yield server


def signed_in(stand: Services, guarded: Guarded) -> None:
    """A connection that a person signed in on, with a token of an hour."""
    given = {"allowed": [guarded.place], "given": Given(Credential.OAUTH), "actor": SYSTEM}
    made = connections.make(tenant=stand.tenant, name="guarded", url=guarded.url, **given)
    actor = Actor("pat", "link", stand.person)
    where = {"tenant": stand.tenant, "connection": made, "nonce": "n" * 32, "actor": actor}
    address = signing_in.begin(**where, return_to="http://127.0.0.1:1/return")
    back = httpx2.get(address, follow_redirects=False).headers["location"]
    signing_in.finish(**where, given=dict(parse_qsl(urlsplit(back).query)))


def token_version(stand: Services) -> int:
    with db.read(stand.tenant):
        return Connection.objects.get(name="guarded").credential_version


def in_flight(stand: Services, *jobs: UUID) -> None:
    """Wait until each of these jobs makes a call of each kind, and both writes are written."""
    until(lambda: len(stand.open_attempts(*jobs)) == 3 * len(jobs), "the calls were never begun", PATIENCE)
    writes = {call.key for call in stand.calls(*jobs) if call.function_name != READ}
    until(lambda: writes <= stand.ledger().keys(), "the writes were never made", PATIENCE)


def until_asked(stand: Services, *jobs: UUID) -> None:
    """Wait until nothing of these jobs is under way but a question to a person."""
    waits = JobState.WAITING
    until(lambda: {stand.job(job).state for job in jobs} == {waits}, "nobody was asked, or not in the end", PATIENCE)


def killed(node: RunningNode) -> None:
    """Kill a node, and wait until all that it had started is gone (RULES L10)."""
    servers = node.family()
    node.kill()
    until(lambda: not any(map(lives, servers)), "a server outlived its node", 10)


def state_of(stand: Services, job: UUID, function: str) -> tuple[str, str, int]:
    call = stand.call(job, function)
    return call.state, call.effect, call.attempts_made


ASKED = (CallState.UNKNOWN, Effect.MAYBE, 1)


@pytest.mark.rule("A8")
@pytest.mark.rule("L5")
@pytest.mark.rule("L8")
@pytest.mark.rule("P3")
@pytest.mark.rule("U6")
@pytest.mark.rule("U7")
def test_after_days_without_a_node_what_waited_wakes_expires_or_asks_and_nothing_is_left(
    stand: Services, guarded: Guarded
) -> None:
    with RawServer("search") as server, redis.Redis.from_url(stand.broker.url) as broker:
        reporting = Reporting(server)

        # two questions of nobody knows what: in a job that may take a day, and in one that may take a month
        stand.use_plugin(timeout=TIMEOUT)
        node = stand.node()
        stand.until_listed()
        stand.drill(wait_after=TIMEOUT)
        of_a_day = stand.start("three-kinds")
        in_flight(stand, of_a_day)
        stand.use_plugin(timeout=TIMEOUT, minutes=30 * DAY)
        stand.until_listed()
        unknown = stand.start("three-kinds")
        until(lambda: len(stand.attempts(*stand.calls(unknown))) == 3, "the calls were never begun", PATIENCE)
        killed(node)
        stand.move_clock(LEASE + TIMEOUT + 1)
        stand.drill()
        node = stand.node()
        until_asked(stand, of_a_day, unknown)

        # a hold, a wait to be retried, calls and a resumable search under way; then the node dies
        use_archive(stand, server, minutes=30 * DAY)
        signed_in(stand, guarded)
        token = secrets.token_urlsafe()
        sign_in.offer_link(token=token, username="pat")
        held = stand.start("one-export")
        stand.drill(functions=[KEYED], busy={"calls": 1, "retry_after": BUSY_FOR})
        busy = stand.start("one-charge")
        until(lambda: CallState.RETRYING in [call.state for call in stand.calls(busy)], "it was never busy", PATIENCE)
        stand.drill(wait_after=TIMEOUT)
        cut, search = stand.start("three-kinds"), stand.start("archivist")
        in_flight(stand, cut)
        until(lambda: len(reporting.sent) >= NOTES // 2, "the search never reported", PATIENCE)
        until(lambda: bool(stand.holds(held)), "nobody was asked about the export", PATIENCE)
        killed(node)

        # days without anybody, and without a message
        queued = stand.start("one-charge")
        stand.use_plugin(timeout=TIMEOUT)
        overdue = stand.start("one-charge")
        broker.flushall()
        stand.drill()
        first_token, version = set(guarded.access), token_version(stand)
        stand.move_clock(DAYS / timedelta(seconds=1))
        node = stand.node()
        stand.until_over(overdue, held, busy, search, queued, seconds=2 * PATIENCE)
        until_asked(stand, of_a_day, unknown, cut)
        until(lambda: token_version(stand) > version, "the token was never refreshed", PATIENCE)
    check_what_woke(stand, held=held, busy=busy, queued=queued, overdue=overdue)
    check_what_was_cut(stand, cut)
    check_resumed(stand, reporting, search)
    *before, now = [row.state for row in stand.nodes()]
    assert (set(before), now) == ({NodeState.LOST}, NodeState.ALIVE)
    assert set(guarded.access) - first_token, "the token of before would be shown"
    assert Client().get(f"/sign-in/link/{token}/").status_code == 403
    jobs = of_a_day, unknown, cut  # a job may take a day, but people may take their time
    asked = {hold.call_id: hold for hold in stand.holds(*jobs)}
    assert asked.keys() == {stand.call(job, PLAIN).pk for job in jobs} | {stand.call(cut, KEYED).pk}
    assert {hold.kind for hold in asked.values()} == {HoldKind.UNKNOWN}

    # people come back
    for hold in asked.values():
        stand.answer(hold, "again" if hold.call_id == stand.call(cut, KEYED).pk else "happened")
    stand.until_over(*jobs)
    assert {stand.job(job).state for job in jobs} == {JobState.COMPLETED}
    assert state_of(stand, cut, KEYED) == (CallState.SUCCEEDED, Effect.MADE, 2)
    assert set(stand.ledger().values()) == {1}, "something was written twice"
    check_nothing_is_left(stand, node)


def check_what_woke(stand: Services, *, held: UUID, busy: UUID, queued: UUID, overdue: UUID) -> None:
    """What each wait came to."""
    (export,) = stand.calls(held)
    assert (export.state, export.reason, export.effect) == (CallState.REFUSED, Why.EXPIRED, Effect.NONE)
    assert stand.job(held).state == JobState.COMPLETED
    assert state_of(stand, busy, KEYED) == (CallState.SUCCEEDED, Effect.MADE, 2)
    assert [attempt.state for attempt in stand.attempts(*stand.calls(busy))] == ["busy", "answered"]
    assert state_of(stand, queued, KEYED) == (CallState.SUCCEEDED, Effect.MADE, 1)
    over = stand.job(overdue)
    assert (over.state, over.reason, over.failure_kind) == (JobState.FAILED, Why.JOB_LIMIT, "limit_minutes")
    assert stand.calls(overdue) == [], "a job past its limit asked its model"


def check_what_was_cut(stand: Services, cut: UUID) -> None:
    """A read is made again; a plain write, and a keyed one whose key is forgotten by now, are asked about."""
    assert state_of(stand, cut, READ) == (CallState.SUCCEEDED, Effect.MADE, 2)
    assert state_of(stand, cut, PLAIN) == state_of(stand, cut, KEYED) == ASKED
    for attempt in [one for one in stand.attempts(*stand.calls(cut)) if one.number == 1]:
        assert attempt.ended_at is not None
        assert (attempt.state, attempt.reason) == (AttemptState.LOST, Reason.NODE_LOST)
        assert attempt.ended_at - attempt.started_at > DAYS - timedelta(minutes=10)
    (hold,) = [hold for hold in stand.holds(cut) if hold.call_id == stand.call(cut, KEYED).pk]
    client = Client()
    client.force_login(User.objects.get(pk=stand.person))
    page = client.get(f"/approvals/{ids.show(ids.HOLD, hold.pk)}/").text
    assert "older than 24 h: running it again may write twice" in page


def check_resumed(stand: Services, reporting: Reporting, search: UUID) -> None:
    """A resume token does not run out: it is sent as it was kept, however late."""
    first, second = stand.attempts(*stand.calls(search))
    at = int(second.resumed_from or 0)
    assert (first.state, stand.calls(search)[0].state) == (AttemptState.LOST, CallState.SUCCEEDED)
    assert at > 1 and reporting.resumed == [None, {"token": f"page-{at}", "progress": at}]


def check_nothing_is_left(stand: Services, node: RunningNode) -> None:
    """No open row, no message, and with the last node no process, connection or subscription."""
    with psycopg.connect(stand.postgres.url_admin, autocommit=True) as admin:

        def count(query: str) -> int:
            row = admin.execute(query).fetchone()
            assert row is not None
            return int(row[0])

        assert {what: count(query) for what, query in LEFT.items()} == dict.fromkeys(LEFT, 0)
        assert not count("SELECT count(*) FROM catalog_signin WHERE refreshing_until IS NOT NULL")
        with redis.Redis.from_url(stand.broker.url) as broker:
            until(lambda: sum(broker.llen(queue) for queue in QUEUES) == 0, "messages stay in the broker")
            killed(node)
            mine = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'oz0_app'"
            until(lambda: count(mine) <= 1, "a dead node's connections stay open")
            until(lambda: broker.info("clients")["pubsub_clients"] == 0, "somebody still listens to the broker")
