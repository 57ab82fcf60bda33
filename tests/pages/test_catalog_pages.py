"""The catalog's pages: what a tool says and costs, what an agent sends, and approving what a remote server lists."""

import re
from dataclasses import fields
from typing import Any

import pytest

from base import db
from catalog.models import EntryApproval, Function, Listing, Tool
from catalog.operations import listings
from catalog.rules.estimates import Definition, estimate
from catalog.rules.fields import Notes
from catalog.rules.manifest import MANIFEST, ToolSpec, read_manifest
from jobs.models import Call
from jobs.rules.states import CallState
from tenants.models import AuditEntry, Role
from tests.builders import READ, World, a_function, a_held_call, a_node, a_person, a_tenant, a_world, see
from tests.catalogs import REMOTE, a_many_tool, a_remote_tool, an_agent_of, entries, lists
from tests.pages.visitors import text_of, visitor

pytestmark = pytest.mark.usefixtures("database")
TOOL_KEYS = [field.name for field in fields(ToolSpec)]
REVIEW = "/catalog/tools/archive/review/"


def page(world: World, path: str) -> str:
    answer = visitor(world).get(path)
    assert answer.status_code == 200, path
    return text_of(answer)


def plain(html: str) -> str:
    """The words of a page, in one line."""
    return re.sub(r" ([.,:;])", r"\1", re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html)))


def post(world: World, data: dict[str, Any], person: int | None = None) -> Any:
    return visitor(world, person).post(REVIEW, data)


def shown(world: World) -> list[str]:
    """What the page's form sends for every entry on it."""
    return re.findall(r'name="shown" value="([^"]+)"', page(world, REVIEW))


def standing(world: World) -> set[str]:
    with db.read(world.tenant):
        return set(EntryApproval.objects.filter(withdrawn_at__isnull=True).values_list("function", flat=True))


# --- the tool ----------------------------------------------------------------------------------------------------


@pytest.mark.rule("T1")
def test_catalog_tool_and_agent_show_the_same_estimate_and_name_its_method() -> None:
    world = a_world()
    with db.read(world.tenant):
        rows = list(Function.objects.all())
    total = sum(estimate([Definition(row.model_name, row.description, row.input_schema) for row in rows]))
    pages = ("", "plugins/", "tools/", "tools/shop/", "agents/", "agents/clerk/")
    for path in (f"/catalog/{name}" for name in pages):
        words = plain(page(world, path))
        assert str(total) in words, path
        assert "Figures are about: o200k_base tokens of the compact JSON of name, description and input schema" in words


@pytest.mark.rule("C4")
def test_an_undeclared_function_is_marked_with_the_reason_and_the_fix_to_paste() -> None:
    world = a_world()
    lists(world.tenant, "shop", (a_function("look", READ), a_function("export", {})))
    words = plain(page(world, "/catalog/tools/shop/"))
    assert "1 does not say what it does" in words
    assert "Calls of it wait for a person: it has no annotations, so nobody knows whether it changes anything." in words
    assert "@server.tool(annotations=ToolAnnotations(" in words
    assert "read_only_hint=True, # it changes nothing" in " ".join(words.split())


@pytest.mark.rule("C4")
@pytest.mark.rule("C3")
def test_the_overview_of_the_catalog_names_what_to_look_at_and_leads_there() -> None:
    world = a_world()
    a_remote_tool(world)
    a_many_tool(world)
    with db.read(world.tenant):
        tool = Tool.objects.get(slug="shop").pk
    listings.not_measured(tenant=world.tenant, tool_id=tool, why="It ended at once: no module named shop.")
    html = page(world, "/catalog/")
    words = plain(html)
    assert "6 things to look at" in words
    assert "no module named shop" in words
    assert "archive: 2 entries to approve" in words
    assert 'href="/catalog/tools/archive/review/"' in html
    assert "shop: 1 function undeclared" in words
    assert "everything: 35 functions undeclared" in words
    assert 'href="/catalog/functions/?tool=everything&amp;kind=undeclared"' in html
    assert "Agent over-sender is over its token budget" in words
    assert "of 151: why, and how to fix that" in words
    assert "1 of 151 functions" in plain(page(world, "/catalog/functions/?q=endpoint_119_list"))


def test_an_empty_catalog_says_how_to_fill_it() -> None:
    tenant = a_tenant()
    world = World(tenant, a_person(tenant), a_node())
    for place in ("", "plugins/", "tools/"):
        assert "oz0 plugin add FOLDER" in plain(page(world, f"/catalog/{place}")), place


