"""Every address × everybody who may come: taken from the URL table, so that no new one is left out (RULES A5, A12).

The one-time sign-in link is the only address that a GET uses up (tests/pages/test_signing_in.py). The two ways back
from a provider take a GET because the protocol sends it, and only with what their own session left with.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.conf import LazySettings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from studio.embedded import Postgres
from tenants.models import Role
from tests.builders import a_person
from tests.pages.routes import NOBODYS, WRITES, Ground, Route, a_ground, nobodys, routes
from tests.pages.visitors import text_of, visitor

pytestmark = pytest.mark.timeout(900)  # hundreds of pages
ROLES = (Role.VIEWER, Role.OPERATOR, Role.AUTHOR, Role.ADMIN)
# What a query names: the address, the query before the name, what it names.
ASKED = (
    ("new-job", "from", "job"),
    ("jobs", "agent", "agent"),
    ("approvals", "agent", "agent"),
    ("approvals", "tool", "tool"),
    ("new-switch", "scope=tool&target", "tool"),
    ("new-switch", "scope=agent&target", "agent"),
    ("find", "q", "job"),
)


@pytest.fixture
def ours(database: Postgres) -> Ground:
    return a_ground("ours")


@pytest.fixture
def theirs(database: Postgres, ours: Ground) -> Ground:
    return a_ground("theirs")


def people_of(ground: Ground) -> dict[str, int]:
    """A person of each role."""
    return {role: a_person(ground.world.tenant, f"a-{role}", role) for role in ROLES}


class Tables:
    """All rows of the database, whoever's they are: what they come to."""

    def __init__(self, url: str) -> None:
        self._admin = psycopg.connect(url, autocommit=True)
        found = self._admin.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
        one = "SELECT '{0}', md5(coalesce(string_agg(t::text, '|' ORDER BY t::text), '')) FROM {0} t"
        self._ask = " UNION ALL ".join(one.format(name) for (name,) in found).encode()

    def now(self) -> dict[str, str]:
        return dict(self._admin.execute(self._ask).fetchall())

    def close(self) -> None:
        self._admin.close()


@pytest.fixture
def tables(database: Postgres) -> Iterator[Tables]:
    found = Tables(database.url_admin)
    yield found
    found.close()


@contextmanager
def unchanged(tables: Tables, what: str, *but: str) -> Iterator[None]:
    before = tables.now()
    yield
    after = tables.now()
    changed = sorted(name for name in after if after[name] != before.get(name) and name not in but)
    assert not changed, f"{what} changed {', '.join(changed)}"


def with_ids() -> list[Route]:
    return [route for route in routes() if route.kind and route.kind not in NOBODYS]


def test_every_route_has_an_example_and_a_kind_that_is_not_there_is_told() -> None:
    found = routes()
    assert len(found) > 60
    for route in found:
        assert isinstance(route.kind, str)
    with pytest.raises(LookupError, match="has no example"):
        _ = Route("new", "new/<str:shown>/", ("shown",)).kind


def said(answer: Any, named: str) -> tuple[int, str, str]:
    """An answer without what it was asked for."""
    html = answer.content.decode().replace(named, "…")
    html = re.sub(r'(csrfmiddlewaretoken" value|name="once" value)="[^"]*"', r"\1", html)
    html = re.sub(r"[\w ]+ alive|data-(?:elapsed|countdown)=[^<]*|at=\d+", "", html)  # what goes on by itself
    return answer.status_code, answer.headers.get("Location", "").replace(named, "…"), html


def compared(client: Client, method: str, addresses: Sequence[tuple[str, str]], form: Any) -> None:
    """Both addresses answer the same, after as many queries."""
    client.get(addresses[0][0])  # whatever is read once is read
    heard = []
    for address, named in addresses:
        with CaptureQueriesContext(connection) as queries:
            answer = getattr(client, method)(address, form if method == "post" else None)
        heard.append((*said(answer, named), len(queries)))
    assert heard[0] == heard[1], f"{method} {addresses[0][0]} and {addresses[1][0]} can be told apart"


@pytest.mark.rule("A5")
def test_what_is_foreign_and_what_is_not_there_cannot_be_told_apart_by_anybody(ours: Ground, theirs: Ground) -> None:
    clients = {role: visitor(ours.world, person) for role, person in people_of(ours).items()} | {"nobody": Client()}
    control = 0
    for who, client in clients.items():
        for route in with_ids():
            form = WRITES[route.name].holds if route.name in WRITES else {}
            pairs = [(route.at(name), name) for name in (theirs.named[route.kind], nobodys(route.kind))]
            compared(client, "get", pairs, form)
            compared(client, "post", pairs, form)
            if who == Role.ADMIN:
                control += client.get(route.at(ours.named[route.kind])).status_code == 200
        for name, query, kind in ASKED:
            (route,) = (one for one in routes() if one.name == name)
            pairs = [(f"{route.at('')}?{query}={named}", named) for named in (theirs.named[kind], nobodys(kind))]
            compared(client, "get", pairs, {})
    assert control > 12  # our own are shown


