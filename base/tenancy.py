"""The SQL that keeps tenants apart, for migrations: row-level security, and references that carry the tenant."""

from collections.abc import Mapping
from typing import Final

from django.db.migrations.operations.special import RunSQL

TENANT: Final = "nullif(current_setting('oz0.tenant', true), '')::uuid"
PERSON: Final = "nullif(current_setting('oz0.person', true), '')::bigint"
BEARER: Final = "nullif(current_setting('oz0.bearer', true), '')"


def protect(
    table: str, *, visible: str = f"tenant_id = {TENANT}", swept: bool = False, append_only: bool = False
) -> RunSQL:
    """Show rows of `table` to `oz0_app` only where `visible`; `swept` tables are readable by sweeps of all tenants.

    An `append_only` table takes no update and no delete from the application, whatever its code says.
    """
    sql = [
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY",
        f"CREATE POLICY tenant ON {table} TO oz0_app USING ({visible})",
        f"CREATE POLICY migrations ON {table} TO oz0_owner USING (true)",
    ]
    if swept:
        sql += _swept(table)
    if append_only:
        sql += [f"REVOKE UPDATE, DELETE, TRUNCATE ON {table} FROM oz0_app"]
    return RunSQL(tuple(sql), RunSQL.noop)


def sweep_too(table: str) -> RunSQL:
    """Make a table that is protected already readable by sweeps of all tenants."""
    back = (f"DROP POLICY sweeps ON {table}", f"REVOKE SELECT ON {table} FROM oz0_sweep")  # noqa: S608
    return RunSQL(_swept(table), back)


def _swept(table: str) -> tuple[str, str]:
    policy = f"CREATE POLICY sweeps ON {table} FOR SELECT TO oz0_sweep USING (true)"
    return f"GRANT SELECT ON {table} TO oz0_sweep", policy


def see_bearer(table: str) -> RunSQL:
    """Show the row of `table` whose `token_hash` somebody has shown, also before their tenant is known."""
    visible = f"tenant_id = {TENANT} OR token_hash = {BEARER}"
    back = f"ALTER POLICY tenant ON {table} USING (tenant_id = {TENANT})"
    return RunSQL(f"ALTER POLICY tenant ON {table} USING ({visible}) WITH CHECK (tenant_id = {TENANT})", back)


def see_named(table: str) -> RunSQL:
    """Show the row of `table` whose id somebody has named, also before its tenant is known: `db.read_as_bearer`."""
    visible = f"tenant_id = {TENANT} OR id::text = {BEARER}"
    back = f"ALTER POLICY tenant ON {table} USING (tenant_id = {TENANT})"
    return RunSQL(f"ALTER POLICY tenant ON {table} USING ({visible}) WITH CHECK (tenant_id = {TENANT})", back)


def refer(table: str, references: Mapping[str, str]) -> RunSQL:
    """Make each `column: parent table` of `table` refer to its parent's (tenant_id, id): none crosses tenants."""
    sql = [
        f"ALTER TABLE {table} ADD CONSTRAINT {table}_{column}_same_tenant FOREIGN KEY (tenant_id, {column}) "
        f"REFERENCES {parent} (tenant_id, id) DEFERRABLE INITIALLY IMMEDIATE"
        for column, parent in references.items()
    ]
    return RunSQL(tuple(sql), RunSQL.noop)


def referable(*tables: str) -> RunSQL:
    """Let other tables refer to these by (tenant_id, id)."""
    sql = [f"ALTER TABLE {table} ADD CONSTRAINT {table}_in_tenant UNIQUE (tenant_id, id)" for table in tables]
    return RunSQL(tuple(sql), RunSQL.noop)