@pytest.mark.rule("C5")
@pytest.mark.parametrize(
    ("can", "timeout", "told"),
    [
        ({}, 120, ""),
        ({"can_cancel": False}, 120, "A call may take 120 s and cannot be cancelled (a stop is only waited out)."),
        ({"can_report": False}, 120, "A call may take 120 s and shows no progress and cannot resume."),
        ({"can_cancel": False, "can_report": False}, 20, ""),
    ],
)
def test_a_tool_says_what_its_connection_can_do_and_warns_when_a_long_call_cannot(
    can: dict[str, bool], timeout: float, told: str
) -> None:
    world = a_world()
    a_remote_tool(world, timeout=timeout)
    with db.write(world.tenant):
        Listing.objects.update(**can)
    words = plain(page(world, "/catalog/tools/archive/"))
    assert ("A call may take" in words) == bool(told)
    assert told in words
    assert ("its calls cannot be cancelled" in words) == ("can_cancel" in can)
    assert ("no progress comes" in words) == ("can_report" in can)
    assert "tools only, no prompts and no resources" in words


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (60, "1 m 00 s a call, the default, which timeout: in its plugin’s manifest changes ·"),
        (90, "1 m 30 s a call, as timeout: in its plugin’s manifest says ·"),
    ],
)
def test_a_tool_says_how_long_a_call_may_take_and_which_one_field_says_so(seconds: float, shown: str) -> None:
    """CASES L09: there is one knob for it, and nothing else that sounds like one is taken."""
    world = a_world()
    with db.write(world.tenant):
        Tool.objects.update(timeout=seconds)
    assert shown in plain(page(world, "/catalog/tools/shop/"))
    assert {name for name in TOOL_KEYS if "time" in name or "limit" in name} == {"timeout"}
    tool = "{id: shop, mcp: [x], timeout: 90, %s: 5}"
    for name in ("request_timeout", "call_timeout", "limit"):
        notes = Notes(MANIFEST)
        read_manifest(notes, f"name: a\nversion: '1'\ntools: [{tool % name}]\n".encode())
        assert any(f"tools[0].{name}" in str(problem) for problem in notes.problems), name


def test_old_addresses_of_an_entry_and_of_a_listing_lead_to_their_pages() -> None:
    world = a_world()
    client = visitor(world)
    assert client.get("/catalog/tools/shop/?function=look").headers["Location"] == "/catalog/functions/shop.look/"
    moved = client.get("/catalog/tools/shop/?listing=rubbish")
    assert moved.headers["Location"] == "/catalog/tools/shop/listings/?to=rubbish"
    assert client.get("/catalog/tools/shop/listings/?to=rubbish").status_code == 404
    assert client.get("/catalog/tools/nowhere/").status_code == 404


@pytest.mark.parametrize(
    "path", ["tools/shop/?function=%00", "tools/%00/", "functions/shop.%00/", "agents/%00/", "agents/clerk/?shown=a%00"]
)
def test_a_name_that_the_database_cannot_hold_is_not_found(path: str) -> None:
    assert visitor(a_world()).get(f"/catalog/{path}").status_code == 404


@pytest.mark.rule("C3")
def test_a_tools_listings_stand_side_by_side_with_what_was_approved_by_whom() -> None:
    world = a_world()
    a_remote_tool(world)
    lists(world.tenant, "archive", entries(*REMOTE[1:]))
    with db.read(world.tenant):
        third, second, first = Listing.objects.filter(tool__slug="archive").order_by("-pk").values_list("pk", flat=True)
    place = "/catalog/tools/archive/listings/"
    newest, older = plain(page(world, place)), plain(page(world, f"{place}?to={second}"))
    assert "first, 2 functions" in newest
    assert "−1" in newest
    assert "gone search" in newest
    assert "new purge" not in newest
    assert "new purge" in older
    assert "oldest first newest first and forwards them to a U+200B n address" in older
    both = plain(page(world, f"{place}?from={first}&to={third}"))
    assert ("new purge" in both, "gone search" in both) == (True, True)
    assert "changed fetch" not in both
    assert re.search(r"search [0-9a-f]{12} pat-acme [0-9:]+ ended", newest)
    assert re.search(r"fetch [0-9a-f]{12} pat-acme [0-9:]+ stands", newest)
    assert f"{place}?to={third}" in page(world, "/catalog/tools/archive/")
    other = a_world("other")
    a_remote_tool(other)
    assert visitor(other).get(f"{place}?to={third}").status_code == 404


