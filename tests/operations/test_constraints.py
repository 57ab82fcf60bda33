"""PostgreSQL itself refuses impossible rows, other tenants' rows, and writes where only reading was meant."""

import json
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
from catalog.models import Arrival, Came, Credential, EntryApproval, LintFinding, LintReport, Scope, ServerLog, Skill
from catalog.operations import connections, signing_in
from catalog.operations.connections import Given
from jobs.models import Body, Call, Hold, Job, Turn
from jobs.operations import outside, turns
from jobs.operations.bodies import LARGE
from jobs.rules.orders import End
from jobs.rules.turns import Wanted
from studio.embedded import Postgres
from tenants.models import ApiToken, Identity, Invitation
from tenants.operations import vault
from tenants.rules.who import Actor
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
    a_turn(world, a_job(world), "refund", "note")  # an open hold, and a queued call
    a_turn(world, a_job(world), "refund")  # a job that waits
    turns.start(tenant=world.tenant, job_id=a_job(world), node_id=world.node)  # a turn being asked
    for session in ("", "of a client outside"):
        client = outside.Client(world.tenant, token.pk, "t", world.agent, world.person, session)
        outside.submit(client=client, want=Wanted("shop__look", {}, "n:1"))
    notices.note_due()  # a notice that carries another
    return world


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


def change(table: str, where: str, **columns: object) -> LiteralString:
    """SQL that changes the first such row."""
    sets = ", ".join(f"{name} = {value}" for name, value in columns.items())
    return f"UPDATE {table} SET {sets} WHERE id = (SELECT id FROM {table} WHERE {where} ORDER BY id LIMIT 1)"  # type: ignore[return-value]


def copy(table: str, where: str = "true", **columns: object) -> LiteralString:
    """SQL that writes the first such row a second time, with a new id and these columns."""
    other = json.dumps({"id": str(ids.new()), **columns})
    return (
        f"INSERT INTO {table} SELECT (jsonb_populate_record(r, '{other}')).* FROM {table} r "  # type: ignore[return-value]
        f"WHERE {where} ORDER BY r.id LIMIT 1"
    )


