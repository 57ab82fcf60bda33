"""PostgreSQL itself refuses impossible rows, other tenants' rows, and writes where only reading was meant."""

from collections.abc import Iterator
from typing import Any, Final, LiteralString
from uuid import UUID

import psycopg
import pytest
from django.apps import apps
from django.db import InternalError, ProgrammingError
from psycopg import errors, sql
from pytest_django import DjangoDbBlocker

from approvals.models import Way
from approvals.operations import channels, notices
from approvals.operations.decide import Person, decide
from approvals.rules.deciding import Decider
from base import db, ids
from budgets.models import Key, Run, SpendEvent, TagValue
from budgets.operations import admitting, agents, settling
from budgets.rules.words import LimitMode, Period
from catalog.models import Arrival, Came, Credential, EntryApproval, LintFinding, LintReport, Scope, ServerLog, Skill
from catalog.operations import connections, signing_in
from catalog.operations.connections import Given
from jobs.models import Body, Call, Hold, Hook, HookDelivery, Job, Session, Starter, Turn
from jobs.operations import exporting, harness, intake, outside, routines, turns
from jobs.operations.bodies import LARGE
from jobs.rules.orders import End
from jobs.rules.turns import Wanted
from studio.embedded import Postgres
from tenants.models import ApiToken, Identity, Invitation
from tenants.operations import logins, vault
from tenants.queries.seats import seats_of
from tenants.rules.bearers import DRAWN, written
from tenants.rules.who import Actor
from tests.budgets.ledgers import an_asking, another, cents, reserved_by, used_cents
from tests.builders import (
    World,
    a_call,
    a_job,
    a_policy,
    a_rule,
    a_switch,
    a_turn,
    a_world,
    an_agent,
    an_order,
    an_outcome,
    made,
    the_hold,
)
from tests.operations.broken_rows import BREAKS, change, copy

type Sql = psycopg.Connection[tuple[Any, ...]]


def a_full_world(slug: str) -> World:
    """A tenant with at least one row in every table, each walked to by operations where there is one."""
    world = a_world(slug)
    with db.write(world.tenant) as now:
        vault.put("key", "a value")
        token = ApiToken.objects.create(
            tenant_id=world.tenant, token_hash=f"hash of {slug}", name="t", created_by_id=world.person, created_at=now
        )
        Invitation.objects.create(
            tenant_id=world.tenant,
            token_hash=f"invitation to {slug}",
            role="viewer",
            made_by_id=world.person,
            made_at=now,
            expires_at=now,
        )
        Identity.objects.create(user_id=world.person, issuer="https://id.example", subject=slug, made_at=now)
        version = apps.get_model("catalog.PluginVersion").objects.get()
        Skill.objects.create(tenant_id=world.tenant, plugin_version=version, name="refunds", text="…")
        Arrival.objects.create(tenant_id=world.tenant, version=version, came=Came.FOLDER, files=[])
        LintReport.objects.create(
            tenant_id=world.tenant, plugin_version=version, linted="d", errors=0, warnings=1, made_at=now
        )
        LintFinding.objects.create(
            tenant_id=world.tenant,
            plugin_version=version,
            place=0,
            severity="warning",
            code="tools.tokens",
            file="oz0-plugin.yaml",
            message="it is long",
        )
        tool = apps.get_model("catalog.Tool").objects.get()
        ServerLog.objects.create(
            tenant_id=world.tenant, tool=tool, node=world.node, node_name="n1", lines=["stderr: up"], written_at=now
        )
        EntryApproval.objects.create(
            tenant_id=world.tenant,
            tool_slug="shop",
            function="look",
            entry_digest="d",
            approved_by_id=world.person,
            approved_at=now,
        )
    actor = Actor("pat", "link", world.person)
    started_by_themselves(world, actor)
    crm = connections.make(
        tenant=world.tenant,
        name="crm",
        url="https://crm.example/mcp",
        allowed=(),
        given=Given(Credential.OAUTH),
        actor=actor,
    )
    signing_in.enter_client(
        tenant=world.tenant, connection=crm, client_id="studio", secret=None, scopes="", actor=actor
    )
    a_policy(world, a_rule("other", "ask", tool="nowhere"))
    an_agent(world.tenant, "night-clerk")
    a_switch(world, Scope.AGENT, "night-clerk")
    made(world, a_call(world, "look", {"text": "é" * LARGE}), an_outcome(End.ANSWERED, text="x" * 3 * LARGE))
    an_order(world, a_call(world, "note"))  # an open attempt
    call = a_call(world, "refund")
    person = Person(Decider(world.person, "admin"), actor)
    decide(tenant=world.tenant, hold_id=the_hold(world, call).pk, person=person, answer="deny", note="no")
    again = a_call(world, "look")
    with db.write(world.tenant):
        before = Body.objects.create(tenant_id=world.tenant, data={}, size=2)
        Call.objects.filter(pk=again).update(again_of=call, edited_from=before)  # as if a person had done so
        Hold.objects.filter(call_id=call).update(edit=before)
        Turn.objects.filter(calls=again).update(response=before)  # as if a model had answered it
    wanted = channels.Wanted("on-call", url="https://hooks.example/x")
    channels.make(tenant=world.tenant, way=Way.WEBHOOK, wanted=wanted, secret="s", actor=actor)
    exporting.save(
        tenant=world.tenant, url="https://otlp.example/", allowed=(), header="Authorization", value="s", actor=actor
    )
    a_turn(world, a_job(world), "refund", "note")  # an open hold, and a queued call
    a_turn(world, a_job(world), "refund")  # a job that waits
    turns.start(tenant=world.tenant, job_id=a_job(world), node_id=world.node)  # a turn being asked
    for session in ("", "of a client outside"):
        client = outside.Client(world.tenant, token.pk, "t", world.agent, world.person, session)
        outside.submit(client=client, want=Wanted("shop__look", {}, "n:1"))
    a_session(world, slug)
    a_journal(world, slug)
    notices.note_due()  # a notice that carries another
    return world


