"""What a tool's servers said is kept: its end only, without secrets, for those who may read it."""

from uuid import UUID

import pytest
from django.conf import LazySettings

from base import db, ids
from base.masking import SHOWN
from catalog.models import ServerLog, Tool
from catalog.operations.server_logs import MOST_BYTES, MOST_KEPT, MOST_LINES, NOT_KEPT, keep
from tenants.models import Role
from tenants.operations import vault
from tests.builders import World, a_person, a_world
from tests.pages.visitors import text_of, visitor

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.rule("C8")]


def said(world: World, *lines: str, node: UUID | None = None, name: str = "n1") -> None:
    with db.read(world.tenant):
        tool = Tool.objects.values_list("pk", flat=True).get()
    keep(tenant=world.tenant, tool_id=tool, node=node or world.node, node_name=name, lines=lines)


def kept(world: World) -> list[str]:
    with db.read(world.tenant):
        (row,) = ServerLog.objects.all()
        return list(row.lines)


def test_the_last_lines_are_kept_in_place_of_those_before() -> None:
    world = a_world()
    said(world, "stderr: one")
    said(world, "stderr: one", "stderr: two")
    assert kept(world) == ["stderr: one", "stderr: two"]


@pytest.mark.parametrize("line", ["stderr: x", "stderr: " + "é" * 8_000])
def test_however_much_is_said_a_bounded_end_of_whole_lines_is_kept(line: str) -> None:
    world = a_world()
    said(world, *(f"{line} {n}" for n in range(5_000)))
    found = kept(world)
    assert 0 < len(found) <= MOST_LINES
    assert sum(len(one.encode()) for one in found) <= MOST_BYTES
    assert found[-1].endswith(" 4999")


def test_the_logs_of_the_latest_nodes_are_kept() -> None:
    world = a_world()
    for n in range(MOST_KEPT + 3):
        said(world, f"stderr: {n}", node=ids.new(), name=f"n{n}")
    with db.read(world.tenant):
        names = set(ServerLog.objects.values_list("node_name", flat=True))
    assert names == {f"n{n}" for n in range(3, MOST_KEPT + 3)}


@pytest.mark.rule("A14")
def test_no_value_of_the_vault_is_kept() -> None:
    world = a_world()
    with db.write(world.tenant):
        vault.put("connection crm", "sk-live-7f3a")
    said(world, "stderr: using sk-live-7f3a", 'log: info: {"auth": "Bearer sk-live-7f3a"}')
    assert kept(world) == [f"stderr: using {SHOWN}", f'log: info: {{"auth": "Bearer {SHOWN}"}}']


@pytest.mark.rule("A14")
def test_when_a_secret_does_not_open_a_line_that_says_so_is_kept_instead(settings: LazySettings) -> None:
    world = a_world()
    with db.write(world.tenant):
        vault.put("connection crm", "sk-live-7f3a")
    settings.SECRET_KEY = "another"
    said(world, "stderr: using sk-live-7f3a")
    assert kept(world) == [NOT_KEPT]


def test_what_postgresql_cannot_hold_is_kept_as_its_code() -> None:
    world = a_world()
    said(world, "stderr: a\0b\ud800c")
    assert kept(world) == ["stderr: a⟨U+0000⟩b⟨U+D800⟩c"]


@pytest.mark.rule("A13")
def test_authors_and_admins_read_it_on_the_tools_page_and_nobody_else_does() -> None:
    world = a_world()
    said(world, "stderr: the ledger is <b>locked</b> \u202eby pat", name="node-7")
    pages = {}
    for role in (Role.VIEWER, Role.OPERATOR, Role.AUTHOR):
        person = a_person(world.tenant, f"a-{role}", role)
        pages[role] = text_of(visitor(world, person).get("/catalog/tools/shop/"))
    assert "the ledger is &lt;b&gt;locked&lt;/b&gt;" in pages[Role.AUTHOR]
    assert "node-7" in pages[Role.AUTHOR]
    assert "\u202e" not in pages[Role.AUTHOR]
    for role in (Role.VIEWER, Role.OPERATOR):
        assert "the ledger is" not in pages[role]
        assert "What its server said" not in pages[role]


def test_another_workspace_reads_nothing_of_it() -> None:
    ours, theirs = a_world("ours"), a_world("theirs")
    said(ours, "stderr: ours only")
    assert "ours only" in text_of(visitor(ours).get("/catalog/tools/shop/"))
    assert "ours only" not in text_of(visitor(theirs).get("/catalog/tools/shop/"))
