"""Functions as pages: the list with its search and filters, each one's page, and what lint finds across a workspace."""

import re
import shutil
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from base import db
from base.clock import boot_time
from catalog.models import Function, LintFinding, LintReport, PluginVersion, Tool
from catalog.operations import linting, listings
from catalog.operations.plugins import register
from catalog.queries.function_index import holding
from catalog.rules.kinds import KEY, RESUME
from catalog.rules.listing import listing_digest
from catalog.rules.servers import MeasuredListing
from jobs.rules.orders import End, Sighting
from jobs.tasks.measuring import keep_seen
from tenants.models import Role
from tenants.rules.who import SYSTEM
from tests.builders import (
    World,
    a_call,
    a_held_call,
    a_person,
    a_policy,
    a_rule,
    a_tool,
    a_world,
    an_outcome,
    made,
)
from tests.catalogs import a_many_tool, a_remote_tool, an_agent_of, entries, lists, many
from tests.pages.visitors import text_of, visitor

pytestmark = pytest.mark.usefixtures("database")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LIST = "/catalog/functions/"
MANY = {"path": "/order", "is": "more_than", "value": 9}
ORDER: dict[str, Any] = {
    "type": "object",
    "$defs": {"Line": {"type": "object", "properties": {"sku": {"type": "string"}}, "required": ["sku"]}},
    "properties": {
        "customer": {"type": "string", "description": "whom it is for", "pattern": "^c"},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}},
        "speed": {"enum": ["slow", "fa\u200bst"], "default": "slow"},
        "pay": {"oneOf": [{"title": "Card", "type": "object"}, {"title": "Cash", "type": "object"}]},
    },
    "required": ["customer"],
}
SEND: dict[str, Any] = {
    "name": "send_order",
    "title": "Send an order",
    "description": "Sends an order to the warehouse.",
    "inputSchema": ORDER,
    "annotations": {"destructiveHint": False, "idempotentHint": True, "openWorldHint": "yes"},
    "_meta": {KEY: True, RESUME: True},
}


def page(world: World, path: str) -> str:
    answer = visitor(world).get(path)
    assert answer.status_code == 200, path
    return text_of(answer)


def plain(html: str) -> str:
    """The words of a page, in one line."""
    words = unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html)))
    return re.sub(r" ([.,:;])", r"\1", words)


def names(world: World, query: str) -> list[str]:
    """The functions that a list shows, in its order."""
    return re.findall(rf'data-row href="{LIST}([^"]+)/"', page(world, f"{LIST}?{query}"))


def a_warehouse(world: World) -> None:
    """A tool with one function that says everything."""
    a_tool(world.tenant, entries(SEND), slug="warehouse")


# --- the list ----------------------------------------------------------------------------------------------------


FOUND: list[tuple[str, list[str]]] = [
    (
        "",
        [
            "shop.charge",
            "shop.export",
            "shop.look",
            "shop.note",
            "shop.refund",
            "shop.ship",
            "warehouse.send_order",
        ],
    ),
    ("q=WAREHOUSE", ["warehouse.send_order"]),
    ("q=order", ["shop.ship", "warehouse.send_order"]),  # the name of an argument, and a description
    ("q=customer+speed", ["warehouse.send_order"]),
    ("q=ord%25er", []),
    (
        "q=_",
        [
            "shop.charge",
            "shop.export",
            "shop.look",
            "shop.note",
            "shop.refund",
            "shop.ship",
            "warehouse.send_order",
        ],
    ),
    ("kind=undeclared", ["shop.export"]),
    ("kind=read&tool=warehouse", []),
    ("plugin=warehouse", ["warehouse.send_order"]),
    ("agent=clerk&kind=write", ["shop.charge", "shop.note", "shop.ship"]),
    ("agent=nobody", []),
    ("fares=waits", ["shop.export", "shop.refund"]),
    ("fares=refused", ["shop.charge"]),
    ("fares=sometimes", ["shop.ship"]),
    ("over=100", ["warehouse.send_order"]),
    ("sort=kind&tool=shop", ["shop.refund", "shop.export", "shop.charge", "shop.note", "shop.ship", "shop.look"]),
    ("kind=rubbish&over=x&sort=y&page=-1&fares=z&q=send", ["warehouse.send_order"]),
]