def started_by_themselves(world: World, actor: Actor) -> None:
    """A routine, a hook and a token, each with a job that they have started."""
    asked = logins.ask(challenge="0" * 64, code="B" * 8, machine="m", address="::1")
    logins.answer(ask=asked.id, seat=seats_of(world.person)[0], allow=True, actor=actor)
    wanted = routines.Wanted("nightly", "clerk", "0 3 * * *", "UTC")
    routine = routines.make(tenant=world.tenant, wanted=wanted, person=world.person, actor=actor)
    routines.run_now(tenant=world.tenant, routine=routine, person=world.person, once="", actor=actor)
    event = a_job(world, starter=Starter.EVENT)
    by_token = a_job(world, starter=Starter.API_KEY)
    with db.write(world.tenant) as now:
        common = {"tenant_id": world.tenant, "person_id": world.person, "changed_at": now}
        hook = Hook.objects.create(name="orders", agent_name="clerk", **common)
        HookDelivery.objects.create(
            tenant_id=world.tenant,
            hook=hook,
            delivery="1",
            digest="d",
            came="started",
            job_id=event,
            first_at=now,
            last_at=now,
        )
        Job.objects.filter(pk=event).update(hook=hook)
        Job.objects.filter(pk=by_token).update(start_token=ApiToken.objects.get())


def a_journal(world: World, slug: str) -> None:
    """A project that has spent, reserved and denied, an operation that runs, and what its program told."""
    ledger = another(world.tenant, (Period.DAY, 1, LimitMode.HARD_DENY), name="p")
    whose: dict[str, Any] = {"tenant_id": world.tenant, "project_id": ledger.project}
    with db.write(world.tenant) as now:
        key = Key.objects.create(
            name="k", scope="full", token_hash=f"key of {slug}", ends="k", person_id=world.person, made_at=now, **whose
        )
        Key.objects.create(
            name="pair",
            scope="full",
            token_hash=f"pair of {slug}",
            refresh_hash=f"renews {slug}",
            access_until=now,
            expires_at=now,
            login=ApiToken.objects.get(token_hash=f"hash of {slug}"),
            person_id=world.person,
            made_at=now,
            **whose,
        )
        run = Run.objects.create(name="nightly", first_at=now, last_at=now, **whose)
        SpendEvent.objects.create(
            call_id="c",
            attempt_index=0,
            instance_id="i",
            timestamp=now,
            status="success",
            modality="text",
            input_tokens=1,
            output_tokens=1,
            run=run,
            received_at=now,
            **whose,
        )
        TagValue.objects.create(key="team", value="a", **whose)
    confirmed, _ = reserved_by(admitting.submit(an_asking(ledger, cents(), cents(), key=key.pk)))
    settling.confirm(tenant=ledger.tenant, project=ledger.project, reservation=confirmed, used=used_cents(), by="k")
    admitting.claim(an_asking(ledger, cents()))
    check = cents(model="rehearsal", provider="rehearsal")
    agents.reserve(tenant=world.tenant, agent="clerk", operation=ids.new(), check=check, job=ids.new(), turn=ids.new())


