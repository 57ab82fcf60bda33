"""One agent in three forms does the same work on the git and everything servers: on a model, as a program, as a client.

The same policy judges its calls, the same questions come to the queue, and the three traces tell the same.
"""

import base64
import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django import DjangoDbBlocker

from base import db, ids
from catalog.operations import connections, plugins, policies
from catalog.operations.connections import Given
from jobs.models import Call, Hold, Job, Starter
from jobs.operations import intake
from jobs.rules.states import CallState
from studio.embedded import kept
from tenants.models import User
from tenants.operations import tokens
from tenants.queries.seats import seats_of
from tenants.rules.bearers import DRAWN, Scope, written
from tenants.rules.who import SYSTEM, Actor
from tests.browser.by_link import signed_in
from tests.browser.conftest import read
from tests.builders import a_rule
from tests.clusters import connected
from tests.faults.studios import Studio, state_folder, studio_in
from tests.servers.providers import Provider, Says, provider
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.faults, pytest.mark.timeout(400)]
PATIENCE: Final = 120.0
TOOK: Final = re.compile(r"\d+(\.\d)? s\b")
FORMS: Final = ("as-a-loop", "as-a-program", "as-a-client")
WIDTH: Final = 690  # pixels of each page in the picture

WORK: Final[Any] = """
    import asyncio, json, os, sys
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    async def main(calls):
        headers = {"Authorization": "Bearer " + os.environ["OZ0_TOKEN"]}
        async with httpx2.AsyncClient(headers=headers, timeout=300, trust_env=False) as http:
            transport = streamable_http_client(os.environ["OZ0_MCP_URL"], http_client=http)
            async with Client(transport, mode="2026-07-28", cache=None) as client:
                for function, arguments in calls:
                    result = await client.call_tool(function, arguments)
                    print(function, result.content[0].text, flush=True)

    asyncio.run(main(json.load(sys.stdin)["input"]["calls"]))
"""
MANIFEST: Final = """
name: forms
version: "1.0.0"
tools: []
agents: [agents/]
"""
AGENT: Final = """
name: {name}
{form}
instructions: Look at the last commit, add the numbers, and unstage everything.
functions: [repo.git_log, repo.git_reset, everything.get-sum, everything.echo]
input: {{calls: []}}
limits: {{calls: 20, minutes: 30}}
"""


@dataclass(frozen=True)
class Place:
    """A studio with the demo's plugins and the agent in its three forms."""

    studio: Studio
    tenant: UUID
    person: int
    model: Provider
    folder: Path

    def started(self) -> dict[str, UUID]:
        """The job of each form, by the agent's name."""
        with db.read(self.tenant):
            return {job.agent.name: job.pk for job in Job.objects.filter(agent__name__in=FORMS).select_related("agent")}

    @property
    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        """The work: two reads, one call that the policy refuses, and one that a person must allow."""
        repo = str(self.studio.home / "demo" / "repo")
        return [
            ("repo__git_log", {"repo_path": repo, "max_count": 1}),
            ("everything__get-sum", {"a": 19, "b": 23}),
            ("everything__echo", {"message": "hello"}),
            ("repo__git_reset", {"repo_path": repo}),
        ]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker) -> Iterator[Place]:
    with (
        state_folder(tmp_path_factory.mktemp("forms")) as home,
        studio_in(home, demo=True) as studio,
        provider() as model,
        django_db_blocker.unblock(),
    ):
        studio.ready()
        until(lambda: studio.said("started a job of patient-one"), "the public server never ran", PATIENCE)
        with connected(kept.load(home)["DATABASE_URL"]):
            person = User.objects.get(username="admin").pk
            (seat,) = seats_of(person)
            made = Place(studio, seat.tenant, person, model, home / "forms")
            prepare(made)
            yield made


def prepare(place: Place) -> None:
    """Add the agent in its three forms, and a rule that refuses one of its functions."""
    (place.folder / "agents").mkdir(parents=True)
    (place.folder / "oz0-plugin.yaml").write_text(MANIFEST)
    (place.folder / "work.py").write_text(textwrap.dedent(WORK))
    forms = {
        "as-a-loop": "model: openai-chat:some-model\nconnection: brain",
        "as-a-program": "harness: [python, work.py]",
        "as-a-client": "outside: true",
    }
    for name, form in forms.items():
        (place.folder / "agents" / f"{name}.yaml").write_text(AGENT.format(name=name, form=form))
    model = place.model
    connections.make(
        tenant=place.tenant, name="brain", url=f"{model.url}/v1", allowed=[model.place], given=Given(), actor=SYSTEM
    )
    plugins.register(tenant=place.tenant, folder=place.folder, home=place.studio.home, actor=SYSTEM)
    rule = a_rule("no-echo", "refuse", tool="everything", function="echo")
    by = Actor("admin", "link", place.person)
    policies.save(tenant=place.tenant, rules=[rule], seen=0, note="one function less", by=by)


