"""The audit log cannot be changed by the application, and whatever somebody above it does to it is found."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, connection

from base import canonical, db
from studio import embedded
from tenants.models import AuditEntry, AuditHead
from tenants.operations import audit
from tenants.queries.audit import AuditFilter
from tenants.rules.audit_chain import Head
from tenants.rules.who import Actor
from tests.builders import a_tenant

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.rule("A12")]
PAT = Actor("pat", "link, 127.0.0.1")


def a_log(entries: int = 6) -> Any:
    tenant = a_tenant()
    for number in range(entries):
        with db.write(tenant):
            audit.record(PAT, "tool.listed_anew", f"tool t{number}", before={"n": number}, after={"n": number + 1})
    return tenant


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE tenants_auditentry SET note = 'x'",
        "DELETE FROM tenants_auditentry",
        "TRUNCATE tenants_auditentry",
        "DELETE FROM tenants_audithead",
        "UPDATE tenants_audithead SET seq = seq - 1",
        "UPDATE tenants_audithead SET hash = repeat('0', 64)",
    ],
)
def test_neither_the_application_nor_the_owner_of_the_schema_can_change_what_is_written(
    sql: str, database: embedded.Postgres
) -> None:
    tenant = a_log(2)
    with pytest.raises(DatabaseError, match=r"permission denied|append-only|only moves forward"):
        with db.write(tenant), connection.cursor() as cursor:
            cursor.execute(sql)
    with psycopg.connect(database.url_owner, autocommit=True) as owner:
        with pytest.raises(psycopg.Error, match=r"append-only|only moves forward"):
            owner.execute(sql)
    assert audit.verify(tenant).entries == 2
    assert audit.first_broken(tenant) is None


def tampered(database: embedded.Postgres, *statements: str) -> None:
    """As the superuser, with the triggers off: what no role of the product can do."""
    with psycopg.connect(database.url_admin, autocommit=True) as admin:
        admin.execute("SET session_replication_role = replica")
        for statement in statements:
            admin.execute(statement)


def rehash(seq: int) -> Callable[[Any], str]:
    """The statement that gives a changed entry a hash that fits it: the forger knows the method."""

    def statement(tenant: Any) -> str:
        with db.read(tenant):
            entry = AuditEntry.objects.get(seq=seq)
        return f"UPDATE tenants_auditentry SET hash = '{audit.hash_of(entry)}' WHERE seq = {seq}"

    return statement


@pytest.mark.parametrize(
    ("statements", "broken_at", "why"),
    [
        (["UPDATE tenants_auditentry SET note = 'forged' WHERE seq = 3"], 3, "changed"),
        (["UPDATE tenants_auditentry SET after = '{\"n\": 9}' WHERE seq = 6"], 6, "changed"),
        (["UPDATE tenants_auditentry SET at = at - interval '1 day' WHERE seq = 1"], 1, "changed"),
        (["DELETE FROM tenants_auditentry WHERE seq = 4"], 4, "missing"),
        (["DELETE FROM tenants_auditentry WHERE seq = 1"], 1, "missing"),
        (
            [
                "UPDATE tenants_auditentry SET seq = 90 WHERE seq = 2",
                "UPDATE tenants_auditentry SET seq = 2 WHERE seq = 3",
                "UPDATE tenants_auditentry SET seq = 3 WHERE seq = 90",
            ],
            2,
            "does not follow",
        ),
        (["DELETE FROM tenants_auditentry WHERE seq > 4"], 5, "ends at entry 6"),
    ],
    ids=["note", "after", "time", "taken out", "the first", "reordered", "cut off"],
)
def test_what_the_superuser_does_to_the_log_is_found_at_its_place(
    statements: list[str], broken_at: int, why: str, database: embedded.Postgres
) -> None:
    tenant = a_log()
    assert audit.verify(tenant).broken_at is None, "the control: an untouched log holds"
    tampered(database, *statements)
    found = audit.verify(tenant)
    assert found.broken_at == broken_at
    assert why in found.why


def test_a_forger_who_hashes_the_entry_anew_is_found_at_the_next_one(database: embedded.Postgres) -> None:
    tenant = a_log()
    tampered(database, "UPDATE tenants_auditentry SET actor = 'nobody' WHERE seq = 3")
    tampered(database, rehash(3)(tenant))
    found = audit.verify(tenant)
    assert (found.broken_at, found.entries) == (4, 3)
    assert "does not follow" in found.why


def test_a_tail_that_was_cut_off_with_the_head_put_back_is_found_by_a_head_that_was_kept(
    database: embedded.Postgres,
) -> None:
    tenant = a_log()
    kept = audit.verify(tenant).head
    with db.read(tenant):
        fourth = AuditEntry.objects.get(seq=4).hash
    tampered(
        database,
        "DELETE FROM tenants_auditentry WHERE seq > 4",
        f"UPDATE tenants_audithead SET seq = 4, hash = '{fourth}'",
    )
    assert audit.verify(tenant).broken_at is None, "by itself the shorter log is a whole one"
    found = audit.verify(tenant, earlier=kept)
    assert (found.broken_at, found.head) == (5, Head(4, fourth))
    assert "entries 5 to 6 were cut off" in found.why
    for number in range(3):  # and what is written after it does not hide it
        with db.write(tenant):
            audit.record(PAT, "tool.listed_anew", f"tool new{number}")
    assert audit.verify(tenant).broken_at is None
    assert audit.verify(tenant, earlier=kept).broken_at == 6


def test_an_export_is_an_entry_itself_and_holds_what_was_there_before_it() -> None:
    tenant = a_log(3)
    links = list(audit.export(tenant=tenant, actor=PAT, kind="csv", wanted=AuditFilter(who="pat")))
    assert [link.seq for link in links] == [1, 2, 3]
    assert all(canonical.digest_of_any(link.said) == link.hash for link in links)
    with db.read(tenant):
        noted = AuditEntry.objects.get(seq=4)
        assert AuditHead.objects.get().seq == 4
    assert (noted.verb, noted.after) == ("audit.exported", {"as": "csv", "up_to": 3, "who": "pat"})
