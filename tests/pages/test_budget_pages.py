"""The Budgets pages: what is known, what may be done next, and who may do it (RULES S9, S10; CASES J07)."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from base import db, ids
from budgets.models import Key, Limit, Project, Reservation, Tally
from budgets.operations import keys, sweep
from budgets.operations.projects import amount_of
from budgets.queries import pages
from budgets.rules.words import ReservationState
from studio.embedded import Postgres
from tenants.models import AuditEntry, Role
from tests.budgets.callers import Caller, a_check, asked
from tests.budgets.ledgers import Ledger, another, cents, check_counts, submitted
from tests.budgets.show import a_journal, moving
from tests.builders import a_person, a_world
from tests.pages.visitors import plain, text_of, visitor

pytestmark = pytest.mark.usefixtures("database")


def budget_url(ledger: Ledger, more: str = "") -> str:
    return f"/budgets/{ids.show(ids.PROJECT, ledger.project)}/{more}"


def of_state(ledger: Ledger, standing: ReservationState) -> list[Reservation]:
    with db.read(ledger.tenant):
        return list(Reservation.objects.filter(project_id=ledger.project, standing=standing).order_by("amount"))


def words(client: Client, url: str) -> str:
    answer = client.get(url)
    assert answer.status_code == 200
    return plain(text_of(answer))


@pytest.mark.rule("S10")
def test_the_pages_tell_what_is_known_and_people_settle_what_is_not(database: Postgres) -> None:
    world = a_world()
    ledger, operations = a_journal(world, moving(database.url_admin))
    admin = visitor(world)
    listed = words(admin, "/budgets/")
    assert "nightly reports" in listed and "requests of this agent to its model" in listed
    page = words(admin, budget_url(ledger))
    assert "$0.15 in doubt" in page and "$0.05 spent" in page
    assert "1 denied" in page and "3 unattempted" in page
    told = words(admin, f"/budgets/operations/{operations['interrupted']}/")
    assert "It was interrupted." in told and "3 checks were never begun" in told
    assert told.count("Nothing will begin it.") == 3 and "its request may have gone out" in told
    told = words(admin, f"/budgets/operations/{operations['finished']}/")
    (denied,) = re.findall(r"\$[\d.]+ were counted of \$[\d.]+ per \w+", told)
    assert denied == "$0.40 were counted of $0.60 per hour"  # the very figures it was denied with
    assert "Whether its denial was recorded is not in this journal" in told
    assert "It provably had no effect" in words(admin, f"/budgets/operations/{operations['failed']}/")

    in_doubt = of_state(ledger, ReservationState.IN_DOUBT)
    overview = text_of(admin.get("/"))
    tile = re.search(r'<a class="tile[^"]*" href="/budgets/">.*?</a>', overview, re.DOTALL)
    with db.read(world.tenant):
        every = list(Reservation.objects.filter(standing="in_doubt").values_list("amount", flat=True))
    assert tile is not None and f">{len(every)}</span>" in tile[0] and f">${sum(every):.3f} may" in tile[0]
    first, second = (f"/budgets/amounts/{row.pk}/" for row in in_doubt[-2:])
    viewer = visitor(world, a_person(world.tenant, "vic", Role.VIEWER))
    assert "Settle…" not in words(viewer, budget_url(ledger))
    assert viewer.post(f"{first}release/").status_code == 403
    assert admin.post(f"{first}confirm/", {"amount": "much"}).status_code == 422
    assert admin.post(f"{first}confirm/", {"amount": "0.07", "note": "in the bill"}, follow=True).status_code == 200
    assert admin.post(f"{second}release/").status_code == 302
    again = admin.post(f"{second}release/")
    assert again.status_code == 409 and "it is released" in plain(text_of(again))
    assert "$0.12 spent" in words(admin, budget_url(ledger))
    with db.read(world.tenant):
        verbs = set(AuditEntry.objects.values_list("verb", flat=True))
    assert {"spend.confirmed", "spend.released"} <= verbs
    check_counts(world.tenant)


def test_an_admin_makes_a_project_its_limits_and_its_keys_and_nobody_else(
    database: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = a_world()
    admin, operator = visitor(world), visitor(world, a_person(world.tenant, "opa", Role.OPERATOR))
    wanted = {"name": "nightly", "zone": "Europe/Berlin", "unconfirmed": "in_doubt"}
    assert operator.post("/budgets/new/", wanted).status_code == 403
    for odd in (
        {"name": ""},
        {"zone": "Mars/Olympus"},
        {"zone": "localtime"},
        {"unconfirmed": "burn"},
        {"name": "a\0b"},
    ):
        assert admin.post("/budgets/new/", {**wanted, **odd}).status_code in (400, 422)
    answer = admin.post("/budgets/new/", wanted)
    url = answer["Location"]
    assert admin.post("/budgets/new/", wanted).status_code == 422  # of this name there is one
    turned = text_of(admin.post("/budgets/new/", {**wanted, "name": "a\u202eb"}))
    assert "cannot be seen" in turned
    with db.read(world.tenant):
        ledger = Ledger(world.tenant, Project.objects.get().pk)
    limit = {"period": "day", "mode": "hard_deny", "amount": "0.02"}
    assert operator.post(f"{url}limit/", limit).status_code == 403
    for amount in ("", "x", "-1", "NaN", "1e99", "0.0000000000001"):
        assert admin.post(f"{url}limit/", {**limit, "amount": amount}).status_code == 422, amount
    for amount in (
        "0,50",
        "1,2,3",
        "1_0",
        "0,500",
        "12,34,567",
        "1,00",
        "1,0000",
        "1.000,5",
        "\u0661",
        "1e3",
        "10e-1",
        "1,",
    ):
        told = admin.post(f"{url}limit/", {**limit, "amount": amount})  # a comma is no point, and never left out
        assert told.status_code == 422 and "0.50" in text_of(told), amount
    assert admin.post(f"{url}limit/", limit).status_code == 302
    assert "$0.02 per day" in words(admin, url)
    answer = admin.post(f"{url}keys/new/", {"name": "ci", "scope": "full"})
    found = re.search(r'value="(oz0_[0-9A-Za-z]+)"', text_of(answer))
    assert found is not None
    token = found[1]
    assert token not in text_of(admin.get(url))
    batch = {"operation_id": str(submitted(ledger, cents(2)).operation), "checks": [a_check(2)]}
    assert asked(token, "POST", "/check/batches", batch).status_code == 200
    with db.read(world.tenant):
        key = ids.show(ids.BUDGET_KEY, Key.objects.get().pk)
    rotated = re.search(r'value="(oz0_[0-9A-Za-z]+)"', text_of(admin.post(f"/budgets/keys/{key}/rotate/")))
    assert rotated is not None and asked(rotated[1], "GET", "/key").status_code == 200
    twice = admin.post(f"/budgets/keys/{key}/rotate/")
    assert twice.status_code == 422 and "was rotated already" in text_of(twice)
    with db.read(world.tenant):
        newest = ids.show(ids.BUDGET_KEY, Key.objects.get(expires_at=None).pk)
    with monkeypatch.context() as patch:
        patch.setattr(keys, "MOST_LIVE", 2)
        full = admin.post(f"/budgets/keys/{newest}/rotate/")
    assert full.status_code == 422 and "has 2 keys" in text_of(full)
    assert admin.post(f"/budgets/keys/{key}/revoke/").status_code == 302
    assert asked(token, "GET", "/key").status_code == 401
    assert operator.post(f"/budgets/keys/{key}/revoke/").status_code == 403
    assert admin.post(f"{url}limit/", {**limit, "do": "remove"}).status_code == 302
    assert admin.post(f"{url}limit/", {**limit, "do": "remove"}).status_code == 404
    with db.read(world.tenant):
        assert not Limit.objects.exists()
    assert "in doubt" not in words(admin, "/")


def test_an_amount_is_what_a_person_types_and_a_comma_only_parts_thousands() -> None:
    typed = ["25", "$25", " 0.50 ", "$ .5", "1,000", "12,345,678.25", "1000000", "0"]
    assert [f"{amount_of(text):f}" for text in typed] == [
        *("25", "25", "0.50", "0.5", "1000", "12345678.25", "1000000", "0"),
    ]


def test_a_denial_is_shown_with_the_figure_it_was_denied_by(database: Postgres) -> None:
    """CASES J07."""
    world = a_world()
    ledger, _ = a_journal(world, moving(database.url_admin), many=0)
    caller: Any = Caller(ledger, "another", seat=None)
    told = caller.submit(a_check(50)).json()["items"][0]["result"]
    page = words(visitor(world), budget_url(ledger))
    assert f"${float(told['current_usage']):.2f} of $0.60 per hour" in page


def test_the_journal_is_read_page_by_page_and_names_nothing_of_another_workspace(database: Postgres) -> None:
    world, other = a_world(), a_world("other")
    ledger, _ = a_journal(world, moving(database.url_admin), many=40)
    admin = visitor(world)
    first = text_of(admin.get(budget_url(ledger)))
    older = re.search(r'href="(\?before=[^"]+)"', first)
    assert older is not None
    second = text_of(admin.get(budget_url(ledger, older[1])))
    journals = [html.split('aria-label="Journal"')[1] for html in (first, second)]
    names = [set(re.findall(r"/budgets/operations/([0-9a-f-]{36})/", html)) for html in journals]
    assert len(names[0]) == 25 and len(names[1]) >= 15 and not names[0] & names[1]
    stranger = visitor(other)
    operation = next(iter(names[0]))
    for url in (budget_url(ledger), f"/budgets/operations/{operation}/"):
        assert stranger.get(url).status_code == 404
    assert "Nothing is counted yet" in words(stranger, "/budgets/")


def test_every_amount_in_doubt_is_reached_the_next_to_lapse_first_and_an_operation_leads_to_its_own(
    database: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = a_world()
    ledger, _ = a_journal(world, move := moving(database.url_admin), many=0)
    asked_last = submitted(ledger, *[cents(1)] * 5)
    move(timedelta(seconds=301))
    with db.read(world.tenant) as now:
        due = [row.pk for row in sweep.due(now)]
    assert sum(sweep.move_on(world.tenant, one) for one in due) >= 5
    submitted(ledger, cents(1))
    monkeypatch.setattr(pages, "AMOUNTS", 3)
    admin, url, met = visitor(world), budget_url(ledger), []
    next_page: str | None = ""
    while next_page is not None:
        html = text_of(admin.get(budget_url(ledger, next_page)))
        met += re.findall(r'<tr id="([0-9a-f-]{36})">', html)
        later = re.search(r'href="(\?amounts=[^"]+)"', html)
        next_page = later[1] if later else None
    with db.read(world.tenant):
        still = Reservation.objects.filter(project_id=ledger.project, standing__in=["in_doubt", "live"])
        assert met == [str(pk) for pk in still.order_by("standing", "due_at", "pk").values_list("pk", flat=True)]
    assert len(met) > 6 and len(set(met)) == len(met)
    told = text_of(admin.get(f"/budgets/operations/{asked_last.operation}/"))
    links = re.findall(rf'href="{re.escape(url)}(\?amounts=[^"#]+)#([0-9a-f-]+)"', told)
    assert len(links) == 5
    for asked_for, row in links:
        assert f'<tr id="{row}">' in text_of(admin.get(budget_url(ledger, asked_for)))


@pytest.mark.rule("S10")
def test_a_person_is_asked_back_about_far_more_than_was_reserved_and_corrects_what_they_have_said(
    database: Postgres,
) -> None:
    world = a_world()
    ledger, operations = a_journal(world, moving(database.url_admin), many=0)
    admin = visitor(world)
    (row, *_) = of_state(ledger, ReservationState.IN_DOUBT)  # of one cent
    url = f"/budgets/amounts/{row.pk}/confirm/"

    def spent() -> float:
        with db.read(world.tenant):
            return float(Tally.objects.get(project_id=ledger.project, period="month").spent)

    before = spent()
    comma = text_of(admin.post(url, {"amount": "0,25", "note": "the bill"}))
    assert f'id="wrong-{row.pk}"' in comma
    assert 'value="0,25"' in comma
    assert 'value="the bill"' in comma
    for said in ({"amount": "25"}, {"amount": "25", "sure": "2.5"}, {"amount": "999999999999", "sure": "25"}):
        asked_back = admin.post(url, said)
        assert asked_back.status_code == 422 and spent() == before, said
        assert "far more than the 0.01 USD that were reserved" in plain(text_of(asked_back))
    assert 'name="sure" value="999999999999"' in text_of(asked_back)
    assert admin.post(url, {"amount": "25", "sure": "25"}).status_code == 302
    assert spent() == pytest.approx(before + 25)
    page = f"/budgets/operations/{operations['interrupted']}/"
    assert "Correct…" in words(admin, page)
    assert "Correct…" not in words(visitor(world, a_person(world.tenant, "vic", Role.VIEWER)), page)
    wrong = admin.post(url, {"amount": "0,25", "was": "25"})
    assert wrong.status_code == 422 and 'name="was" value="25"' in text_of(wrong)
    assert admin.post(url, {"amount": "0.25", "was": "25", "note": "a slip"}).status_code == 302
    assert spent() == pytest.approx(before + 0.25)
    stale = admin.post(url, {"amount": "3", "was": "25"})
    assert stale.status_code == 409 and "somebody has corrected it" in plain(text_of(stale))
    with db.read(world.tenant):
        told = AuditEntry.objects.get(verb="spend.corrected")
        assert (told.before, told.after, told.note) == ({"amount": "25"}, {"amount": "0.25"}, "a slip")
        program = Reservation.objects.get(project_id=ledger.project, closed_by="key build server")
    by_program = admin.post(f"/budgets/amounts/{program.pk}/confirm/", {"amount": "0.01", "was": "0.05"})
    assert by_program.status_code == 409 and "no person has said" in plain(text_of(by_program))
    check_counts(world.tenant)


def test_a_limit_that_is_no_amount_is_told_beside_its_field_with_what_was_typed() -> None:
    world = a_world()
    ledger = another(world.tenant, name="nightly")
    html = text_of(
        visitor(world).post(budget_url(ledger, "limit/"), {"period": "hour", "mode": "alert_only", "amount": "0,50"})
    )
    assert 'value="0,50"' in html and 'id="wrong-limit"' in html and "<option selected>hour" in html