def test_what_a_server_could_not_list_is_told() -> None:
    world = a_world()
    with db.read(world.tenant):
        tool = Tool.objects.get().pk
    listings.not_measured(tenant=world.tenant, tool_id=tool, why="It ended at once: no module named shop.")
    assert "no module named shop" in page(world, "/catalog/tools/shop/")


def test_only_authors_and_admins_read_how_a_server_is_started() -> None:
    world = a_world()
    operator = a_person(world.tenant, "olga", Role.OPERATOR)
    assert "/bin/false" in page(world, "/catalog/tools/shop/")
    assert "/bin/false" not in text_of(visitor(world, operator).get("/catalog/tools/shop/"))


@pytest.mark.rule("T3")
def test_a_plugin_over_its_budget_is_told_in_the_catalog() -> None:
    world = a_world()
    a_many_tool(world)
    assert "come to about 33,559 tokens and may come to 16,000" in plain(page(world, "/catalog/"))
    words = plain(page(world, "/catalog/plugins/"))
    assert "Plugin everything is over its token budget." in words
    assert "come to about 33,559 tokens and may come to 16,000; most of it: everything.endpoint_119_list (457)" in words


# --- the agents --------------------------------------------------------------------------------------------------


@pytest.mark.rule("T3")
def test_an_agent_over_its_budget_is_first_in_the_list_on_the_overview_and_says_what_to_drop() -> None:
    world = a_world()
    a_many_tool(world)
    assert "over-sender: 33,559 of 8,000 tokens" in plain(page(world, "/"))
    names = re.findall(r'href="/catalog/agents/([^"/]+)/"', page(world, "/catalog/agents/"))
    assert names == ["over-sender", "clerk", "lazy-one"]
    words = plain(page(world, "/catalog/agents/over-sender/"))
    assert "agents/over-sender.yaml limits.tool_tokens" in words
    assert (
        "agent over-sender: every model request would carry about 33,559 tokens of definitions and may carry" in words
    )
    assert "set tool_loading: lazy, which sends oz.find and oz.call" in words
    assert re.search(r"Drop these \d+ to fit: everything.endpoint_119_list · 457", words)


@pytest.mark.rule("T4")
def test_a_lazy_agent_shows_the_discovery_tools_it_carries_and_what_all_would_cost() -> None:
    world = a_world()
    a_many_tool(world)
    words = plain(page(world, "/catalog/agents/lazy-one/"))
    assert re.search(r"all at once would be about 33,6\d\d ", words), "what is granted, and oz.skill"
    assert [own in words for own in ("oz.find", "oz.call", "oz.skill")] == [True] * 3
    assert "over budget" not in words


@pytest.mark.rule("C6")
def test_an_agents_page_shows_exactly_what_the_model_is_sent_and_the_grants_that_give_nothing() -> None:
    world = a_world()
    an_agent_of(world, "typist", "shop.look", "shop.lok", "nowhere.*")
    words = plain(page(world, "/catalog/agents/typist/?shown=shop.look"))
    assert "2 grants give nothing: shop.lok nowhere.*" in words
    assert "{&quot;name&quot;:&quot;shop__look&quot;,&quot;description&quot;:&quot;What look does.&quot;" in words
    assert "shop.note" not in words
    assert visitor(world).get("/catalog/agents/typist/?shown=shop.note").status_code == 404
    assert visitor(world).get("/catalog/agents/nobody/").status_code == 404


def test_a_tool_that_is_not_listed_yet_makes_the_figure_a_lower_bound() -> None:
    world = a_world()
    an_agent_of(world, "early", "shop.look", "later.*")
    with db.write(world.tenant):
        tool = Tool.objects.get()
        tool.pk, tool.slug, tool._state.adding = None, "later", True
        from base import ids

        tool.pk = ids.new()
        tool.save(force_insert=True)
    assert "It is more than that: later is not listed yet." in plain(page(world, "/catalog/agents/early/"))


# --- approving ---------------------------------------------------------------------------------------------------


@pytest.mark.rule("C3")
def test_what_waits_is_shown_field_by_field_with_what_an_approval_would_do() -> None:
    world = a_world()
    a_remote_tool(world)
    words = plain(page(world, REVIEW))
    assert "search changed since it was approved" in words
    assert "annotations.openWorldHint before false is there no more" in words
    assert "oldest first newest first and forwards them to a U+200B n address" in words
    assert "purge never approved" in words
    assert "With your approval it counts as destructive and is made once" in words
    assert [one.split(":")[0] for one in shown(world)] == ["search", "purge"]
    assert "2 entries of this remote server wait for approval" in plain(page(world, "/catalog/tools/archive/"))