def a_session(world: World, slug: str) -> None:
    """A harness session that runs, and a call of its program."""
    an_agent(world.tenant, "program", harness=("/bin/false",))
    who: dict[str, Any] = {"given": {}, "starter": Starter.PERSON, "person": world.person}
    job = intake.start_job(tenant=world.tenant, agent="program", **who)
    with db.read(world.tenant):
        session = Session.objects.get(job_id=job).pk
    token = written((slug * DRAWN)[:DRAWN])
    assert harness.start(tenant=world.tenant, session_id=session, node_id=world.node, token=token)
    with db.read(world.tenant):
        token_id = Session.objects.values_list("token_id", flat=True).get(pk=session)
    client = outside.Client(world.tenant, token_id, "program", "program", None)
    outside.submit(client=client, want=Wanted("shop__look", {}))


@pytest.fixture(scope="module")
def worlds(
    cluster: Postgres, _empty: Any, django_db_blocker: DjangoDbBlocker
) -> Iterator[tuple[Postgres, World, World]]:
    """Two full tenants, made once for this file: every test here rolls back what it tries."""
    with django_db_blocker.unblock():
        yield cluster, a_full_world("ours"), a_full_world("theirs")
        from django.db import connection

        connection.close()
        _empty()


@pytest.fixture
def ours(worlds: tuple[Postgres, World, World]) -> World:
    return worlds[1]


@pytest.fixture
def theirs(worlds: tuple[Postgres, World, World]) -> World:
    return worlds[2]


@pytest.fixture
def app(worlds: tuple[Postgres, World, World]) -> Iterator[Sql]:
    """A connection as the application, for our tenant; what it does is rolled back."""
    cluster, world, _ = worlds
    with psycopg.connect(cluster.url_app) as connection:
        connection.execute("SELECT set_config('oz0.tenant', %s, true)", [str(world.tenant)])
        yield connection
        connection.rollback()


@pytest.fixture
def admin(worlds: tuple[Postgres, World, World]) -> Iterator[Sql]:
    """A connection that no wall stops; what it does is rolled back."""
    with psycopg.connect(worlds[0].url_admin) as connection:
        yield connection
        connection.rollback()


OURS: Final = ("tenants", "catalog", "budgets", "jobs", "approvals")


@pytest.mark.parametrize("name", BREAKS)
def test_postgresql_refuses_the_row_that_this_constraint_forbids(name: str, app: Sql) -> None:
    with pytest.raises(psycopg.IntegrityError) as refused:
        app.execute(BREAKS[name])
    assert refused.value.diag.constraint_name == name


def test_every_constraint_of_every_model_is_tried_above() -> None:
    declared = {
        constraint.name
        for app in OURS
        for model in apps.get_app_config(app).get_models()
        for constraint in model._meta.constraints
    }
    assert declared - {"unique_username"} == set(BREAKS)


# --- references -----------------------------------------------------------------------------------------------------

# Keys that two rows would share before their references are looked at; nothing refers to them.
SHARED_KEYS: Final = """
SELECT c.conrelid::regclass::text, 'ALTER TABLE ' || c.conrelid::regclass || ' DROP CONSTRAINT ' || c.conname
FROM pg_constraint c WHERE c.contype IN ('u', 'p') AND c.connamespace = 'public'::regnamespace
AND NOT EXISTS (SELECT FROM pg_constraint f WHERE f.contype = 'f' AND f.conindid = c.conindid)
UNION ALL SELECT i.indrelid::regclass::text, 'DROP INDEX ' || i.indexrelid::regclass FROM pg_index i
WHERE i.indisunique AND i.indpred IS NOT NULL
"""
REFERENCES: Final = """
SELECT c.conname, c.conrelid::regclass::text, c.confrelid::regclass::text,
    (SELECT attname FROM pg_attribute WHERE attrelid = c.conrelid AND attnum = c.conkey[2])
FROM pg_constraint c WHERE c.conname LIKE '%_same_tenant' ORDER BY 1
"""


