"""The pages of connections: who may change them, and that a credential is never shown again."""

from typing import Any

import pytest

from base import db, ids
from catalog.models import Connection
from studio.embedded import Postgres
from tenants.models import Role, Secret
from tests.builders import World, a_person, a_world
from tests.pages.visitors import text_of, visitor

PAGE = "/settings/connections/"
FORM = {
    "name": "archive",
    "url": "https://mcp.example.org/mcp",
    "allowed": "127.0.0.1:8801 intranet.example:80",
    "kind": "bearer",
    "header": "",
    "value": "s3cret-value",
}


def there(world: World) -> list[Connection]:
    with db.read(world.tenant):
        return list(Connection.objects.order_by("name"))


def test_an_admin_adds_changes_and_removes_a_connection_whose_credential_is_never_shown(database: Postgres) -> None:
    world = a_world()
    client = visitor(world)
    assert client.post(f"{PAGE}new/", FORM).status_code == 302
    (row,) = there(world)
    mine = f"{PAGE}{ids.show(ids.CONNECTION, row.pk)}/"
    assert "intranet.example:80" in text_of(client.get(mine))
    for page in (PAGE, mine):
        assert "s3cret" not in text_of(client.get(page))
    change: dict[str, Any] = {**FORM, "value": "", "allowed": ""}
    assert client.post(mine, change).status_code == 302
    (row,) = there(world)
    assert (row.allowed, row.credential, row.credential_version) == ([], "bearer", 2)
    assert client.post(f"{mine}remove/").status_code == 302
    assert there(world) == []
    with db.read(world.tenant):
        assert not Secret.objects.exists()


@pytest.mark.parametrize("wrong", [{"allowed": "*:80"}, {"kind": "password"}, {"url": "http://user@host/"}])
def test_what_is_wrong_is_said_with_what_was_typed_but_for_the_credential(
    database: Postgres, wrong: dict[str, str]
) -> None:
    world = a_world()
    response = visitor(world).post(f"{PAGE}new/", {**FORM, **wrong})
    assert response.status_code == 422
    assert "intranet.example:80" in text_of(response) or "allowed" in wrong
    assert "s3cret" not in text_of(response)
    assert there(world) == []


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR, Role.AUTHOR])
def test_nobody_else_sees_or_changes_connections(database: Postgres, role: Role) -> None:
    world = a_world()
    client = visitor(world, a_person(world.tenant, "kim", role))
    assert client.get(PAGE).status_code == 403
    assert client.post(f"{PAGE}new/", FORM).status_code == 403
    assert there(world) == []