def test_functions_are_found_by_words_and_filters_in_the_address() -> None:
    world = a_world()
    a_warehouse(world)
    a_policy(
        world,
        a_rule("no-charges", "refuse", tool="shop", function="charge"),
        a_rule(
            "big", "ask", tool="shop", function="ship", arguments=[{"path": "/order", "is": "more_than", "value": 9}]
        ),
    )
    for query, found in FOUND:
        assert names(world, query) == found, query


def test_a_list_of_5_000_functions_takes_as_many_queries_as_one_of_seven_and_stays_small() -> None:
    small, big = a_world(), a_world("big")
    a_tool(big.tenant, many(5_000), slug="bulk")
    counted = {}
    for world in (small, big):
        for query in ("", "?sort=tokens", "?q=endpoint+field&kind=write&over=50&agent=clerk&findings=any"):
            page(world, f"{LIST}{query}")
            with CaptureQueriesContext(
                connection,
            ) as queries:
                html = page(world, f"{LIST}{query}")
            counted[world.tenant, query] = len(queries)
            assert len(html.encode()) < 150_000, query
    asked = [query for tenant, query in counted if tenant == small.tenant]
    assert [counted[small.tenant, query] for query in asked] == [counted[big.tenant, query] for query in asked]
    assert max(counted.values()) <= 40
    words = plain(page(big, f"{LIST}?tool=bulk&page=3"))
    assert "5,000 of 5,006 functions" in words
    assert "101 to 150 of 5,000" in words
    assert 'data-key="n" href="?tool=bulk&amp;page=4"' in page(big, f"{LIST}?tool=bulk&page=3")
    assert "4,951 to 5,000 of 5,000" in plain(page(big, f"{LIST}?tool=bulk&page=999"))
    assert holding(big.tenant)[1] == 5_006


def test_a_form_with_empty_fields_gives_an_address_without_them() -> None:
    moved = visitor(a_world()).get(f"{LIST}?q=look&kind=&tool=&sort=name")
    assert moved.headers["Location"] == f"{LIST}?q=look"
    assert visitor(a_world("other")).get(f"{LIST}?kind=&q=").headers["Location"] == LIST
    assert visitor(a_world("third")).get("/catalog/findings/?code=").headers["Location"] == "/catalog/findings/"


def test_a_list_that_shows_nothing_says_what_to_do() -> None:
    world = a_world()
    words = plain(page(world, f"{LIST}?q=nothing-like-it"))
    assert (
        "No function fits Each word must be in the name, the title, the description or the name of an argument."
        in words
    )
    assert "All 6 functions" in words
    assert "0 of 6 functions" in words


@pytest.mark.rule("C3")
def test_the_list_follows_approvals_listings_and_the_policy_at_once() -> None:
    world = a_world()
    assert names(world, "kind=destructive") == ["shop.refund"]
    a_remote_tool(world)
    assert names(world, "kind=undeclared") == ["archive.purge", "archive.search", "shop.export"]
    an_agent_of(world, "reader", "archive.*")
    assert names(world, "agent=reader") == ["archive.fetch", "archive.search"]  # nobody ever approved purge
    a_policy(world, a_rule("none", "refuse", tool="archive"))
    assert len(names(world, "fares=refused")) == 3


def test_find_goes_to_the_function_that_its_whole_name_names() -> None:
    client = visitor(a_world())
    assert client.get("/find/", {"q": " shop.look "}).headers["Location"] == f"{LIST}shop.look/"
    assert client.get("/find/", {"q": "shop.nothing"}).headers["Location"] == "/jobs/?q=shop.nothing"


# --- one function ------------------------------------------------------------------------------------------------


@pytest.mark.rule("A13")
def test_a_schema_is_a_form_that_a_person_reads_and_is_there_as_it_was_listed() -> None:
    world = a_world()
    a_warehouse(world)
    html = page(world, f"{LIST}warehouse.send_order/")
    words = plain(html)
    assert re.search(r"customer text required whom it is for matches", words)
    assert "lines list of object" in words
    assert "each item object" in words
    assert "sku text required" in words
    assert 'else "slow"' in words
    assert "fa U+200B st" in words
    assert "exactly one of these Card object" in words
    assert '"$ref": "#/$defs/Line"' in words
    assert "\u200b" not in html