@pytest.mark.rule("A12")
def test_who_may_not_send_a_form_is_refused_and_nothing_changes(ours: Ground, tables: Tables) -> None:
    clients = {role: visitor(ours.world, person) for role, person in people_of(ours).items()}
    for route in routes():
        address = route.at(ours.named[route.kind])
        if route.name not in WRITES:
            with unchanged(tables, f"POST {address}"):
                answer = clients[Role.ADMIN].post(address)
            by_key = (401,) if address.startswith("/api/v1/budgets/") else ()  # no session counts there
            assert answer.status_code in (404, 405, *by_key), (
                f"{route.name} takes a form ({answer.status_code}): "
                "say in WRITES of tests/pages/routes.py who may send it"
            )
            continue
        form = WRITES[route.name]
        for role in ROLES[: ROLES.index(Role(form.role))]:
            with unchanged(tables, f"{role} at {route.name}"):
                answer = clients[role].post(address, form.holds)
            assert answer.status_code in form.else_, f"{role} at {route.name}: {answer.status_code}"


def test_nobody_who_is_not_signed_in_reads_or_changes_anything(ours: Ground, tables: Tables) -> None:
    opened = {"sign-in", "sign-in-link", "sign-in-with", "openid_connect_callback", "invitation", "sign-out"}
    opened |= {"login-ask", "login-take", "login-end"}  # of a command, which has no session
    opened |= {"api-budget-renew"}  # shows what renews it in its body
    stranger = Client()
    for route in routes():
        if route.name in opened:
            continue
        address = route.at(ours.named[route.kind])
        for method in ("get", "post", "head", "put", "delete", "patch", "options"):
            with unchanged(tables, f"a stranger's {method} {address}"):
                answer = getattr(stranger, method)(address)
            if address.startswith("/api/"):
                assert answer.status_code == 401, address
            elif address.startswith("/hooks/"):
                assert answer.status_code == (415 if method == "post" else 405), address
            else:
                assert answer.status_code == 302 and answer.headers["Location"].startswith("/sign-in/"), address


@pytest.mark.rule("A5")
def test_no_form_is_taken_without_its_token(ours: Ground, tables: Tables) -> None:
    client = visitor(ours.world, strict=True)
    for route in routes():
        address = route.at(ours.named[route.kind])
        form = WRITES[route.name].holds if route.name in WRITES else {}
        for headers in ({}, {"Origin": "https://evil.example"}, {"Authorization": "Bearer oz0_x"}):
            with unchanged(tables, f"POST {address} without a token"):
                answer = client.post(address, form, headers=headers)
            if route.name == "sign-in":  # who is in goes on (CASES S18)
                assert answer.status_code in (302, 403)
            elif address.startswith(("/api/", "/hooks/")) or route.name.startswith("login-"):
                assert answer.status_code in (401, 405, 415, 422), address
            else:
                assert answer.status_code in (403, 405), f"{address}: {answer.status_code}"


@pytest.mark.rule("A5")
def test_looking_at_anything_in_any_way_changes_nothing(ours: Ground, tables: Tables, settings: LazySettings) -> None:
    """CASES A26: every address and every link of every page, by GET, HEAD, OPTIONS, ahead of time, and by a scanner."""
    settings.OZ0_OIDC_NAME = "Acme ID"
    admin, scanner, links = visitor(ours.world), Client(), set[str]()
    addresses = {route.at(ours.named[route.kind]) for route in routes()}
    for address in sorted(addresses):
        with unchanged(tables, f"looking at {address}"):
            answer = admin.get(address)
            if answer.status_code == 200 and "text/html" in answer.headers.get("Content-Type", ""):
                links |= {
                    link.replace("&amp;", "&") for link in re.findall(r'(?:href|hx-get)="(/[^"#]*)', text_of(answer))
                }
            for client in (admin, scanner):
                client.head(address)
                client.options(address)
                client.get(address, headers={"Sec-Purpose": "prefetch"})
                client.get(address, headers={"HX-Request": "true"})
            scanner.get(address)
    links = {link for link in links if not link.startswith("/static/")} - addresses
    assert len(links) > 20
    for link in sorted(links)[:200]:
        with unchanged(tables, f"following {link}"):
            admin.get(link)
            admin.head(link)
            admin.get(link, headers={"Sec-Purpose": "prefetch"})