@contextmanager
def a_client(place: Place) -> Iterator[None]:
    """The work done by a program of a client's own, which nobody but its owner started."""
    (seat,) = seats_of(place.person)
    token = written("t" * DRAWN)
    words: Mapping[str, Any] = {"agent": "as-a-client", "days": None, "patience": 300}
    tokens.make(seat=seat, token=token, name="my editor", scopes=(Scope.CALL,), actor=SYSTEM, **words)
    address = {"OZ0_TOKEN": token, "OZ0_MCP_URL": f"http://127.0.0.1:{place.studio.port}/mcp/"}
    process = subprocess.Popen(
        [sys.executable, str(place.folder / "work.py")], env=os.environ | address, stdin=subprocess.PIPE, text=True
    )
    try:
        assert process.stdin is not None
        process.stdin.write(json.dumps({"input": {"calls": place.calls}}))
        process.stdin.close()
        yield
        assert process.wait(PATIENCE) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(10)


def started(place: Place, *forms: str) -> None:
    """Start the agent in these forms, by the person."""
    for form in forms:
        work: dict[str, Any] = {"calls": place.calls}
        whose: Mapping[str, Any] = {"starter": Starter.PERSON, "person": place.person}
        intake.start_job(tenant=place.tenant, agent=form, given=work, title="The same work", **whose)


def told(place: Place, job: UUID) -> list[dict[str, Any]]:
    """What the trace of a job keeps, without its ids and times: each call, its attempts, and the questions about it."""
    with db.read(place.tenant):
        calls = list(Call.objects.filter(job_id=job).order_by("activity"))
        return [
            {
                "function": f"{call.tool_slug}.{call.function_name}",
                "arguments": call.arguments,
                "kind": call.kind,
                "state": call.state,
                "reason": call.reason,
                "effect": call.effect,
                "rule": (call.rule_id, call.rule_digest, call.policy_number),
                "result": call.result_text,
                "attempts": [(one.state, one.reason) for one in call.attempts.order_by("number")],
                "asked": [(one.kind, one.rule_id, one.why, one.answer) for one in call.holds.order_by("opened_at")],
            }
            for call in calls
        ]


def approve(page: Page, agent: str) -> None:
    """Approve the one question of this form in the queue, after looking at what it says."""
    page.goto("/approvals/")
    page.locator(".waiting", has_text=agent).click()
    question = page.locator("#question")
    expect(question.locator("h1")).to_have_text("May repo.git_reset run?")
    expect(question).to_contain_text(agent)
    read(page)
    question.get_by_role("button", name="Approve", exact=True).click()
    expect(question).to_contain_text("You approved")


def lines(page: Page, job: UUID) -> list[list[str]]:
    """What the page of a job shows of each of its calls, line by line, without how long it took."""
    page.goto(f"/jobs/{ids.show(ids.JOB, job)}/")
    expect(page.locator(".line.call").last).to_contain_text("SUCCEEDED")
    shown = [TOOK.sub("a while", line.inner_text()).split("\n") for line in page.locator(".line.call").all()]
    return [[word for word in line if word] for line in shown]


def side_by_side(page: Page, pictures: list[bytes], file: Path) -> None:
    """One picture of several pages."""
    shown = "".join(f'<img src="data:image/png;base64,{base64.b64encode(one).decode()}">' for one in pictures)
    frame = page.context.new_page()
    frame.set_viewport_size({"width": 3 * WIDTH + 24, "height": 900})
    frame.set_content(f'<body style="margin:0;display:flex;gap:12px;align-items:start">{shown}</body>')
    frame.screenshot(path=file, full_page=True)
    frame.close()


def test_one_agent_in_three_forms_is_judged_asked_about_and_shown_alike(
    place: Place, browser: Browser, tmp_path: Path
) -> None:
    place.model.plan[:] = [*(Says(calls=(call,)) for call in place.calls), Says("Done.")]
    with signed_in(browser, place.studio) as page, a_client(place):
        started(place, "as-a-loop", "as-a-program")

        def waiting() -> list[str]:
            with db.read(place.tenant):
                found = Hold.objects.filter(closed_at__isnull=True, job__agent__name__in=FORMS)
                return sorted(found.values_list("job__agent__name", flat=True))

        until(lambda: waiting() == sorted(FORMS), "not every form came to its question", PATIENCE)
        for form in FORMS:
            approve(page, form)
        jobs = place.started()
        first, *others = (told(place, jobs[form]) for form in FORMS)
        for other in others:
            assert other == first
        assert [(call["state"], len(call["attempts"]), len(call["asked"])) for call in first] == [
            (CallState.SUCCEEDED, 1, 0),
            (CallState.SUCCEEDED, 1, 0),
            (CallState.REFUSED, 0, 0),
            (CallState.SUCCEEDED, 1, 1),
        ]
        shown, pictures = [], []
        for form in FORMS:
            page.set_viewport_size({"width": WIDTH, "height": 900})
            shown.append(lines(page, jobs[form]))
            pictures.append(page.screenshot(full_page=True, animations="disabled"))
        side_by_side(page, pictures, tmp_path / "forms.png")
    assert len(shown[0]) == len(place.calls)
    assert shown[1] == shown[0] and shown[2] == shown[0]
