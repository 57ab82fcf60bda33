"""A 429 on a request that is not the call's own says nothing about the call, whatever wait it names (RULES B4)."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from catalog.sessions import http_opening, session
from jobs.node import NotOpened
from jobs.rules.orders import End, Outcome
from jobs.rules.reasons import Reason
from tests.node.driving import until
from tests.node.remotes import reached
from tests.servers.raw_http import Peer, RawServer, Request

both = pytest.mark.parametrize("modern", [True, False], ids=["2026-07-28", "2025-11-25"])
waits = pytest.mark.parametrize(
    "wait",
    ["3", format_datetime(datetime.now(UTC) + timedelta(minutes=5), usegmt=True), "soon", "-1"],
    ids=["seconds", "a date", "rubbish", "negative"],
)


def busy(wait: str) -> Callable[[Peer, Request], object]:
    async def step(peer: Peer, request: Request) -> None:
        await peer.status("429 Too Many Requests", Retry_After=wait)

    return step


async def cut(peer: Peer, request: Request) -> None:
    peer.reset()


def says_nothing_of_busy(outcome: Outcome) -> bool:
    return outcome.end is not End.BUSY and outcome.reason != Reason.BUSY and outcome.retry_after is None


@pytest.mark.rule("B4")
@both
@waits
def test_on_the_first_question_no_session_opens_and_no_call_is_made(modern: bool, wait: str) -> None:
    """CASES B05. Later the same server opens, in the same generation."""
    first = "server/discover" if modern else "initialize"
    with RawServer(modern=modern) as server, reached(server.url, opened=False) as drive:
        server.script[first] = busy(wait)
        opened = drive.node.open(drive.spec)
        assert isinstance(opened, NotOpened)
        assert (opened.reason, opened.status) == (Reason.SERVER_NOT_UP, 429)
        outcome = drive.call("ok")
        assert (outcome.end, outcome.wire.went_out) == (End.NOT_MADE, False)
        assert says_nothing_of_busy(outcome)
        assert server.calls() == []
        del server.script[first]
        assert drive.open().listing.protocol == ("2026-07-28" if modern else "2025-11-25")
        assert drive.call("ok").end is End.ANSWERED


@pytest.mark.rule("B4")
@both
@waits
def test_on_the_listing_that_is_read_again_before_a_call_the_call_was_not_made(
    modern: bool, wait: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CASES B05."""
    with RawServer(modern=modern) as server, reached(server.url) as drive:
        server.script["tools/list"] = busy(wait)
        monkeypatch.setattr(session, "UNWATCHED", -1.0)
        outcome = drive.call("ok")
        assert (outcome.end, outcome.reason, outcome.wire.went_out) == (End.NOT_MADE, Reason.SERVER_NOT_UP, False)
        assert says_nothing_of_busy(outcome)
        assert "429" in outcome.wire.detail
        assert server.calls() == []
        monkeypatch.setattr(session, "UNWATCHED", 60.0)
        del server.script["tools/list"]
        assert drive.call("ok").end is End.ANSWERED


@pytest.mark.rule("B4")
@pytest.mark.rule("U4")
@both
@waits
def test_on_the_stream_of_changes_a_failing_call_stays_unknown_and_the_stream_is_asked_for_again(
    modern: bool, wait: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CASES B05."""
    monkeypatch.setattr(http_opening, "LISTEN_AGAIN", (0.05, 0.1))
    stream = "subscriptions/listen" if modern else "GET"
    with RawServer("cut", modern=modern) as server:
        server.script |= {stream: busy(wait), "cut": cut}
        with reached(server.url) as drive:
            until(lambda: [one for one in server.requests if one.method == stream], "the stream was never asked for")
            outcome = drive.call("cut")
            assert (outcome.end, outcome.reason) == (End.BROKEN, Reason.CONNECTION_BROKE)
            assert says_nothing_of_busy(outcome)
            assert drive.call("ok").end is End.ANSWERED
            asked = "the stream was not asked for again"
            until(lambda: len([one for one in server.requests if one.method == stream]) >= 3, asked)


@pytest.mark.rule("B4")
@pytest.mark.rule("L1")
@waits
def test_on_the_cancel_a_stopped_call_has_stopped_and_was_not_busy(wait: str) -> None:
    """CASES B05. Only the older generation sends a request for it."""

    async def never(peer: Peer, request: Request) -> None:
        await peer.reader.read(1)

    with RawServer("never", modern=False) as server, reached(server.url) as drive:
        server.script |= {"never": never, "notifications/cancelled": busy(wait)}
        order = drive.order("never", cleanup=0.3)
        running = drive.start(order)
        until(lambda: server.calls("never"), "the call at the server")
        drive.node.stop(order.attempt_id, Reason.STOPPED_CANCEL)
        outcome = running.result(10)
        assert [one for one in server.requests if one.method == "notifications/cancelled"]
        assert (outcome.end, outcome.reason) == (End.STOPPED, Reason.STOPPED_CANCEL)
        assert says_nothing_of_busy(outcome)
        assert drive.call("ok").end is End.ANSWERED