@pytest.mark.rule("C3")
@pytest.mark.rule("A12")
def test_one_entry_or_all_shown_are_approved_by_a_post() -> None:
    world = a_world()
    a_remote_tool(world)
    assert post(world, {"shown": shown(world), "approve": "purge"}).status_code == 302
    assert standing(world) == {"fetch", "purge"}
    post(world, {"shown": shown(world), "approve": "*"})
    assert standing(world) == {"fetch", "purge", "search"}
    assert "Every entry is approved" in page(world, REVIEW)
    assert "read" in plain(page(world, "/catalog/tools/archive/"))
    with db.read(world.tenant):
        assert AuditEntry.objects.filter(verb="listing.approved", actor="pat-acme").count() == 2


@pytest.mark.rule("C3")
def test_an_entry_that_changed_since_it_was_shown_is_not_approved() -> None:
    world = a_world()
    a_remote_tool(world)
    before = shown(world)
    lists(world.tenant, "archive", entries(REMOTE[0], REMOTE[1], REMOTE[2] | {"description": "Removes all of them."}))
    answer = post(world, {"shown": before, "approve": "purge"})
    assert answer.status_code == 409
    assert "The server describes purge otherwise than you were shown" in plain(text_of(answer))
    assert standing(world) == {"fetch"}


@pytest.mark.rule("C3")
@pytest.mark.parametrize("approve", [[], ["", ""], ["fetch"], ["nothing"], ["purge", "search"]])
def test_an_odd_approval_moves_nothing(approve: list[str]) -> None:
    world = a_world()
    a_remote_tool(world)
    assert post(world, {"shown": shown(world), "approve": approve}).status_code == 400
    assert visitor(world).get(REVIEW + "?approve=*").status_code == 200
    assert visitor(world, strict=True).post(REVIEW, {"shown": shown(world), "approve": "*"}).status_code == 403
    assert standing(world) == {"fetch"}


@pytest.mark.rule("C3")
@pytest.mark.rule("C2")
def test_a_tool_is_listed_again_when_an_author_says_so_and_by_nobody_else() -> None:
    world, other = a_world(), a_world("other")

    def rows() -> list[tuple[int, bool]]:
        with db.read(world.tenant):
            return [(tool.server_generation, tool.measure_due_at is not None) for tool in Tool.objects.all()]

    operator = visitor(world, a_person(world.tenant, "vic", Role.OPERATOR))
    assert operator.post("/catalog/tools/shop/list-again/").status_code == 403
    assert "List again" not in operator.get("/catalog/tools/shop/").text
    assert visitor(other).post("/catalog/tools/shop/list-again/").status_code == 302  # its own of that name
    assert visitor(other).post("/catalog/tools/shoe/list-again/").status_code == 404
    assert rows() == [(0, False)]
    author = visitor(world, a_person(world.tenant, "ann", Role.AUTHOR))
    assert "List again" in author.get("/catalog/tools/shop/").text
    assert author.post("/catalog/tools/shop/list-again/").headers["Location"] == "/catalog/tools/shop/"
    assert rows() == [(1, True)]
    assert "Being listed…" in author.get("/catalog/tools/shop/").text


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
def test_who_may_not_approve_reads_why_and_cannot(role: Role) -> None:
    world = a_world()
    a_remote_tool(world)
    other = a_person(world.tenant, "vic", role)
    html = text_of(visitor(world, other).get(REVIEW))
    assert f"Authors and admins approve what a server says; your role here is {role}." in html
    assert html.count("disabled") == 3
    assert post(world, {"shown": shown(world), "approve": "*"}, other).status_code == 403
    assert standing(world) == {"fetch"}


def test_a_plugins_own_tool_has_nothing_to_approve() -> None:
    assert "This is a plugin's own server" in page(a_world(), "/catalog/tools/shop/review/").replace("&#x27;", "'")


def test_the_review_tells_how_many_questions_are_open_about_an_entry() -> None:
    world = a_world()
    call, _ = a_held_call(world)
    with db.write(world.tenant):
        Tool.objects.update(transport="url", connection="shop", url="https://shop.example/mcp")
    assert see(world, Call, call).state == CallState.HELD
    assert "1 question about it" in plain(page(world, "/catalog/tools/shop/review/"))