# Every constraint of our models, and a statement that breaks it.
BREAKS: Final[dict[str, LiteralString]] = {
    "membership_once": copy("tenants_membership"),
    "server_log_once": copy("catalog_serverlog"),
    "membership_role": change("tenants_membership", "true", role="'owner'"),
    "invitation_role": change("tenants_invitation", "true", role="'owner'"),
    "invitation_accepted_or_revoked": change("tenants_invitation", "true", accepted_at="now()"),
    "identity_once": "INSERT INTO tenants_identity (user_id, issuer, subject, made_at) "
    "SELECT user_id, issuer, subject, made_at FROM tenants_identity LIMIT 1",
    "secret_once": copy("tenants_secret"),
    "audit_seq_once": copy("tenants_auditentry"),
    "channel_name_once": copy("approvals_channel"),
    "channel_way": change("approvals_channel", "true", way="'pigeon'"),
    "channel_removed_is_off": change("approvals_channel", "true", removed_at="now()"),
    "delivery_state": change("approvals_delivery", "standing = 'carried'", standing="'perhaps'"),
    "delivery_once": copy("approvals_delivery"),
    "delivery_due_until_ended": change("approvals_delivery", "standing = 'due'", due_at="NULL"),
    "plugin_once": copy("catalog_plugin"),
    "plugin_version_once": copy("catalog_pluginversion", stage="old"),
    "plugin_one_current": copy("catalog_pluginversion", digest="another"),
    "plugin_version_stage": change("catalog_pluginversion", "true", stage="'best'"),
    "arrival_came": copy("catalog_arrival", came="by itself"),
    "lint_finding_once": copy("catalog_lintfinding"),
    "lint_finding_severity": change("catalog_lintfinding", "true", severity="'hint'"),
    "tool_once": copy("catalog_tool"),
    "tool_transport": change("catalog_tool", "true", transport="'post'"),
    "tool_timeout_range": change("catalog_tool", "true", timeout=3601),
    "tool_sandboxed_or_not": change("catalog_tool", "true", sandbox="'{}'"),
    "tool_positive": change("catalog_tool", "true", slots=0),
    "connection_once": copy("catalog_connection"),
    "connection_credential": change("catalog_connection", "true", credential="'password'"),
    "connection_names_its_header": change("catalog_connection", "true", header="'X-Key'"),
    "sign_in_standing": change("catalog_signin", "true", standing="'perhaps'"),
    "sign_in_has_a_grant": change("catalog_signin", "true", standing="'in'"),
    "listing_one_current": copy("catalog_listing"),
    "function_once": copy("catalog_function"),
    "agent_once": copy("catalog_agent"),
    "skill_once": copy("catalog_skill"),
    "policy_number_once": copy("catalog_policyversion"),
    "switch_once": copy("catalog_killswitch"),
    "switch_target_of_scope": change("catalog_killswitch", "true", scope="'tenant'"),
    "switch_mode": change("catalog_killswitch", "true", mode="'harder'"),
    "switch_scope": change("catalog_killswitch", "true", scope="'world'"),
    "node_state": change("jobs_node", "true", state="'zombie'"),
    "job_state": change("jobs_job", "true", state="'paused'"),
    "job_starter": change("jobs_job", "true", starter="'cat'"),
    "job_ended_when_final": change("jobs_job", "state = 'running'", state="'FAILED'"),
    "job_cancelling_ends_as": change("jobs_job", "state = 'running'", state="'cancelling'"),
    "job_turn_due_while_live": change("jobs_job", "state = 'waiting'", turn_due_at="now()"),
    "job_on_unknown": change("jobs_job", "true", on_unknown="'guess'"),
    "job_tainted_by_something": change("jobs_job", "tainted_at IS NULL", tainted_at="now()"),
    "job_driver": change("jobs_job", "driver = 'model'", driver="'cat'"),
    "job_of_a_client_has_its_token": change("jobs_job", "driver = 'outside'", idle_at="NULL"),
    "job_one_open_of_a_client": change("jobs_job", "client_session <> ''", client_session="''"),
    "job_started_once": "UPDATE jobs_job SET start_key = 'form 1'",
    "turn_once": copy("jobs_turn", "state = 'answered'"),
    "turn_one_open": copy("jobs_turn", "state = 'asked'", number=90),
    "turn_state": change("jobs_turn", "true", state="'heard'"),
    "turn_ended_when_closed": change("jobs_turn", "state = 'answered'", ended_at="null"),
    "call_activity_once": copy("jobs_call"),
    "call_state": change("jobs_call", "state = 'running'", state="'paused'"),
    "call_asked_again_once": "UPDATE jobs_call SET again_of_id = (SELECT id FROM jobs_call ORDER BY id LIMIT 1)",
    "call_effect": change("jobs_call", "true", effect="'perhaps'"),
    "call_ended_when_final": change("jobs_call", "state = 'running'", state="'SUCCEEDED'"),
    "call_due_when_claimable": change("jobs_call", "state = 'queued'", due_at="null"),
    "attempt_number_once": copy("jobs_attempt", "state = 'answered'"),
    "attempt_one_open": copy("jobs_attempt", "state = 'open'", number=2),
    "attempt_state": change("jobs_attempt", "state = 'answered'", state="'won'"),
    "attempt_ended_when_closed": change("jobs_attempt", "state = 'open'", state="'answered'"),
    "attempt_limit_after_start": change("jobs_attempt", "true", limit_at="started_at"),
    "attempt_token_with_progress": change("jobs_attempt", "true", resume_token="'t1'"),
    "attempt_resumed_or_started_over": change(
        "jobs_attempt", "true", resumed_from="1", started_over_because="'no_token'"
    ),
    "attempt_stop_says_why": change("jobs_attempt", "true", stop_requested_at="now()"),
    "hold_one_open": copy("jobs_hold", "state = 'open'"),
    "hold_state": change("jobs_hold", "state = 'open'", state="'denied'", closed_at="now()"),
    "hold_kind": change("jobs_hold", "true", kind="'quiz'", expires_at="null"),
    "hold_closed_when_not_open": change("jobs_hold", "state = 'open'", state="'withdrawn'"),
    "hold_answered_by_someone": change("jobs_hold", "state = 'answered'", answered_by_id="null"),
    "hold_questions_never_expire": change("jobs_hold", "state = 'open'", kind="'unknown'"),
    "event_seq_once": copy("jobs_event"),
    "decision_once": copy("approvals_decision"),
}
OURS: Final = ("tenants", "catalog", "jobs", "approvals")


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
    for table in ("tenants_secret", "tenants_membership", "tenants_tenant", "jobs_job"):
        assert app.execute(sql.SQL("SELECT 1 FROM {}").format(sql.Identifier(table))).fetchone() is None, table
    with pytest.raises(errors.InsufficientPrivilege, match="row-level security"):
        app.execute("UPDATE tenants_apitoken SET revoked_at = null")


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


@pytest.mark.rule("A12")
@pytest.mark.parametrize("table", ["jobs_event", "tenants_auditentry", "approvals_decision"])
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