def test_no_row_refers_to_another_tenants(admin: Sql, ours: World, theirs: World) -> None:
    found = admin.execute(REFERENCES).fetchall()
    assert len(found) >= 20
    tables = {table for _, table, _, _ in found}
    for table, drop in admin.execute(SHARED_KEYS).fetchall():
        if table in tables:
            admin.execute(drop)
    for table in tables:  # what keeps history as it is would speak first
        admin.execute(sql.SQL("ALTER TABLE {} DISABLE TRIGGER USER").format(sql.Identifier(table)))
    for name, table, parent, column in found:
        row = admin.execute(
            sql.SQL("SELECT ctid FROM {} WHERE tenant_id = %s AND {} IS NOT NULL LIMIT 1").format(
                sql.Identifier(table), sql.Identifier(column)
            ),
            [ours.tenant],
        ).fetchone()
        assert row is not None, f"no row of ours has a {table}.{column}: walk to one in a_full_world"
        other = admin.execute(
            sql.SQL("SELECT id FROM {} WHERE tenant_id = %s LIMIT 1").format(sql.Identifier(parent)), [theirs.tenant]
        ).fetchone()
        assert other is not None, f"no row of theirs is in {parent}"
        with pytest.raises(errors.ForeignKeyViolation) as refused, admin.transaction():
            admin.execute(
                sql.SQL("UPDATE {} SET {} = %s WHERE ctid = %s").format(sql.Identifier(table), sql.Identifier(column)),
                [other[0], row[0]],
            )
        assert refused.value.diag.constraint_name == name


# --- tenants ----------------------------------------------------------------------------------------------------------


def tenanted(admin: Sql) -> list[str]:
    """Every table with rows of a tenant."""
    found = admin.execute(
        "SELECT relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND attname = 'tenant_id' "
        "WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 1"
    )
    return [name for (name,) in found]


def test_every_table_shows_our_rows_and_hides_theirs_from_reading_changing_and_deleting(
    app: Sql, admin: Sql, ours: World, theirs: World
) -> None:
    for table in tenanted(admin):
        name = sql.Identifier(table)
        there = admin.execute(sql.SQL("SELECT count(*) FROM {} WHERE tenant_id = %s").format(name), [theirs.tenant])
        assert there.fetchone() != (0,), f"{table} holds nothing of theirs to hide: walk to a row in a_full_world"
        seen = app.execute(sql.SQL("SELECT DISTINCT tenant_id FROM {}").format(name)).fetchall()
        assert seen == [(ours.tenant,)], table
        for statement in ("UPDATE {} SET tenant_id = tenant_id", "DELETE FROM {}"):
            try:
                with app.transaction():
                    assert (
                        app.execute(sql.SQL(statement + " WHERE tenant_id = %s").format(name), [theirs.tenant]).rowcount
                        == 0
                    ), table
            except errors.InsufficientPrivilege:
                continue  # append-only


def test_who_shows_a_token_sees_that_one_and_nothing_else_and_writes_none(app: Sql, theirs: World) -> None:
    app.execute("SELECT set_config('oz0.tenant', '', true), set_config('oz0.bearer', 'hash of theirs', true)")
    assert app.execute("SELECT token_hash FROM tenants_apitoken").fetchall() == [("hash of theirs",)]
    assert app.execute("SELECT token_hash FROM tenants_invitation").fetchall() == []
    assert app.execute("SELECT name FROM jobs_hook").fetchall() == []
    for table in ("tenants_secret", "tenants_membership", "tenants_tenant", "jobs_job"):
        assert app.execute(sql.SQL("SELECT 1 FROM {}").format(sql.Identifier(table))).fetchone() is None, table
    with pytest.raises(errors.InsufficientPrivilege, match="row-level security"):
        app.execute("UPDATE tenants_apitoken SET revoked_at = null")


def test_who_names_a_hook_sees_that_one_and_nothing_else_and_writes_none(app: Sql, admin: Sql, theirs: World) -> None:
    found = admin.execute("SELECT id FROM jobs_hook WHERE tenant_id = %s", [theirs.tenant]).fetchone()
    assert found is not None
    app.execute("SELECT set_config('oz0.tenant', '', true), set_config('oz0.bearer', %s, true)", [str(found[0])])
    assert app.execute("SELECT id FROM jobs_hook").fetchall() == [found]
    for table in ("jobs_hookdelivery", "tenants_secret", "tenants_apitoken", "jobs_job"):
        assert app.execute(sql.SQL("SELECT 1 FROM {}").format(sql.Identifier(table))).fetchone() is None, table
    with pytest.raises(errors.InsufficientPrivilege, match="row-level security"):
        app.execute("UPDATE jobs_hook SET name = 'ours'")


