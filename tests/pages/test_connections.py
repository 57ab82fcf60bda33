"""The pages of connections: who may change them, and that a credential is never shown again."""

import re
from typing import Any

import pytest

from base import db, ids
from catalog.models import Connection
from studio.embedded import Postgres
from tenants.models import Role, Secret
from tests.builders import World, a_person, a_world, an_agent
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


@pytest.mark.parametrize("provider", ["Anthropic", "OpenAI", "Google"])
def test_the_form_of_a_models_provider_lacks_nothing_but_the_key(database: Postgres, provider: str) -> None:
    world = a_world()
    client = visitor(world)
    page = text_of(client.get(f"{PAGE}new/?provider={provider}"))
    typed = {name: re.search(rf'name="{name}" value="([^"]*)"', page) for name in ("name", "url", "header")}
    kind = re.search(r'<option value="(\w+)" selected', page)
    assert kind is not None
    filled = {name: found[1] for name, found in typed.items() if found} | {"kind": kind[1], "value": "s3cret-value"}
    assert client.post(f"{PAGE}new/", filled).status_code == 302
    (row,) = there(world)
    assert row.name == provider.lower()
    assert row.url.startswith("https://")


def test_a_connection_over_which_an_agents_model_is_asked_is_not_removed(database: Postgres) -> None:
    world = a_world()
    client = visitor(world)
    client.post(f"{PAGE}new/", {**FORM, "name": "openai"})
    an_agent(world.tenant, "writer", model="openai-chat:some-model")
    (row,) = there(world)
    refused = client.post(f"{PAGE}{ids.show(ids.CONNECTION, row.pk)}/remove/")
    assert refused.status_code == 409
    assert "agent writer still uses it" in text_of(refused)