def test_a_functions_page_says_what_its_words_mean_for_its_calls() -> None:
    world = a_world()
    a_warehouse(world)
    words = plain(page(world, f"{LIST}warehouse.send_order/"))
    assert "It says that it writes and only adds (destructiveHint is false)." in words
    assert 'openWorldHint "yes" neither true nor false, so it counts as true: it reaches outside' in words
    assert "readOnlyHint left out counts as false: it may change something" in words
    assert "every attempt of a call carries the same key, and its server acts once for each" in words
    assert "a plugin's own server shares one session: a retry starts over" in words
    assert "gives it 6 s to clean up" in words
    assert "up to 4 attempts in all" in words
    shop = plain(page(world, f"{LIST}shop.note/"))
    assert "One attempt. When it may have acted and no answer came, a person is asked whether it happened." in shop


@pytest.mark.rule("A2")
def test_a_functions_page_says_for_whom_the_policy_says_what_by_which_rule_and_how_to_fix_it() -> None:
    world = a_world()
    an_agent_of(world, "bot", "shop.refund")
    a_policy(
        world,
        a_rule("bots", "refuse", agent="bot", starter="api_key"),
        a_rule("small", "allow", tool="shop", arguments=[{"path": "/amount", "is": "less_than", "value": 10}]),
    )
    words = plain(page(world, f"{LIST}shop.refund/"))
    assert "Every call of it waits for a person. It says that it may destroy or overwrite" in words
    assert "bot by shop.refund asks started by person, routine, event destructive asks" in words
    assert "refuses started by api key bots" in words
    assert "clerk by shop.* asks destructive asks" in words
    assert "runs small when /amount < 10" in words
    assert '"id": "allow-shop-refund"' in words
    assert "Add it to a draft" in words
    author = visitor(world, a_person(world.tenant, "ann", Role.AUTHOR))
    html = text_of(author.get(f"{LIST}shop.refund/"))
    assert "Add it to a draft" not in html
    assert "Admins change the policy" in html


def test_a_functions_page_shows_its_newest_calls_and_leads_to_all_jobs_that_made_them() -> None:
    world = a_world()
    assert "Nobody has called it yet" in page(world, f"{LIST}shop.look/")
    made(world, a_call(world, "look"), an_outcome(End.ANSWERED))
    a_held_call(world)
    lists(world.tenant, "shop", entries({"name": "look", "inputSchema": {"type": "object"}}))  # another row of it
    a_call(world, "look")
    words = plain(page(world, f"{LIST}shop.look/"))
    assert "the newest 2" in words
    assert "SUCCEEDED made" in words
    assert "held nothing made" in words
    jobs = page(world, "/jobs/?function=shop.look")
    assert jobs.count('id="job_') == 2
    assert "called shop.look" in plain(jobs)
    assert page(world, "/jobs/?function=shop.nothing").count('id="job_') == 0


@pytest.mark.rule("C2")
def test_an_entrys_past_names_each_change_with_its_approval() -> None:
    world = a_world()
    a_remote_tool(world)
    html = page(world, f"{LIST}archive.search/")
    words = plain(html)
    assert re.search(r"changed · never approved [0-9a-f]{12}", words)
    assert re.search(r"first listed · approved by pat-acme [0-9:]+, ended [0-9:]+ [0-9a-f]{12}", words)
    assert "/catalog/tools/archive/listings/?to=" in html
    assert "so nothing that it says of itself counts" in words
    assert "nobody has to approve" not in words
    assert "a plugin's own server needs no approval" in plain(page(world, f"{LIST}shop.look/"))


@pytest.mark.parametrize("label", ["shop.gone", "shop", "shop.", ".look", "gone.look", "shop.look.look", "other.look"])
def test_what_is_no_function_here_is_not_found_whoever_has_it(label: str) -> None:
    world, other = a_world(), a_world("other")
    a_tool(other.tenant, entries({"name": "look", "inputSchema": {"type": "object"}}), slug="other")
    assert visitor(other).get(f"{LIST}other.look/").status_code == 200
    assert visitor(world).get(f"{LIST}{label}/").status_code == 404
    viewer = visitor(world, a_person(world.tenant, "vic", Role.VIEWER))
    assert viewer.get(f"{LIST}shop.look/").status_code == 200