def test_without_a_tenant_nothing_is_seen(app: Sql, admin: Sql) -> None:
    app.execute("SELECT set_config('oz0.tenant', '', true)")
    for table in tenanted(admin):
        assert app.execute(sql.SQL("SELECT 1 FROM {}").format(sql.Identifier(table))).fetchone() is None, table


@pytest.mark.parametrize("table", ["jobs_job", "jobs_event", "catalog_killswitch", "tenants_auditentry"])
def test_no_row_can_be_written_for_another_tenant(table: str, app: Sql, theirs: World) -> None:
    with pytest.raises(errors.InsufficientPrivilege, match="row-level security"):
        app.execute(copy(table, tenant_id=str(theirs.tenant)))


def test_the_operations_see_only_the_tenant_they_were_asked_for(ours: World, theirs: World) -> None:
    def all_jobs(tenant: UUID) -> set[UUID]:
        with db.read(tenant):
            return set(Job.objects.values_list("pk", flat=True))

    assert all_jobs(ours.tenant)
    assert all_jobs(theirs.tenant)
    assert not all_jobs(ours.tenant) & all_jobs(theirs.tenant)


# --- who may not write ------------------------------------------------------------------------------------------------


NEVER_CHANGED: Final = (
    "jobs_event",
    "tenants_auditentry",
    "approvals_decision",
    "budgets_receipt",
    "budgets_spendevent",
)


@pytest.mark.rule("A12")
@pytest.mark.parametrize("table", NEVER_CHANGED)
@pytest.mark.parametrize("statement", ["UPDATE {} SET tenant_id = tenant_id", "DELETE FROM {}", "TRUNCATE {}"])
def test_what_was_written_down_is_never_changed_by_the_application(
    table: str, statement: LiteralString, app: Sql
) -> None:
    with pytest.raises(errors.InsufficientPrivilege):
        app.execute(sql.SQL(statement).format(sql.Identifier(table)))


@pytest.mark.parametrize(
    "statement",
    ["UPDATE oz0_clock SET ahead = '1 day'", "DELETE FROM oz0_clock", "INSERT INTO oz0_clock VALUES (false, '1 day')"],
)
def test_the_application_cannot_move_the_clock(statement: LiteralString, app: Sql) -> None:
    with pytest.raises(errors.InsufficientPrivilege):
        app.execute(statement)


def test_a_read_writes_nothing(ours: World) -> None:
    with pytest.raises(InternalError, match="read-only"), db.read(ours.tenant):
        Body.objects.create(tenant_id=ours.tenant, data={}, size=2)


def test_a_sweep_sees_every_tenants_work_but_writes_nothing_and_reads_no_values(ours: World, theirs: World) -> None:
    with db.sweep():
        assert set(Call.objects.values_list("tenant_id", flat=True)) == {ours.tenant, theirs.tenant}
    with pytest.raises((InternalError, ProgrammingError)), db.sweep():
        Job.objects.update(detail="touched")
    with pytest.raises(ProgrammingError, match="permission denied"), db.sweep():
        list(Body.objects.all())


def test_the_application_is_no_owner_and_reaches_no_other_role_but_the_sweeps(app: Sql) -> None:
    with pytest.raises(errors.InsufficientPrivilege), app.transaction():
        app.execute("SET ROLE oz0_owner")
    with pytest.raises(errors.InsufficientPrivilege), app.transaction():
        app.execute("ALTER TABLE jobs_job DISABLE ROW LEVEL SECURITY")


# --- the gate -------------------------------------------------------------------------------------------------------


@pytest.mark.rule("L7")
@pytest.mark.parametrize(
    "statement",
    [
        copy("catalog_killswitch", target="another"),
        change("catalog_killswitch", "true", off_at="now()"),
        copy("catalog_policyversion", number=90),
        copy("catalog_entryapproval"),
        change("catalog_entryapproval", "true", withdrawn_at="now()"),
        "DELETE FROM catalog_entryapproval",
    ],
)
def test_every_change_of_what_may_run_passes_the_gate_also_by_plain_sql(
    statement: LiteralString, app: Sql, ours: World
) -> None:
    def version() -> tuple[Any, ...] | None:
        return app.execute("SELECT version FROM tenants_gate").fetchone()

    before = version()
    app.execute(statement)
    after = version()
    assert before is not None
    assert after == (before[0] + 1,)


def test_a_tenant_without_a_gate_starts_nothing() -> None:
    from jobs.queries import locks

    with pytest.raises(locks.NoGate), db.write(ids.new()):
        locks.gate_shared()
