"""The vault's page: values go in and never come out (RULES A12, A14)."""

from pathlib import Path
from typing import Any

import pytest

from base import db, ids
from catalog.models import Credential, Tool
from catalog.operations import connections, plugins, variables
from catalog.operations.connections import Given
from tenants.models import AuditEntry, Role, Secret
from tenants.operations import vault
from tenants.rules.who import SYSTEM
from tests.builders import World, a_person, a_world
from tests.pages.visitors import plain, text_of, visitor

pytestmark = pytest.mark.usefixtures("database")
VALUE = "s3cret-value-of-ours"


def a_plugin(world: World, folder: Path, name: str = "reports", *tools: str) -> None:
    """A plugin whose tools ask for API_KEY and LOG_LEVEL."""
    place = folder / name
    place.mkdir()
    listed = "".join(f"  - {{id: {tool}, mcp: [/bin/true], env: [API_KEY, LOG_LEVEL]}}\n" for tool in tools or (name,))
    (place / "oz0-plugin.yaml").write_text(f'name: {name}\nversion: "1"\ntools:\n{listed}')
    plugins.register(tenant=world.tenant, folder=place, home=folder, actor=SYSTEM)


def put(world: World, **fields: str) -> Any:
    return visitor(world).post("/settings/secrets/put/", {"name": "API_KEY", "tool": "", "value": VALUE, **fields})


def given(world: World, slug: str) -> tuple[dict[str, str], str, str]:
    """What the tool's program gets, the version of it, and what is in the way."""
    with db.read(world.tenant):
        return variables.variables_of_tool(Tool.objects.select_related("plugin_version").get(slug=slug))


@pytest.mark.rule("A12")
def test_a_value_is_entered_used_and_on_no_page_and_in_no_entry(tmp_path: Path) -> None:
    world = a_world()
    a_plugin(world, tmp_path)
    page = plain(text_of(visitor(world).get("/settings/secrets/")))
    assert "2 variables missing" in page and "reports: API_KEY" in page
    assert "has no usable value for the variable API_KEY" in given(world, "reports")[2]
    assert put(world).status_code == 302
    assert put(world, name="LOG_LEVEL", value="debug", tool="reports").status_code == 302
    values, version, trouble = given(world, "reports")
    assert (values, trouble) == ({"API_KEY": VALUE, "LOG_LEVEL": "debug"}, "")
    page = text_of(visitor(world).get("/settings/secrets/"))
    assert VALUE not in page and "of every tool that asks for it" in page and "of the tool" in page
    assert "missing" not in page and "no secret" in page  # the level is none
    assert put(world, value="another one").status_code == 302
    assert given(world, "reports")[0]["API_KEY"] == "another one"
    assert given(world, "reports")[1] != version  # so its servers are replaced
    with db.read(world.tenant):
        entries = list(AuditEntry.objects.filter(verb="secret.put").order_by("seq").values_list("object", "after"))
        assert VALUE not in str(list(AuditEntry.objects.values()))
    assert entries == [
        ("secret API_KEY", {"of": "every tool", "version": 1}),
        ("secret LOG_LEVEL", {"of": "tool reports", "version": 1}),
        ("secret API_KEY", {"of": "every tool", "version": 2}),
    ]


def test_a_tools_own_value_counts_before_the_one_of_every_tool_and_removing_it_brings_that_back(tmp_path: Path) -> None:
    world = a_world()
    a_plugin(world, tmp_path, "reports", "daily", "weekly")
    put(world, name="LOG_LEVEL", value="info")
    put(world)
    put(world, value="of weekly alone", tool="weekly")
    assert [given(world, slug)[0]["API_KEY"] for slug in ("daily", "weekly")] == [VALUE, "of weekly alone"]
    with db.read(world.tenant):
        own = Secret.objects.get(name__startswith="plugin reports tool weekly")
    path = f"/settings/secrets/{ids.show(ids.SECRET, own.pk)}/remove/"
    assert visitor(world).post(path).status_code == 302
    assert given(world, "weekly")[0]["API_KEY"] == VALUE
    assert visitor(world).post(path).status_code == 404
    with db.read(world.tenant):
        noted = AuditEntry.objects.get(verb="secret.removed")
    assert (noted.object, noted.before) == ("secret API_KEY", {"of": "tool weekly"})


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"name": "API KEY"}, "letters, digits and _"),
        ({"name": "1KEY"}, "letters, digits and _"),
        ({"name": ""}, "letters, digits and _"),
        ({"value": ""}, "1 to 20000"),
        ({"value": "x" * 20_001}, "1 to 20000"),
        ({"tool": "shop"}, "asks for no variable"),
        ({"tool": "nobody"}, "asks for no variable"),
    ],
)
def test_what_cannot_be_kept_is_said_and_the_value_is_not_shown_again(fields: dict[str, str], why: str) -> None:
    answer = put(a_world(), **fields)
    assert answer.status_code == 422
    assert why in plain(text_of(answer)) and VALUE not in text_of(answer)


def test_a_connections_credential_is_listed_and_changed_only_on_its_own_page() -> None:
    world = a_world()
    bearer = Given(Credential.BEARER, VALUE)
    url = "https://crm.example/mcp"
    connections.make(tenant=world.tenant, name="crm", url=url, allowed=(), given=bearer, actor=SYSTEM)
    page = text_of(visitor(world).get("/settings/secrets/"))
    assert "what calls carry" in page and VALUE not in page and "/settings/connections/conn_" in page
    with db.read(world.tenant):
        shown = ids.show(ids.SECRET, Secret.objects.get().pk)
    assert shown not in page
    assert visitor(world).post(f"/settings/secrets/{shown}/remove/").status_code == 404
    with db.read(world.tenant):
        assert vault.every(world.tenant) == [VALUE]


def test_only_admins_come_near_it() -> None:
    world = a_world()
    for role in (Role.VIEWER, Role.OPERATOR, Role.AUTHOR):
        client = visitor(world, a_person(world.tenant, f"a-{role}", role))
        assert client.get("/settings/secrets/").status_code == 403
        assert client.get("/settings/secrets/put/").status_code == 403
        assert client.post("/settings/secrets/put/", {"name": "A", "value": "b"}).status_code == 403
