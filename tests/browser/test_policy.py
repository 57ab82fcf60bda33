"""The policy in a real browser: from the overview to the fix in two clicks, and a rule moved, added and saved."""

import re

import pytest
from playwright.sync_api import Page, expect

from base import db
from catalog.models import PolicyVersion
from catalog.operations import policies
from tenants.rules.who import Actor
from tests.browser.conftest import live
from tests.browser.same import assert_live_equals_fresh
from tests.builders import World, a_rule

pytestmark = pytest.mark.browser
PATIENT = 40_000  # milliseconds for a page of a busy machine


@pytest.mark.rule("C4")
def test_from_the_overview_who_waits_and_how_to_fix_that_is_two_clicks(page: Page, world: World) -> None:
    page.set_default_timeout(PATIENT)
    page.goto("/")
    tile = page.get_by_role("link", name="Functions that wait")
    expect(tile).to_contain_text("2", timeout=PATIENT)
    tile.click()  # one
    export = page.locator(".holds > li", has_text="shop.export")
    expect(export).to_contain_text(
        "it has no annotations, so nobody knows whether it changes anything", timeout=PATIENT
    )
    expect(page.locator(".holds > li", has_text="shop.refund")).to_contain_text(
        "It says that it may destroy", timeout=PATIENT
    )
    expect(page.locator(".holds > li")).to_have_count(2, timeout=PATIENT)
    fix = export.get_by_text("@server.tool(annotations=ToolAnnotations(")
    expect(fix).to_be_hidden()
    export.get_by_text("How to fix that").click()  # two
    expect(fix).to_be_visible(timeout=PATIENT)
    refund = page.locator(".holds > li", has_text="shop.refund")
    refund.get_by_text("How to fix that").click()
    refund.get_by_role("link", name="Add it to a draft").click()
    expect(page.locator(".entry-diff")).to_contain_text("allow-shop-refund", timeout=PATIENT)
    page.get_by_label("Why").fill("Refunds are checked elsewhere")
    page.get_by_role("button", name="Put it in force").click()
    page.wait_for_url("**/catalog/policy/", timeout=PATIENT)
    page.goto("/")
    expect(page.get_by_role("link", name="Functions that wait")).to_contain_text("1", timeout=PATIENT)


def test_an_editor_without_a_rule_says_so_on_one_line(page: Page, world: World) -> None:
    page.set_default_timeout(PATIENT)
    page.goto("/catalog/policy/edit/")
    said = page.get_by_text("No rule: the studio's own defaults decide.").bounding_box()
    add = page.get_by_role("button", name="Add a rule", exact=True).bounding_box()
    assert said is not None and add is not None
    assert said["width"] > add["width"] * 2
    assert said["height"] < add["height"] * 1.5


@pytest.mark.rule("A2")
def test_rules_are_added_moved_and_tried_without_a_mouse_wheel_and_the_open_page_follows(
    page: Page, world: World
) -> None:
    page.context.set_default_timeout(PATIENT)
    by = Actor("pat", "password", world.person)
    rules = [a_rule(f"rule-{number}", "ask", tool="shop", function=f"f{number}") for number in range(30)]
    policies.save(tenant=world.tenant, rules=rules, seen=0, note="many", by=by)
    live(page, "/catalog/policy/")
    other = page.context.new_page()
    other.goto("/catalog/policy/edit/")
    other.get_by_role("button", name="Move rule-29 up").click()
    expect(other.locator("#rule-29")).to_contain_text("rule-29", timeout=PATIENT)
    expect(other.locator("#rule-29")).to_be_in_viewport(timeout=PATIENT)
    other.get_by_role("button", name="Add a rule", exact=True).click()
    expect(other.locator("#open-rule")).to_be_in_viewport(timeout=PATIENT)
    other.get_by_label("Title").fill("No exports by key")
    other.get_by_label("What it does").select_option("refuse")
    other.get_by_label("Function", exact=True).fill("export")
    other.get_by_label("api key").check()
    other.get_by_label("Argument 1, as a JSON pointer").fill("/format")
    other.get_by_label("How argument 1 is compared").select_option("differs")
    other.get_by_label("Value for argument 1").fill("csv")
    other.get_by_label("Value for argument 1").press("Enter")  # takes the rule, and does not save the policy
    expect(other.locator("#rule-31")).to_contain_text("started by api_key", timeout=PATIENT)
    expect(other.locator("#rule-31")).to_contain_text('/format ≠ "csv"', timeout=PATIENT)
    with other.context.expect_page() as opened:
        other.get_by_role("button", name="Simulate a call").click()
    tried = opened.value
    tried.get_by_label("Function").fill("shop.export")
    tried.get_by_label("Job started by").select_option("api_key")
    tried.get_by_role("button", name="Judge it").click()
    expect(tried.locator("#verdict")).to_contain_text("No exports by key", timeout=PATIENT)
    tried.close()
    other.get_by_label("Why").fill("exports leak")
    other.get_by_role("button", name="Put it in force").click()
    other.wait_for_url("**/catalog/policy/", timeout=PATIENT)
    other.close()
    expect(page.locator("#rule-31")).to_contain_text("No exports by key", timeout=PATIENT)
    expect(page.locator(".head")).to_contain_text(re.compile("version 2"), timeout=PATIENT)
    assert_live_equals_fresh(page)
    with db.read(world.tenant):
        assert [rule["id"] for rule in PolicyVersion.objects.get(number=2).rules[-3:]] == [
            "rule-29",
            "rule-28",
            "no-exports-by-key",
        ]
