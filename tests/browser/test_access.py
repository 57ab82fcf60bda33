"""Everybody can use it: axe on every page, in light, in dark and on a phone; and no page is wider than a phone."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from approvals.models import Way
from approvals.operations import channels, deciding_rules, notices
from approvals.operations.decide import Person, decide
from approvals.rules.deciding import Decider
from base import db, ids
from catalog.models import Credential, Listing
from catalog.operations import connections
from catalog.operations.connections import Given
from catalog.rules.switching import Mode, Scope
from jobs.models import Call
from jobs.operations.holds import Answer
from jobs.rules.orders import End
from tenants.models import Membership, Role
from tenants.operations import invitations, tokens, vault
from tenants.queries.seats import seats_of
from tenants.rules.bearers import written
from tenants.rules.who import SYSTEM, Actor
from tests.browser.conftest import Studio, sign_in
from tests.budgets.show import a_journal
from tests.builders import (
    World,
    a_call,
    a_held_call,
    a_job,
    a_person,
    a_policy,
    a_rule,
    a_switch,
    a_tenant,
    an_order,
    an_outcome,
    an_unknown_call,
    answered,
    made,
    see,
    the_hold,
)
from tests.catalogs import a_many_tool, a_remote_tool

pytestmark = [pytest.mark.browser, pytest.mark.timeout(700)]  # many pages, each in every look

PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 860}


def approved_by_one_of_two(world: World, call: UUID) -> None:
    """The call's question: edited, and approved by its editor, where two people must."""
    save = deciding_rules.save
    save(tenant=world.tenant, roles={}, approvers={"destructive": 2}, no_self=False, by=SYSTEM)
    who = Person(Decider(world.person, "admin"), Actor("pat", "test", world.person))
    decide(tenant=world.tenant, hold_id=the_hold(world, call).pk, person=who, answer="edit", arguments={"amount": 4})
    save(tenant=world.tenant, roles={}, approvers={"destructive": 3}, no_self=False, by=SYSTEM)


