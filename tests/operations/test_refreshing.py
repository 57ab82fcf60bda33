"""Tokens are refreshed ahead of time, once, and saved whole; what has run out is not shown to a server."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from uuid import UUID

import httpx2
import psycopg
import pytest

from base import db, ids
from catalog.models import Connection, Credential, Function, SignIn, Standing, Tool, Transport
from catalog.operations import connections, refreshing, sign_ins, signing_in
from catalog.operations.connections import Given
from catalog.queries import sign_ins as queries
from catalog.rules.oauth import Later, Tokens
from catalog.rules.wire import AnswerEnd, Wire
from jobs.models import Call
from jobs.operations.servers import server_of
from jobs.rules.orders import End, Outcome
from jobs.rules.reasons import Reason
from jobs.rules.states import CallState
from studio.embedded import Postgres
from tenants.models import AuditEntry, Secret
from tenants.operations import vault
from tenants.rules.who import SYSTEM, Actor
from tests.builders import World, a_call, a_world, an_approval, an_order, made, see, settle
from tests.races import Pause, Side, until_blocked_or_ended
from tests.servers.guarded import Guarded, a_guarded_server

BACK = "http://127.0.0.1:1/return"
SOON = timedelta(minutes=55, seconds=1)  # an hour's token is due to be refreshed
OVER = timedelta(hours=1, seconds=1)


@pytest.fixture
def guarded() -> Iterator[Guarded]:
    with a_guarded_server() as server:
        yield server


@pytest.fixture
def world(database: Postgres) -> World:
    return a_world()


def signed_in(world: World, guarded: Guarded) -> UUID:
    """A connection that is signed in; returns it."""
    made = connections.make(
        tenant=world.tenant,
        name="guarded",
        url=guarded.url,
        allowed=[guarded.place],
        given=Given(Credential.OAUTH),
        actor=SYSTEM,
    )
    sign_in_again(world, made)
    return made


def sign_in_again(world: World, connection: UUID, nonce: str = "n" * 32) -> None:
    """Go to the provider and back."""
    actor = Actor("pat", "link", world.person)
    where = {"tenant": world.tenant, "connection": connection, "nonce": nonce, "actor": actor}
    address = signing_in.begin(**where, return_to=BACK)
    back = httpx2.get(address, follow_redirects=False).headers["location"]
    signing_in.finish(**where, given=dict(parse_qsl(urlsplit(back).query)))


def the_row(world: World) -> SignIn:
    with db.read(world.tenant):
        return SignIn.objects.get()


def shown(world: World) -> tuple[str, int]:
    """(the token a session would show now, the version of the credential)."""
    with db.read(world.tenant):
        connection = Connection.objects.get()
        return vault.get(world.tenant, f"connection {connection.pk}"), connection.credential_version


def refreshed(world: World) -> bool:
    """What one node does about every due sign-in; whether there was one to ask for."""
    did = False
    for tenant, sign_in in queries.due(most=4):
        work = refreshing.claim(tenant=tenant, sign_in=sign_in)
        if work is not None:
            refreshing.settle(work, refreshing.ask(work))
            did = True
    return did


type Ahead = Callable[[timedelta], None]


def test_a_token_is_refreshed_before_it_runs_out_and_sessions_are_replaced(
    world: World, guarded: Guarded, move_clock: Ahead
) -> None:
    signed_in(world, guarded)
    before = shown(world)
    assert not refreshed(world)  # an hour is left
    move_clock(SOON)
    assert refreshed(world)
    after = shown(world)
    assert after[0] in guarded.access and after[0] != before[0] and after[1] == before[1] + 1
    assert not refreshed(world)
    row = the_row(world)
    assert row.expires_at is not None and row.granted_at is not None
    assert row.expires_at - row.granted_at == timedelta(hours=1)


def test_a_refresh_goes_on_with_the_rotated_token_for_as_long_as_anybody_likes(
    world: World, guarded: Guarded, move_clock: Ahead
) -> None:
    signed_in(world, guarded)
    for _ in range(4):
        move_clock(SOON)
        assert refreshed(world)
    assert the_row(world).standing == Standing.IN and len(guarded.used) == 4


def test_two_nodes_at_once_ask_the_provider_once(
    world: World, guarded: Guarded, move_clock: Ahead, monkeypatch: pytest.MonkeyPatch, database: Postgres
) -> None:
    signed_in(world, guarded)
    move_clock(SOON)
    pause = Pause(monkeypatch, sign_ins, "provider_of")  # inside the claim, holding the row
    one = Side(lambda: refreshed(world)).start()
    pause.reached()
    two = Side(lambda: refreshed(world)).start()
    with psycopg.connect(database.url_admin, autocommit=True) as admin:
        assert until_blocked_or_ended(admin, two), "the second did not wait for the row"
    pause.go()
    assert sorted([one.join(), two.join()]) == [False, True]
    assert guarded.asked.count("/token") == 2  # the code's, and one refresh
    assert the_row(world).standing == Standing.IN


def test_without_the_intent_two_nodes_would_end_the_grant(
    world: World, guarded: Guarded, move_clock: Ahead, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: the provider is strict enough for the test above to mean something."""
    signed_in(world, guarded)
    move_clock(SOON)
    ((tenant, sign_in),) = queries.due(most=4)
    work = refreshing.claim(tenant=tenant, sign_in=sign_in)
    assert work is not None
    assert isinstance(refreshing.ask(work), Tokens)
    assert not isinstance(refreshing.ask(work), Tokens)