def test_a_hostile_description_stays_text_on_every_page() -> None:
    world = a_world()
    hostile = "<script>alert(1)</script>\u202e<img src=x onerror=alert(1)>"
    bad = entries(REMOTE[1] | {"name": "bad", "description": hostile, "title": hostile})
    lists(world.tenant, "shop", (a_function("look", {}), *bad))
    for path in (
        "/catalog/tools/",
        "/catalog/functions/",
        "/catalog/functions/shop.bad/",
        "/catalog/tools/shop/",
        "/catalog/agents/clerk/?shown=shop.bad",
    ):
        html = page(world, path)
        assert "<script>alert" not in html
        assert "\u202e" not in html
        assert "<img" not in html


# --- taking an approval back -------------------------------------------------------------------------------------

WITHDRAW = "/catalog/tools/archive/withdraw/"


def approved(world: World) -> list[str]:
    """What the tool's page sends to take each approval back."""
    form = page(world, "/catalog/tools/archive/").partition("Approved entries")[2]
    return re.findall(r'name="shown" value="([^"]+)"', form)


@pytest.mark.rule("C3")
@pytest.mark.rule("A12")
def test_an_approval_is_taken_back_on_the_tools_page_with_a_reason_for_the_audit_log() -> None:
    world = a_world()
    a_remote_tool(world)
    (entry,) = approved(world)
    assert entry.startswith("fetch:")
    assert "by pat-acme" in plain(page(world, "/catalog/tools/archive/"))
    answer = visitor(world).post(WITHDRAW, {"shown": entry, "note": "it forwards documents"}, follow=True)
    assert "You took back the approval of fetch: its word counts no more." in plain(text_of(answer))
    assert standing(world) == set()
    words = plain(page(world, "/catalog/tools/archive/"))
    assert "3 entries of this remote server wait for approval" in words
    assert "Approved entries" not in words
    with db.read(world.tenant):
        (noted,) = AuditEntry.objects.filter(verb="listing.withdrawn")
    assert (noted.actor, noted.note) == ("pat-acme", "it forwards documents")


@pytest.mark.rule("C3")
@pytest.mark.parametrize("shown", ["", "fetch", "fetch:", "search:0", "gone:0", "fetch:" + "0" * 64])
def test_what_is_not_approved_as_it_was_shown_is_not_taken_back(shown: str) -> None:
    world = a_world()
    a_remote_tool(world)
    answer = visitor(world).post(WITHDRAW, {"shown": shown}, follow=True)
    assert "Nothing was taken back" in plain(text_of(answer))
    assert standing(world) == {"fetch"}


@pytest.mark.rule("A5")
def test_an_approval_is_taken_back_by_a_post_with_its_token_only() -> None:
    world = a_world()
    a_remote_tool(world)
    (entry,) = approved(world)
    assert visitor(world).get(WITHDRAW, {"shown": entry}).status_code == 405
    assert visitor(world, strict=True).post(WITHDRAW, {"shown": entry}).status_code == 403
    assert standing(world) == {"fetch"}


@pytest.mark.rule("C3")
@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
def test_who_may_not_approve_takes_none_back_and_reads_why(role: Role) -> None:
    world = a_world()
    a_remote_tool(world)
    (entry,) = approved(world)
    other = a_person(world.tenant, "vic", role)
    html = text_of(visitor(world, other).get("/catalog/tools/archive/"))
    assert f'disabled title="Authors and admins approve what a server says; your role here is {role}."' in html
    assert WITHDRAW not in html
    assert visitor(world, other).post(WITHDRAW, {"shown": entry}).status_code == 403
    assert standing(world) == {"fetch"}


def test_a_plugins_own_tool_shows_no_approvals() -> None:
    assert "Approved entries" not in page(a_world(), "/catalog/tools/shop/")


@pytest.mark.rule("C3")
@pytest.mark.rule("C6")
def test_a_listing_that_grew_by_a_hundred_after_its_approval_is_told_and_costs_nobody_until_it_is_approved() -> None:
    """CASES C03."""
    world = a_world()
    a_remote_tool(world)
    an_agent_of(world, "reader", "archive.*", budget=1_000)
    before = plain(page(world, "/catalog/agents/reader/"))
    more = ({**REMOTE[1], "name": f"grown_{n}", "description": f"Grew as number {n}. " * 5} for n in range(100))
    lists(world.tenant, "archive", entries(*REMOTE, *more))
    assert "grown_" not in page(world, "/catalog/agents/reader/")
    assert "over budget" not in before
    tool = page(world, "/catalog/tools/archive/")
    assert "entries of this remote server wait for approval" in plain(tool)
    post(world, {"shown": shown(world), "approve": "*"})
    after = plain(page(world, "/catalog/agents/reader/"))
    assert "grown_99" in after
    assert "over budget" in after