def pages_of(world: World) -> list[str]:
    """Every page, with something of each kind on it."""
    read = a_call(world, "look", {"q": "x\u202ey"})
    made(world, read, an_outcome(End.ANSWERED, text="done"))
    running = a_call(world, "charge")
    an_order(world, running)
    _, held = a_held_call(world)
    shared = a_call(world, "refund", {"amount": 5, "to": "A-1"})
    approved_by_one_of_two(world, shared)
    unknown, asked = an_unknown_call(world)
    for _ in range(2):  # with the one above they are a group
        an_unknown_call(world)
    empty = a_job(world)
    job = see(world, Call, unknown).job_id
    a_remote_tool(world)
    a_many_tool(world)
    with db.read(world.tenant):
        newest = Listing.objects.values_list("pk", flat=True).get(tool__slug="archive", current=True)
    vic = a_person(world.tenant, "vic", Role.VIEWER)
    elsewhere = a_tenant("elsewhere")
    a_person(elsewhere, "pat-acme", Role.OPERATOR)
    actor = Actor("pat", "test", world.person)
    week = timedelta(days=7)
    invitations.invite(
        tenant=world.tenant, token="a token", role=Role.AUTHOR, email="k@example.com", good_for=week, actor=actor
    )
    (seat, *_) = [one for one in seats_of(world.person) if one.tenant == world.tenant]
    tokens.make(
        seat=seat, token=written("a" * 36), name="nightly", scopes=["read"], agent="clerk", days=30, actor=actor
    )
    with db.write(world.tenant):
        vault.put("variable KEY", "a value")
    with db.read(world.tenant):
        member = ids.show(ids.MEMBER, Membership.objects.get(user_id=vic).pk)
    crm = connections.make(
        tenant=world.tenant,
        name="crm",
        url="https://crm.example/mcp",
        allowed=["127.0.0.1:8801"],
        given=Given(Credential.OAUTH),
        actor=SYSTEM,
    )
    big = [{"path": "/amount", "is": "more_than", "value": 100}]
    a_policy(
        world, a_rule("big", "ask", tool="shop", arguments=big), a_rule("odd", "?"), a_rule("gone", "refuse", tool="x")
    )
    wanted = channels.Wanted("on-call", url="https://hooks.example/x", remind=3600)
    hook = channels.make(tenant=world.tenant, way=Way.WEBHOOK, wanted=wanted, secret="s", actor=SYSTEM)
    a_held_call(world)
    notices.note_due()
    _, approved = a_held_call(world)
    answered(world, approved, Answer.APPROVE)
    stopped = a_switch(world, Scope.FUNCTION, "shop.look")
    a_switch(world, Scope.AGENT, "clerk", mode=Mode.PAUSE)
    ledger, operations = a_journal(world, lambda ahead: None)
    shown = [ids.show(ids.JOB, job), ids.show(ids.CALL, unknown), ids.show(ids.JOB, empty)]
    return [
        "/",
        "/jobs/",
        "/jobs/?view=failed",
        "/jobs/new/",
        f"/jobs/{shown[0]}/?call={shown[1]}",
        f"/jobs/{shown[2]}/",
        f"/jobs/{ids.show(ids.JOB, see(world, Call, running).job_id)}/",
        f"/calls/{shown[1]}/",
        f"/approvals/{ids.show(ids.HOLD, held)}/",
        f"/approvals/{ids.show(ids.HOLD, asked)}/",
        f"/approvals/{ids.show(ids.HOLD, asked)}/group/",
        *(f"/approvals/{ids.show(ids.HOLD, held)}/{more}" for more in ("edit/", "edit/?as=json", "always/?days=7")),
        f"/approvals/{ids.show(ids.HOLD, the_hold(world, shared).pk)}/",
        "/approvals/several/",
        "/approvals/?agent=nobody",
        "/settings/deciding/",
        "/catalog/",
        "/catalog/plugins/",
        "/catalog/tools/",
        "/catalog/functions/",
        "/catalog/skills/",
        "/catalog/skills/shop/bill/",
        "/catalog/functions/?kind=undeclared&sort=tokens",
        "/catalog/functions/?q=nothing-like-it",
        "/catalog/functions/shop.export/",
        "/catalog/functions/archive.search/",
        "/catalog/findings/",
        "/catalog/tools/shop/",
        "/catalog/tools/archive/",
        f"/catalog/tools/archive/listings/?to={newest}",
        "/catalog/tools/archive/review/",
        "/catalog/tools/shop/review/",
        "/catalog/tools/everything/",
        "/catalog/plugins/",
        "/catalog/plugins/shop/",
        "/catalog/plugins/shop/remove/",
        "/catalog/upload/",
        "/catalog/policy/",
        "/catalog/policy/edit/?new=1",
        "/catalog/policy/waiting/",
        "/catalog/policy/simulate/?function=shop.charge&agent=clerk&starter=person",
        "/catalog/policy/replay/",
        "/catalog/policy/versions/",
        "/catalog/policy/versions/1/",
        "/catalog/switches/",
        "/catalog/switches/new/?scope=tool&target=shop",
        "/catalog/switches/new/?scope=agent&target=clerk",
        f"/catalog/switches/{ids.show(ids.SWITCH, stopped)}/",
        "/catalog/agents/",
        "/catalog/agents/over-sender/?shown=everything.endpoint_000_list",
        "/catalog/agents/lazy-one/",
        "/settings/people/",
        f"/settings/people/{member}/",
        "/settings/people/invite/",
        "/settings/tokens/",
        "/settings/tokens/new/",
        "/settings/api/",
        "/settings/traces/",
        "/settings/secrets/",
        "/settings/secrets/put/",
        "/settings/you/",
        "/invitation/a token/",
        "/invitation/none/",
        "/approvals/insights/?days=7",
        "/settings/audit/",
        "/settings/audit/?verb=switch.on",
        "/settings/notices/",
        "/settings/notices/new/?way=webhook",
        "/settings/notices/new/?way=email",
        f"/settings/notices/{ids.show(ids.CHANNEL, hook)}/",
        "/settings/connections/",
        "/settings/connections/new/",
        f"/settings/connections/{ids.show(ids.CONNECTION, crm)}/",
        "/budgets/",
        "/budgets/new/",
        f"/budgets/{ids.show(ids.PROJECT, ledger.project)}/",
        *(f"/budgets/operations/{operation}/" for operation in operations.values()),
        "/jobs/job_missing/",
    ]


@pytest.mark.parametrize(
    ("scheme", "size"), [("light", DESK), ("dark", DESK), ("light", PHONE)], ids=["light", "dark", "phone"]
)
def test_axe_finds_nothing_on_any_page(studio: Studio, browser: Browser, world: World, scheme: Any, size: Any) -> None:
    context = browser.new_context(base_url=studio.url, color_scheme=scheme, viewport=size, bypass_csp=True)
    page, axe, found = context.new_page(), Axe(), []
    paths = pages_of(world)
    for path in ("/sign-in/", "/invitation/a token/"):
        page.goto(path)
        assert axe.run(page).violations_count == 0, axe.run(page).generate_report()
    sign_in(context, studio.url, world.person)
    for path in paths:
        page.goto(path)
        results = axe.run(page)
        if results.violations_count:
            found.append(f"{path}\n{results.generate_report()}")
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if wide > 0:
            found.append(f"{path} is {wide} px wider than the window")
    context.close()
    assert not found, "\n\n".join(found)