def test_while_one_node_waits_for_the_provider_nobody_else_asks_and_calls_go_on(
    world: World, guarded: Guarded, move_clock: Ahead
) -> None:
    signed_in(world, guarded)
    before = shown(world)
    move_clock(SOON)
    guarded.go.clear()
    slow = Side(lambda: refreshed(world)).start()
    assert guarded.refreshing.acquire(timeout=20)
    assert queries.due(most=4) == []
    assert not refreshed(world)
    assert shown(world) == before  # no row is held while the provider thinks
    guarded.go.set()
    assert slow.join()
    assert shown(world) != before


def test_a_node_that_dies_while_it_asks_leaves_the_refresh_to_another(
    world: World, guarded: Guarded, move_clock: Ahead
) -> None:
    signed_in(world, guarded)
    move_clock(SOON)
    ((tenant, sign_in),) = queries.due(most=4)
    assert refreshing.claim(tenant=tenant, sign_in=sign_in) is not None  # and is never heard of again
    assert queries.due(most=4) == []
    move_clock(refreshing.LEASE + timedelta(seconds=1))
    assert refreshed(world)
    assert the_row(world).standing == Standing.IN


def test_the_refresh_token_is_saved_with_the_access_token_or_neither_is(
    world: World, guarded: Guarded, move_clock: Ahead, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed_in(world, guarded)
    move_clock(SOON)
    ((tenant, sign_in),) = queries.due(most=4)
    work = refreshing.claim(tenant=tenant, sign_in=sign_in)
    assert work is not None
    outcome, order = refreshing.ask(work), []
    real = vault.put

    def put(name: str, value: str) -> int:
        order.append(name.rpartition(" ")[2])
        if len(order) == 2:
            raise ConnectionError("the database went away")
        return real(name, value)

    with db.read(world.tenant):
        kept = {row.name: row.version for row in Secret.objects.all()}
    with monkeypatch.context() as patch, pytest.raises(ConnectionError):
        patch.setattr(vault, "put", put)
        refreshing.settle(work, outcome)
    assert order[0] == "refresh"
    with db.read(world.tenant):
        assert {row.name: row.version for row in Secret.objects.all()} == kept
    assert refreshing.settle(work, outcome)  # the node keeps the outcome until it has committed
    assert not refreshing.settle(work, outcome)
    move_clock(SOON)
    assert refreshed(world)


def test_a_refresh_that_was_overtaken_by_a_new_sign_in_changes_nothing(
    world: World, guarded: Guarded, move_clock: Ahead
) -> None:
    connection = signed_in(world, guarded)
    move_clock(SOON)
    ((tenant, sign_in),) = queries.due(most=4)
    work = refreshing.claim(tenant=tenant, sign_in=sign_in)
    assert work is not None
    outcome = refreshing.ask(work)
    sign_in_again(world, connection, "m" * 32)
    newer = shown(world)
    assert not refreshing.settle(work, outcome)
    assert shown(world) == newer


@pytest.mark.rule("A12")
def test_a_grant_that_is_gone_asks_for_a_person_and_is_audited(
    world: World, guarded: Guarded, move_clock: Ahead
) -> None:
    signed_in(world, guarded)
    guarded.refresh_tokens.clear()
    move_clock(SOON)
    assert refreshed(world)
    row = the_row(world)
    assert row.standing == Standing.AGAIN and "invalid_grant" in row.trouble and row.refresh_due_at is None
    with db.read(world.tenant):
        assert not Secret.objects.exclude(name__endswith="client").exists()
        assert AuditEntry.objects.filter(verb="connection.sign_in_over").count() == 1
    assert not refreshed(world)


def test_a_provider_that_is_down_is_asked_again_later_and_later_and_a_busy_one_not_before_it_asked(
    world: World, guarded: Guarded, move_clock: Ahead
) -> None:
    """CASES B05: a refresh that met a 429 waits as long as it was told, five minutes at most."""
    signed_in(world, guarded)
    move_clock(SOON)
    pauses = []
    for status, wait in ((503, None), (429, "75"), (503, "abc"), (429, "9999")):
        guarded.says["/token"] = (status, {"error": "temporarily_unavailable"})
        guarded.retry_after = wait
        assert refreshed(world)
        row = the_row(world)
        assert row.refresh_due_at is not None
        with db.read(world.tenant) as now:
            pauses.append(round((row.refresh_due_at - now).total_seconds()))
        assert row.standing == Standing.IN and str(status) in row.trouble
        assert not refreshed(world)
        move_clock(timedelta(seconds=pauses[-1] + 1))
    assert pauses == [10, 75, 40, 300]
    del guarded.says["/token"]
    assert refreshed(world)
    assert the_row(world).trouble == "" and the_row(world).failures == 0


def test_a_grant_without_a_refresh_token_lasts_as_long_as_its_token(
    world: World, guarded: Guarded, move_clock: Ahead
) -> None:
    guarded.gives_refresh = False
    signed_in(world, guarded)
    move_clock(SOON)
    assert not refreshed(world)
    assert the_row(world).standing == Standing.IN
    move_clock(timedelta(minutes=5))
    assert not refreshed(world)
    assert the_row(world).standing == Standing.AGAIN


def test_a_client_that_the_provider_has_forgotten_is_registered_anew(
    world: World, guarded: Guarded, move_clock: Ahead
) -> None:
    connection = signed_in(world, guarded)
    guarded.says["/token"] = (401, {"error": "invalid_client"})
    move_clock(SOON)
    assert refreshed(world)
    assert the_row(world).standing == Standing.AGAIN and the_row(world).client_id == ""
    del guarded.says["/token"]
    sign_in_again(world, connection, "m" * 32)
    assert guarded.asked.count("/register") == 2 and the_row(world).standing == Standing.IN


# --- what a call sees ---------------------------------------------------------------------------------------------


def over_the_connection(world: World) -> None:
    """Let the world's tool be reached over the connection, its entries approved."""
    with db.write(world.tenant):
        Tool.objects.filter(slug="shop").update(transport=Transport.URL, connection="guarded", argv=[])
        for function in Function.objects.all():
            an_approval(world.person, function)


def test_the_servers_spec_carries_the_token_and_says_what_is_wrong_with_it(
    world: World, guarded: Guarded, move_clock: Ahead
) -> None:
    connection = signed_in(world, guarded)
    over_the_connection(world)

    def remote() -> Any:
        with db.read(world.tenant):
            return server_of(Tool.objects.select_related("plugin_version").get(slug="shop")).remote

    assert remote().headers["Authorization"] == f"Bearer {shown(world)[0]}" and not remote().trouble
    move_clock(OVER)
    assert "ran out" in remote().trouble and not remote().headers
    assert refreshed(world)
    assert not remote().trouble
    signing_in.sign_out(tenant=world.tenant, connection=connection, actor=SYSTEM)
    assert "nobody is signed in" in remote().trouble
    assert ids.show(ids.CONNECTION, connection) in remote().trouble and not remote().headers


def refused(at: datetime | None = None) -> Outcome:
    wire = Wire(connected=True, went_out=True, status=401, ended=AnswerEnd.COMPLETE, detail="Refused.")
    return Outcome(End.NOT_MADE, Reason.REFUSED_BY_SERVER, wire)


def test_a_401_is_not_made_and_makes_the_refresh_due(world: World, guarded: Guarded, move_clock: Ahead) -> None:
    signed_in(world, guarded)
    over_the_connection(world)
    move_clock(timedelta(minutes=2))
    call = a_call(world, "note")
    after = made(world, call, refused())
    assert after.state == CallState.FAILED and after.effect == "none"
    assert refreshed(world)


def test_a_401_for_the_token_before_or_for_a_brand_new_one_refreshes_nothing(
    world: World, guarded: Guarded, move_clock: Ahead
) -> None:
    signed_in(world, guarded)
    over_the_connection(world)
    move_clock(SOON)
    call = a_call(world, "note")
    order = an_order(world, call)
    assert refreshed(world)
    move_clock(timedelta(minutes=2))
    settle(world, order, refused())  # it went out with the token before
    assert not refreshed(world)
    assert see(world, Call, call).state == CallState.FAILED


def test_another_failure_refreshes_nothing(world: World, guarded: Guarded, move_clock: Ahead) -> None:
    signed_in(world, guarded)
    over_the_connection(world)
    move_clock(timedelta(minutes=2))
    made(world, a_call(world, "note"), replace(refused(), wire=replace(refused().wire, status=403)))
    assert not refreshed(world)


def test_a_failed_refresh_says_so_without_ending_the_grant(world: World, guarded: Guarded, move_clock: Ahead) -> None:
    signed_in(world, guarded)
    move_clock(SOON)
    ((tenant, sign_in),) = queries.due(most=4)
    work = refreshing.claim(tenant=tenant, sign_in=sign_in)
    assert work is not None
    assert refreshing.settle(work, Later("The provider cannot be asked."))
    assert the_row(world).trouble == "The provider cannot be asked."
