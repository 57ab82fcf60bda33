"""The pages of agents and skills: what a model is sent, who reads what and why, and what to mend."""

import json
import re
from html import unescape
from pathlib import Path

import pytest

from base import db, tokens
from catalog.models import PluginVersion, Skill, Stage
from catalog.queries.costs import agents_now
from tests.builders import World
from tests.manuals import CAREFUL, FILES, a_world_with_manuals, registered
from tests.pages.visitors import text_of, visitor

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def world(tmp_path: Path) -> World:
    """The plugins `depot`, a tool with a manual, and `crew`, agents that are granted some of it."""
    return a_world_with_manuals(tmp_path)


def words(world: World, path: str) -> str:
    answer = visitor(world).get(path)
    assert answer.status_code == 200, path
    apart = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text_of(answer)))
    return unescape(re.sub(r" ([.,:;])", r"\1", apart))


@pytest.mark.rule("M2")
def test_the_skills_say_who_sees_them_and_why(world: World) -> None:
    page = words(world, "/catalog/skills/")
    assert "4 skills" in page
    assert "careful plugin depot 1 How to take." in page
    assert "finder granted functions of depot · taints its jobs" in page
    assert "keeper granted functions of depot" in page
    assert "keeper granted functions of depot · taints" not in page
    assert "reader its file names it" in page
    assert "manual of depot" in page
    narrowed = words(world, "/catalog/skills/?plugin=crew&q=how+ASK")
    assert ("1 of 4 skills" in narrowed, "manners" in narrowed, "careful" in narrowed) == (True, True, False)
    assert "No skill fits this filter" in words(world, "/catalog/skills/?q=zebra")


@pytest.mark.rule("M2")
@pytest.mark.rule("A13")
def test_a_skill_is_shown_as_text_with_its_readers_and_its_versions(world: World, tmp_path: Path) -> None:
    with db.read(world.tenant):
        before = PluginVersion.objects.get(plugin__name="depot").pk
    hostile = "---\nname: careful\ndescription: How to take.\n---\n<script>alert(1)</script>\u202e **bold**\n"
    manifest = FILES["depot"]["oz0-plugin.yaml"].replace('"1"', '"2"')
    changed = {"skills/careful/SKILL.md": hostile, "oz0-plugin.yaml": manifest}
    registered(world.tenant, tmp_path, "depot", changed)
    html = visitor(world).get("/catalog/skills/depot/careful/").content.decode()
    assert "<script>alert" not in html
    assert "\u202e" not in html
    page = words(world, "/catalog/skills/depot/careful/")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "**bold**" in page, "as it is read, not as somebody would like it to look"
    assert "2 now changed" in page
    old = words(world, f"/catalog/skills/depot/careful/?version={before}")
    assert CAREFUL in old
    assert "No new job reads this version." in old
    assert "2 now as before" in words(world, "/catalog/skills/depot/counting/")
    for nothing in ("depot/nothing", "nobody/careful", "crew/careful"):
        assert visitor(world).get(f"/catalog/skills/{nothing}/").status_code == 404
    assert visitor(world).get("/catalog/skills/depot/careful/?version=x").status_code == 404


@pytest.mark.rule("M4")
def test_a_manual_that_is_long_to_read_is_told_on_its_skills_pages(world: World) -> None:
    assert "is long" not in words(world, "/catalog/skills/depot/careful/")
    with db.write(world.tenant):
        current = Skill.objects.filter(plugin_version__stage=Stage.CURRENT)
        row = current.get(name="counting")
        row.pk, row.name, row.text = None, "long", "Count twice. " * 700
        row.save(force_insert=True)
        version = row.plugin_version
        version.manifest["tools"][0]["manual"] = ["careful", "long"]
        version.save(update_fields=["manifest"])
    page = words(world, "/catalog/skills/depot/careful/")
    counted = sum(tokens.counts([f"How to take.\n{CAREFUL}", f"How to count.\n{row.text}"]))
    assert counted > 2_000
    assert f"The manual of depot is long: about {counted:,} tokens in 2 skills, more than 2,000" in page


@pytest.mark.rule("C6")
@pytest.mark.rule("M2")
def test_an_agents_page_shows_its_index_its_limits_and_what_its_file_names_in_vain(world: World) -> None:
    page = words(world, "/catalog/agents/reader/")
    assert "1 skill of its file is not here: nobody/knows" in page
    assert "crew/manners its file names it" in page
    assert "depot/careful manual of depot, which it may call · reading it taints the job" in page
    assert "200 calls of functions, the platform's own among them" in page
    assert "the starter decides: a person's job asks" in page
    assert re.search(r"all functions are sent at once; with tool_loading: lazy about \d+", page)
    finder = words(world, "/catalog/agents/finder/")
    assert "lazily: it looks for functions and calls them through oz.find and oz.call" in finder
    assert "- depot/careful: How to take." in words(world, "/catalog/agents/finder/?shown=oz.skill").replace("\\n", " ")


@pytest.mark.rule("T1")
@pytest.mark.rule("T4")
@pytest.mark.rule("C6")
def test_what_is_counted_is_byte_for_byte_what_the_agents_requests_carry(world: World) -> None:
    for agent, carried in (
        ("reader", ["depot__look", "depot__note", "oz__skill"]),
        ("finder", ["oz__find", "oz__call", "oz__skill"]),
        ("stranger", []),
    ):
        answer = visitor(world).get(f"/catalog/agents/{agent}/request.json")
        assert "attachment" in answer.headers["Content-Disposition"]
        raw = answer.content.decode()
        sent = json.loads(raw)
        assert [tool["name"] for tool in sent["tools"]] == carried
        with db.read(world.tenant):
            (one,) = agents_now(agent)
        texts = [json.dumps(tool, ensure_ascii=False, separators=(",", ":")) for tool in sent["tools"]]
        assert all(text in raw for text in texts)
        assert sum(tokens.counts(texts)) == one.cost.tokens
        shown = f"about {one.cost.tokens:,} of 8,000 tokens"
        assert shown in words(world, f"/catalog/agents/{agent}/")
    assert visitor(world).get("/catalog/agents/nobody/request.json").status_code == 404


def test_the_agents_are_narrowed_in_the_address(world: World) -> None:
    def shown(query: str) -> set[str]:
        html = visitor(world).get(f"/catalog/agents/?{query}").content.decode()
        return set(re.findall(r'href="/catalog/agents/([a-z-]+)/"', html))

    assert shown("") == {"finder", "keeper", "reader", "stranger"}
    assert shown("plugin=depot") == {"keeper"}
    assert shown("loading=lazy") == {"finder"}
    assert shown("q=CREW+read") == {"reader"}
    assert shown("only=idle") == {"reader", "stranger"}
    assert shown("only=over") == set()
    assert "No agent fits this filter" in words(world, "/catalog/agents/?q=zebra")
