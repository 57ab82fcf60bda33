"""No table of a tenant is without its wall, and the look for gaps sees each kind of gap."""

from collections.abc import Iterator
from typing import Any, LiteralString

import psycopg
import pytest

from studio import embedded
from tests.repo.walls import Ask, gaps, tenanted

type Admin = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def admin(database: embedded.Postgres) -> Iterator[Admin]:
    """A connection that may do anything to the schema; what it does is rolled back."""
    with psycopg.connect(database.url_admin) as connection:
        yield connection
        connection.rollback()


def ask(connection: Admin) -> Ask:
    return lambda query: connection.execute(query.encode()).fetchall()


def test_every_table_of_a_tenant_is_walled_off(admin: Admin) -> None:
    assert {"jobs_job", "jobs_call", "catalog_tool", "tenants_tenant"} <= tenanted(ask(admin))
    found = gaps(ask(admin))
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("ALTER TABLE jobs_call NO FORCE ROW LEVEL SECURITY", "jobs_call has no enabled and forced"),
        ("ALTER TABLE jobs_call DISABLE ROW LEVEL SECURITY", "jobs_call has no enabled and forced"),
        ("DROP POLICY tenant ON jobs_call", "jobs_call has no policy"),
        (
            "CREATE POLICY all_of_it ON jobs_call TO oz0_app USING (true)",
            "jobs_call (all_of_it) is a policy that shows",
        ),
        ("CREATE POLICY all_of_it ON jobs_call USING (true)", "jobs_call (all_of_it) is a policy that shows"),
        ("CREATE TABLE stray (tenant_id uuid)", "stray has no enabled and forced"),
        ("ALTER TABLE jobs_attempt DROP CONSTRAINT jobs_attempt_call_id_same_tenant", "jobs_attempt.call_id can refer"),
    ],
)
def test_a_gap_is_seen(fault: LiteralString, said: str, admin: Admin) -> None:
    admin.execute(fault)
    assert any(gap.startswith(said) for gap in gaps(ask(admin))), gaps(ask(admin))
