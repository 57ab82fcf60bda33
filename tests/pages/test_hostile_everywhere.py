"""Whatever column a hostile text lies in, every page shows it as text: it hides nothing, and marks nothing up.

(RULES A13; CASES S02, S05, S06, S17.) The text is put into every column that holds words of models, servers or people,
so that a new page, or a new column on an old page, that prints it another way is found.
"""

import re
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from approvals.models import Way
from approvals.operations import channels, notices
from base import db, ids
from catalog.models import Listing
from catalog.rules.switching import Scope
from jobs.models import Call, Hold
from jobs.rules.orders import End
from studio import embedded
from tenants.operations import audit
from tenants.rules.who import Actor
from tests.budgets.show import a_journal
from tests.builders import (
    World,
    a_call,
    a_held_call,
    a_policy,
    a_rule,
    a_switch,
    a_world,
    an_order,
    an_outcome,
    an_unknown_call,
    made,
    see,
)
from tests.catalogs import a_remote_tool
from tests.pages.visitors import text_of, visitor

MARKUP = "<img src=x onerror=alert(1)></pre></bdi></li><script>x</script><h1>Approved by admin</h1>{{x}}\"' onload=x"
HIDING = "\u202e\u200b\u00ad\x1b[8m\r\n\U000e0041"
HOSTILE = f"a{HIDING}{MARKUP}"
PLANTED = {
    "jobs_job": ("title", "detail", "output"),
    "jobs_turn": ("say", "error", "model"),
    "jobs_call": ("detail", "result_text", "rule_id"),
    "jobs_hold": ("why", "note", "rule_id"),
    "jobs_node": ("name", "host"),
    "catalog_function": ("title", "description"),
    "catalog_listing": ("server_name", "server_version"),
    "catalog_killswitch": ("reason",),
    "approvals_channel": ("name", "off_because"),
    "approvals_delivery": ("trouble",),
    "tenants_auditentry": ("actor", "how", "object", "note"),
    "tenants_tenant": ("name",),
    "budgets_key": ("name",),
    "budgets_reservation": ("model", "provider", "note", "closed_by"),
    "budgets_spendevent": ("model",),
}
AS_JSON = {"jobs_call": ("arguments",), "jobs_attempt": ("late",), "tenants_auditentry": ("before", "after")}
COLUMNS = "SELECT column_name, character_maximum_length FROM information_schema.columns WHERE table_name = %s"
RAW_TAGS = re.compile(r"<(?:img|script)\b(?![^>]*\bsrc=\"/static/)|<h1>Approved", re.IGNORECASE)
IN_A_FIELD = re.compile(
    r"\svalue=\"[^\"]*\"|<textarea[^>]*>.*?</textarea>|<title>.*?</title>|<option[^>]*>.*?</option>", re.DOTALL
)


def plant(database: embedded.Postgres) -> None:
    with psycopg.connect(database.url_admin, autocommit=True) as admin:
        admin.execute("SET session_replication_role = replica")
        for table, columns in PLANTED.items():
            known = dict(admin.execute(COLUMNS, [table]).fetchall())
            for column in columns:
                if column in known:
                    admin.execute(f'UPDATE {table} SET "{column}" = %s', [HOSTILE[: known[column] or 10_000]])
        for table, columns in AS_JSON.items():
            for column in columns:
                value = Jsonb({"at": HOSTILE, HOSTILE: [HOSTILE], "text": HOSTILE, "is_error": False})
                admin.execute(f'UPDATE {table} SET "{column}" = %s', [value])
        wire = Jsonb({"detail": HOSTILE, "went_out": True, "ended": "none", "status": 200})
        admin.execute("UPDATE jobs_attempt SET wire = %s", [wire])


def everything(world: World) -> list[str]:
    read = a_call(world, "look", {"q": HOSTILE})
    made(world, read, an_outcome(End.ANSWERED, text=HOSTILE))
    failed = a_call(world, "look")
    made(world, failed, an_outcome(End.ANSWERED, text=HOSTILE, is_error=True))
    running = a_call(world, "charge")
    an_order(world, running)
    hook = channels.Wanted("on-call", url="https://hooks.example/x")
    channels.make(tenant=world.tenant, way=Way.WEBHOOK, wanted=hook, secret="s", actor=Actor("pat", "x"))
    _, held = a_held_call(world)
    unknown, asked = an_unknown_call(world)
    for _ in range(2):
        an_unknown_call(world)
    notices.note_due()
    a_remote_tool(world)
    a_policy(world, a_rule("big", "ask", tool="shop", title=HOSTILE))
    switch = a_switch(world, Scope.AGENT, "clerk", reason="x")
    with db.write(world.tenant):
        audit.record(Actor("pat", "x"), "tool.listed_anew", "tool x", before={"a": 1}, after={"a": 2}, note="x")
    with db.read(world.tenant):
        newest = Listing.objects.values_list("pk", flat=True).get(tool__slug="archive", current=True)
        other = Hold.objects.filter(call__job__isnull=False).values_list("pk", flat=True).first()
    assert other is not None
    ledger, operations = a_journal(world, lambda ahead: None)
    jobs = {
        ids.show(ids.JOB, see(world, Call, call).job_id): ids.show(ids.CALL, call) for call in (read, failed, unknown)
    }
    return [
        "/",
        "/jobs/",
        *(f"/jobs/{job}/?call={call}" for job, call in jobs.items()),
        *(f"/calls/{call}/" for call in jobs.values()),
        "/approvals/",
        f"/approvals/{ids.show(ids.HOLD, held)}/",
        f"/approvals/{ids.show(ids.HOLD, asked)}/",
        f"/approvals/{ids.show(ids.HOLD, asked)}/group/",
        "/approvals/insights/",
        "/catalog/",
        "/catalog/functions/",
        "/catalog/functions/shop.export/",
        "/catalog/tools/shop/",
        f"/catalog/tools/archive/listings/?to={newest}",
        "/catalog/tools/archive/review/",
        "/catalog/policy/",
        "/catalog/policy/edit/",
        "/catalog/policy/waiting/",
        "/catalog/policy/replay/",
        "/catalog/policy/versions/1/",
        "/catalog/switches/",
        f"/catalog/switches/{ids.show(ids.SWITCH, switch)}/",
        "/catalog/agents/",
        "/catalog/agents/clerk/",
        "/budgets/",
        f"/budgets/{ids.show(ids.PROJECT, ledger.project)}/",
        *(f"/budgets/operations/{operation}/" for operation in operations.values()),
        "/settings/notices/",
        "/settings/audit/",
        "/settings/connections/",
    ]


@pytest.mark.rule("A13")
def test_on_every_page_a_hostile_text_is_text_with_what_it_hides_made_visible(database: embedded.Postgres) -> None:
    world = a_world()
    pages = everything(world)
    plant(database)
    client, found, shown = visitor(world), [], 0
    for path in pages:
        response: Any = client.get(path)
        assert response.status_code == 200, path
        html = text_of(response)
        shown += ">U+202E</mark>" in html
        outside = IN_A_FIELD.sub("", html)  # a field is filled with the very characters, so that they can be changed
        found += [f"{path}: U+{ord(char):04X} raw" for char in set(HIDING) - set("[8m\r\n") if char in outside]
        found += [f"{path}: {tag.group()!r}" for tag in RAW_TAGS.finditer(html)]
    assert not found, "\n".join(found)
    assert shown >= 12, "it is on most of these pages, so the test means something"