# --- lint across the workspace -----------------------------------------------------------------------------------


def a_billing(world: World, tmp_path: Path) -> PluginVersion:
    """An example plugin, registered and listed."""
    folder = shutil.copytree(EXAMPLES / "billing", tmp_path / "b", ignore=shutil.ignore_patterns("__pycache__"))
    found = register(tenant=world.tenant, folder=folder, home=tmp_path / "home", actor=SYSTEM)
    with db.read(world.tenant):
        tool = Tool.objects.get(slug="billing").pk
    listed = entries(
        {"name": "export_ledger", "inputSchema": {"type": "object"}},
        {"name": "wordy", "description": "word " * 2_000, "inputSchema": {"type": "object"}},
        {"name": "torn", "inputSchema": {"type": "object", "required": 3}, "annotations": {"readOnlyHint": True}},
    )
    listings.store(
        tenant=world.tenant,
        tool_id=tool,
        measured=MeasuredListing(listing_digest(listed), "2025-06-18", "billing", "1", listed),
    )
    linting.lint_tool(tenant=world.tenant, tool_id=tool)
    with db.read(world.tenant):
        return PluginVersion.objects.get(pk=found.version)


@pytest.mark.rule("T6")
@pytest.mark.rule("C4")
def test_findings_of_every_plugin_are_told_with_file_line_function_figure_and_fix(tmp_path: Path) -> None:
    world = a_world()
    a_billing(world, tmp_path)
    a_many_tool(world)
    html = page(world, "/catalog/findings/")
    words = plain(html)
    assert "agent over-sender: every model request would carry about 33,559 tokens" in words
    assert re.search(r"error tools.schema \S+ billing.torn its input schema cannot be used", words)
    assert re.search(r"warning tools.tokens \S+ billing.wordy its definition alone comes to about 2,0", words)
    assert re.search(
        r"warning tools.undeclared (server|billing)\S*\.py:\d+ billing.export_ledger calls of it wait", words
    )
    assert "@server.tool(annotations=ToolAnnotations(" in words
    assert "Not linted yet: everything, shop" in words
    assert f'href="{LIST}billing.torn/"' in html
    torn = plain(page(world, f"{LIST}billing.torn/"))
    assert "its input schema cannot be used" in torn
    assert names(world, "findings=tools.undeclared") == ["billing.export_ledger", "billing.wordy"]
    assert names(world, "findings=any") == ["billing.export_ledger", "billing.torn", "billing.wordy"]
    assert re.search(r"1 error, \d+ warnings? \d+ do not say", plain(page(world, "/catalog/tools/billing/")))
    nav = plain(page(world, "/catalog/sections/?at=tools"))
    assert re.search(r"Findings \d+", nav)


FILTERED = [
    ("severity=error", "tools.schema", "tools.undeclared"),
    ("severity=warning", "tools.undeclared", "its input schema cannot"),
    ("code=tools.tokens", "billing.wordy", "billing.torn"),
    ("plugin=billing", "billing.torn", "over-sender"),
    ("tool=billing", "billing.torn", "over-sender"),
    ("code=tools.budget", "over-sender", "its input schema cannot"),
    ("plugin=nothing", "No finding fits this filter", "billing.torn"),
    ("severity=rubbish&page=77", "billing.torn", "No finding fits"),
]


def test_findings_are_filtered_in_the_address(tmp_path: Path) -> None:
    world = a_world()
    a_billing(world, tmp_path)
    a_many_tool(world)
    for query, some, none in FILTERED:
        shown = plain(page(world, f"/catalog/findings/?{query}").partition('class="card"')[2])
        assert (some in shown, none in shown) == (True, False), query


