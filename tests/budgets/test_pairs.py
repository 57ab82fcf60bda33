"""The token pair of a login: exchanged, kept in its order whatever becomes of the call, and used (RULES W4)."""

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from budgets.sessions.bounds import BOUNDS, Bound, Stopped
from budgets.sessions.credentials import NoCredentials, Pair, PairOfLogin
from tests.budgets.serving import saying
from tests.servers.journals import Journal
from tests.waiting import until


class Kept(PairOfLogin):
    """A pair whose save is watched, and may be held."""

    begun = threading.Event()
    hold: threading.Event | None = None

    def save(self, pair: Pair) -> None:
        self.begun.set()
        if self.hold is not None:
            self.hold.wait(20)
        super().save(pair)


@pytest.mark.rule("W4")
@pytest.mark.parametrize("how", ["near its end", "refused"])
def test_a_pair_is_exchanged_kept_and_then_used(
    journal: Journal, call: Callable[..., Any], tmp_path: Path, how: str
):  # fmt: skip
    pair = PairOfLogin(tmp_path / "pair")
    pair.save(Pair("access-1", "refresh-1", time.time() + (5 if how == "near its end" else 900)))
    if how == "refused":
        journal.script["GET usage"] = [saying("401 Unauthorized"), None]
    assert call(lambda owner: owner.ask("GET", "usage", again=True), credentials=pair).status == 200
    refreshed = next(one for one in journal.asked if one.path == "tokens/refresh")
    assert refreshed.body == {"refresh_token": "refresh-1"}
    assert "authorization" not in refreshed.headers
    assert journal.asked[-1].headers["authorization"] == "Bearer access-2"
    assert (pair.folder / "refresh").read_text() == "refresh-2"
    assert pair.read().token == "access-2"
    assert {path.stat().st_mode & 0o777 for path in pair.folder.iterdir()} == {0o600}


@pytest.mark.rule("W4")
def test_a_new_pair_is_kept_although_the_call_is_over(journal: Journal, call: Callable[..., Any], tmp_path: Path):
    """The deadline comes while it is being kept; no request follows."""
    pair, hold = Kept(tmp_path / "pair"), threading.Event()
    PairOfLogin.save(pair, Pair("access-1", "refresh-1", 0))
    object.__setattr__(pair, "hold", hold)
    with pytest.raises(Stopped) as stopped:
        call(lambda owner: owner.ask("GET", "usage"), credentials=pair, bounds=replace(BOUNDS, seconds=1.5))
    assert stopped.value.bound is Bound.DEADLINE
    assert journal.names == ["POST tokens/refresh"]
    hold.set()
    until(lambda: (tmp_path / "pair/refresh").read_text() == "refresh-2", "the new pair was not kept")


@pytest.mark.rule("W4")
def test_a_pair_that_came_is_kept_although_its_call_ends_before_the_connection_is_let_go(
    journal: Journal, call: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The answer is whole, and the deadline comes while its stream is closed."""
    from httpcore2 import Response

    async def never(_: object) -> None:
        await asyncio.sleep(60)

    pair = PairOfLogin(tmp_path / "pair")
    pair.save(Pair("access-1", "refresh-1", 0))
    monkeypatch.setattr(Response, "aclose", never)
    with pytest.raises(Stopped):
        call(lambda owner: owner.ask("GET", "usage"), credentials=pair, bounds=replace(BOUNDS, seconds=1.5))
    assert journal.names == ["POST tokens/refresh"]
    assert pair.read().token == "access-2"


def test_the_refresh_token_is_kept_before_the_access_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from budgets.sessions import credentials

    order: list[str] = []
    write = credentials._write

    def watched(file: Path, text: str) -> None:
        order.append(file.name)
        write(file, text)

    monkeypatch.setattr(credentials, "_write", watched)
    PairOfLogin(tmp_path / "pair").save(Pair("access-1", "refresh-1", 0))
    assert order == ["refresh", "access.json"]


def test_one_allowance_is_shared_by_a_wait_and_a_new_token(
    journal: Journal, call: Callable[..., Any], tmp_path: Path
):  # fmt: skip
    pair = PairOfLogin(tmp_path / "pair")
    pair.save(Pair("access-1", "refresh-1", time.time() + 900))
    journal.script["GET usage"] = [saying("401 Unauthorized"), saying("429 Slow", Retry_After="0"), None]
    assert call(lambda owner: owner.ask("GET", "usage", again=True), credentials=pair).status == 429
    assert journal.names == ["GET usage", "POST tokens/refresh", "GET usage"]


def test_a_login_that_counts_no_more_is_said_to(journal: Journal, call: Callable[..., Any], tmp_path: Path):
    pair = PairOfLogin(tmp_path / "pair")
    pair.save(Pair("access-1", "refresh-1", 0))
    journal.script["POST tokens/refresh"] = [saying("401 Unauthorized")]
    with pytest.raises(NoCredentials, match="oz0 login"):
        call(lambda owner: owner.ask("GET", "usage"), credentials=pair)
