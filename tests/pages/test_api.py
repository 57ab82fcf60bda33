"""The catalog for programs."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from django.test import Client

from base import db
from catalog.api import tokens
from catalog.models import Tool
from catalog.operations import listings, plugins
from catalog.rules import listing_file
from catalog.rules.estimates import ERROR, METHOD
from catalog.rules.listing import listing_digest
from catalog.rules.servers import MeasuredListing
from studio.cli.plugin import plugin
from tenants.models import Membership
from tenants.rules.who import SYSTEM
from tests.builders import World, a_world
from tests.catalogs import a_many_tool, an_agent_of
from tests.examples.serving import EXAMPLES
from tests.pages.visitors import text_of, visitor

pytestmark = pytest.mark.usefixtures("database")


def address(agent: str) -> str:
    return f"/api/v1/catalog/agents/{agent}/tokens"


def told(world: World, agent: str) -> dict[str, Any]:
    answer = visitor(world).get(address(agent))
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.rule("T1")
@pytest.mark.rule("T3")
def test_an_agents_figures_are_those_of_its_page() -> None:
    world = a_world()
    a_many_tool(world)
    found = told(world, "over-sender")
    assert (found["tokens"], found["budget"], found["over"]) == (33_559, 8_000, True)
    assert found["tokens"] == sum(found["functions"].values()) == found["tools"]["everything"]
    assert (found["method"], found["error"]) == (METHOD, ERROR)
    page = text_of(visitor(world).get("/catalog/agents/over-sender/"))
    assert "33,559" in page
    assert f"Drop these {len(found['drop'])} to fit" in page


@pytest.mark.rule("T1")
@pytest.mark.rule("T4")
def test_a_lazy_agent_carries_only_the_platforms_own() -> None:
    world = a_world()
    a_many_tool(world)
    found = told(world, "lazy-one")
    assert found["tool_loading"] == "lazy"
    assert found["tokens"] == sum(found["own"].values())
    assert set(found["own"]) == {"oz.find", "oz.call", "oz.skill"}


@pytest.mark.rule("T1")
def test_the_command_and_the_api_tell_the_same_of_every_agent(tmp_path: Path) -> None:
    world = a_world()
    folder = Path(shutil.copytree(EXAMPLES / "billing", tmp_path / "billing"))
    plugins.register(tenant=world.tenant, folder=folder, home=tmp_path, actor=SYSTEM)
    inspected = CliRunner().invoke(plugin, ["inspect", str(folder), "--json"], catch_exceptions=False)
    measured = listing_file.read((folder / listing_file.LISTING_FILE).read_bytes()).tools["billing"]
    with db.read(world.tenant):
        tool = Tool.objects.values_list("pk", flat=True).get(slug="billing")
    whole = MeasuredListing(listing_digest(measured), "2026-07-28", "billing", "1", measured)
    listings.store(tenant=world.tenant, tool_id=tool, measured=whole)
    agents = json.loads(inspected.stdout)["agents"]
    assert len(agents) > 3
    for name, figures in agents.items():
        assert {key: told(world, name)[key] for key in figures} == figures


def test_a_granted_tool_without_a_listing_is_named() -> None:
    world = a_world()
    an_agent_of(world, "early", "shop.look", "later.*")
    assert told(world, "early")["unmeasured"] == []
    assert set(told(world, "early")["functions"]) == {"shop.look"}


@pytest.mark.parametrize("agent", ["nobody", "theirs-only", "%00", "a%2Fb", "x" * 300, "clerk ", "CLERK"])
def test_what_is_not_there_and_what_is_anothers_cannot_be_told_apart(agent: str) -> None:
    world, other = a_world("ours"), a_world("theirs")
    an_agent_of(other, "theirs-only", "shop.*")
    assert visitor(other).get(address("theirs-only")).status_code == 200
    answer = visitor(world).get(address(agent))
    assert answer.status_code == 404
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json() == {
        "type": "about:blank",
        "title": "Not Found",
        "status": 404,
        "detail": "There is nothing at this address for you.",
    }


@pytest.mark.parametrize("path", [address("clerk"), address("nobody"), "/api/v1/nothing"])
def test_who_is_not_signed_in_gets_a_problem_document_and_no_page(path: str) -> None:
    a_world()
    answer = Client().get(path)
    assert (answer.status_code, answer["Content-Type"]) == (401, "application/problem+json")
    assert answer["WWW-Authenticate"].startswith("Session")
    assert answer.json()["status"] == 401
    assert "no-store" in answer["Cache-Control"]


def test_who_belongs_to_no_workspace_is_refused() -> None:
    world = a_world()
    signed_in = visitor(world)
    with db.write(world.tenant):
        Membership.objects.all().delete()
    answer = signed_in.get(address("clerk"))
    assert (answer.status_code, answer.json()["detail"]) == (403, "This person belongs to no workspace.")


@pytest.mark.parametrize("method", ["post", "put", "delete", "patch"])
def test_it_can_only_be_read(method: str) -> None:
    answer = getattr(visitor(a_world(), strict=True), method)(address("clerk"))
    assert (answer.status_code, answer["Allow"]) == (405, "GET, HEAD")
    assert answer["Content-Type"] == "application/problem+json"


def test_an_error_of_ours_is_a_problem_document_that_gives_nothing_away_and_is_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("s3cret-value")

    monkeypatch.setattr(tokens, "agent_tokens", broken)
    answer = visitor(a_world()).get(address("clerk"))
    assert (answer.status_code, answer["Content-Type"]) == (500, "application/problem+json")
    assert "s3cret" not in text_of(answer)
    assert "s3cret-value" in caplog.text


def test_an_address_under_api_that_is_none_is_a_problem_document() -> None:
    answer = visitor(a_world()).get("/api/v1/catalog/agents/")
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")
