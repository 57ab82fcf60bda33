"""Tools with many functions, and many tools: a page at a time."""

import re

import pytest

from base import db
from catalog.models import Tool
from tests.builders import World, a_world
from tests.catalogs import a_many_tool
from tests.pages.visitors import text_of, visitor

pytestmark = pytest.mark.usefixtures("database")


def page(world: World, path: str) -> str:
    answer = visitor(world).get(path)
    assert answer.status_code == 200, path
    return text_of(answer)


def plain(html: str) -> str:
    """The words of a page, in one line."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def test_a_tool_of_142_functions_is_shown_a_page_at_a_time_and_in_a_line_among_the_tools() -> None:
    world = a_world()
    a_many_tool(world)
    shown = [page(world, f"/catalog/tools/everything/{query}") for query in ("", "?page=2", "?page=3")]
    assert [html.count('class="function"') for html in shown] == [50, 50, 42]
    assert "101 to 142 of 142" in plain(shown[2])
    assert all("142 · about 33,559 tokens together" in plain(html) for html in shown)
    assert page(world, "/catalog/tools/everything/?page=99").count('class="function"') == 42
    assert page(world, "/catalog/tools/everything/?page=x").count('class="function"') == 50
    words = plain(page(world, "/catalog/tools/"))
    assert re.search(
        r"everything plugin everything · a server of the plugin's own up 142 functions 35 undeclared",
        words.replace("&#x27;", "'"),
    )
    assert "33,559" in words


def test_many_tools_are_shown_a_page_at_a_time() -> None:
    world = a_world()
    with db.write(world.tenant):
        shop = Tool.objects.get()
        Tool.objects.bulk_create(
            Tool(tenant_id=world.tenant, plugin_version=shop.plugin_version, slug=f"t_{n:02}", argv=["/bin/false"])
            for n in range(60)
        )
    first, second = page(world, "/catalog/tools/"), page(world, "/catalog/tools/?page=2")
    assert [html.count('<tr id="tool-') for html in (first, second)] == [50, 11]
    assert "1 to 50 of 61" in plain(first)
    assert 'hx-get="/catalog/tools/?page=2"' in second