def test_lint_is_kept_with_the_listing_and_made_anew_with_another_one(tmp_path: Path) -> None:
    world = a_world()
    version = a_billing(world, tmp_path)
    assert not linting.lint_version(tenant=world.tenant, version_id=version.pk)
    with db.read(world.tenant):
        before = LintReport.objects.get(plugin_version=version)
        tool = Tool.objects.get(slug="billing").pk
        assert before.errors + before.warnings == LintFinding.objects.filter(plugin_version=version).count() > 3
    found = entries({"name": "fine", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": False}})
    listings.store(
        tenant=world.tenant,
        tool_id=tool,
        measured=MeasuredListing(listing_digest(found), "2025-06-18", "billing", "2", found),
    )
    assert linting.lint_tool(tenant=world.tenant, tool_id=tool)
    with db.read(world.tenant):
        assert not LintFinding.objects.filter(plugin_version=version, code="tools.schema").exists()
        assert LintReport.objects.get(plugin_version=version).linted != before.linted


def test_lint_follows_what_a_session_was_seen_to_list_instead(tmp_path: Path) -> None:
    world = a_world()
    a_billing(world, tmp_path)
    assert "tools.schema" in page(world, "/catalog/findings/")
    found = entries({"name": "fine", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": False}})
    seen = Sighting(MeasuredListing(listing_digest(found), "2025-06-18", "billing", "2", found), boot_time())
    with db.read(world.tenant):
        tool = Tool.objects.get(slug="billing").pk
    keep_seen(tenant=world.tenant, tool_id=tool, seen=seen)
    assert "tools.schema" not in page(world, "/catalog/findings/")


def test_files_that_are_gone_are_told_until_they_are_back(tmp_path: Path) -> None:
    world = a_world()
    version = a_billing(world, tmp_path)
    with db.write(world.tenant):
        PluginVersion.objects.filter(pk=version.pk).update(folder="/nowhere/at/all")
        LintReport.objects.filter(plugin_version=version).delete()
    gone = "its files, as they were registered, cannot be read here"
    assert linting.lint_version(tenant=world.tenant, version_id=version.pk)
    assert gone in plain(page(world, "/catalog/findings/"))
    with db.write(world.tenant):
        PluginVersion.objects.filter(pk=version.pk).update(folder=version.folder)
    assert linting.lint_version(tenant=world.tenant, version_id=version.pk)
    shown = plain(page(world, "/catalog/findings/"))
    assert (gone in shown, "billing.torn" in shown) == (False, True)


def test_findings_of_one_workspace_are_no_other_ones(tmp_path: Path) -> None:
    world, other = a_world(), a_world("other")
    a_billing(world, tmp_path)
    words = plain(page(other, "/catalog/findings/"))
    assert "billing" not in words
    assert "Nothing was found" in words


def test_a_list_of_thousands_of_findings_is_paged_and_takes_a_constant_number_of_queries(tmp_path: Path) -> None:
    world = a_world()
    version = a_billing(world, tmp_path)
    page(world, "/catalog/findings/")
    with CaptureQueriesContext(connection) as few:
        page(world, "/catalog/findings/")
    with db.write(world.tenant):
        one = LintFinding.objects.filter(plugin_version=version).first()
        assert one is not None
        LintFinding.objects.bulk_create(
            LintFinding(
                tenant_id=world.tenant,
                plugin_version=version,
                place=1_000 + n,
                severity="warning",
                code="tools.undeclared",
                tool="billing",
                function=f"f{n}",
                file=one.file,
                message=one.message,
                fix=one.fix,
            )
            for n in range(3_000)
        )
    with CaptureQueriesContext(connection) as most:
        html = page(world, "/catalog/findings/?page=2")
    assert len(most) == len(few)
    assert len(html.encode()) < 150_000
    assert "51 to 100 of 3,0" in plain(html)


def test_a_viewer_sees_findings_and_nobody_changes_anything_by_reading_them() -> None:
    world = a_world()
    viewer = visitor(world, a_person(world.tenant, "vic", Role.VIEWER))
    for place in ("", "plugins/", "tools/", "functions/", "skills/", "findings/", "tools/shop/listings/", "sections/"):
        assert viewer.get(f"/catalog/{place}").status_code == 200, place
        assert viewer.post(f"/catalog/{place}").status_code == 405, place
    with db.read(world.tenant):
        assert Function.objects.count() == 6
