"""The token pair of a login: exchanged, kept in its order whatever becomes of the call, and used (RULES W4)."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from budgets.sessions.bounds import BOUNDS, Bound, Deadline, Stopped
from budgets.sessions.credentials import (
    NoCredentials,
    OnlyPair,
    Pair,
    PairOfLogin,
    SeveralPairs,
    forget_pairs,
    found_for,
    pair_of,
)
from budgets.sessions.owner import Lost, Owner
from tests.budgets.serving import CHECK, called, lose, saying
from tests.servers.journals import Asked, Journal
from tests.servers.raw_http import Peer
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


@pytest.mark.parametrize(
    "step",
    [
        lose,
        saying("500 Broken"),
        saying("503 Busy", Retry_After="1"),
        saying("429 Slow"),
        saying("200 OK", {"access_token": 1}),
        saying("200 OK", b"no json"),
        saying("302 Elsewhere", Location="/"),
    ],
)
def test_an_exchange_that_fails_otherwise_says_nothing_of_the_login_nor_of_the_check_and_can_be_tried_again(
    journal: Journal, tmp_path: Path, step: Any
):
    pair = PairOfLogin(tmp_path / "pair")
    pair.save(Pair("access-1", "refresh-1", 0))
    journal.script["POST tokens/refresh"] = [step, None]
    found = called(journal, "budget_check_batch", checks=[CHECK], _credentials=pair)
    assert found["error"]["code"] == "connection_failed"
    assert "oz0 login" not in found["error"]["message"]
    assert found["recovery"]["state"] == "not_submitted"
    assert journal.names == ["POST tokens/refresh"]
    assert called(journal, "budget_check_batch", checks=[CHECK], _credentials=pair)["ok"]


def test_after_a_refusal_an_exchange_that_fails_leaves_nothing_in_doubt(journal: Journal, tmp_path: Path):
    """The first try of the recording was refused by a 401, and the second had no token."""
    pair = PairOfLogin(tmp_path / "pair")
    pair.save(Pair("access-1", "refresh-1", time.time() + 900))
    journal.script["POST ingest"] = [saying("401 Old")]
    journal.script["POST tokens/refresh"] = [lose]
    event = called(
        journal, "budget_confirm", reservation_id=None, model="gpt-4o", provider="openai", input_tokens=1,
        output_tokens=1, no_record=True,
    )["data"]["recording_retry"]  # fmt: skip
    found = called(journal, "budget_confirm", record_only=event, _credentials=pair)
    assert (found["recovery"]["recording"], found["error"]["code"]) == ("failed", "recording_failed")
    assert found["data"]["recordings"][0]["code"] == "connection_failed"


def rotating(journal: Journal) -> list[str]:
    """Have the journal exchange each refresh token once, slowly; those that it was shown."""
    shown: list[str] = []

    async def exchange(peer: Peer, asked: Asked) -> None:
        token = asked.body["refresh_token"]
        again = token in shown
        shown.append(token)
        await asyncio.sleep(0.3)
        if again:
            await peer.status("401 Unauthorized")
            return
        number = int(token.removeprefix("refresh-")) + 1
        given = {"access_token": f"access-{number}", "refresh_token": f"refresh-{number}", "expires_in": 900}
        await peer.status("200 OK", given | {"project_id": "proj", "scope": "full"})

    journal.script["POST tokens/refresh"] = [exchange]
    return shown


def test_two_calls_at_once_exchange_a_pair_once(journal: Journal, workers: Any, tmp_path: Path):
    """Each has its own reading of the folder, as two processes have."""
    shown = rotating(journal)
    PairOfLogin(tmp_path / "pair").save(Pair("access-1", "refresh-1", 0))

    async def one() -> int:
        owner = Owner(
            journal.url, PairOfLogin(tmp_path / "pair"), deadline=Deadline(20), bounds=BOUNDS, workers=workers
        )  # fmt: skip
        found: list[int] = []

        async def work() -> None:
            found.append((await owner.ask("GET", "usage")).status)

        await owner.run(work)
        return found[0]

    async def together() -> list[int]:
        return await asyncio.gather(*(one() for _ in range(6)))

    assert asyncio.run(together()) == [200] * 6
    assert shown == ["refresh-1"]
    assert {one.headers["authorization"] for one in journal.asked if one.path == "usage"} == {"Bearer access-2"}
    assert PairOfLogin(tmp_path / "pair").read().token == "access-2"


def test_another_process_has_the_turn_until_it_gives_it_back(
    journal: Journal, call: Callable[..., Any], tmp_path: Path
):  # fmt: skip
    pair = PairOfLogin(tmp_path / "pair")
    pair.save(Pair("access-1", "refresh-1", 0))
    words = (
        "import fcntl, os, sys; held = os.open(sys.argv[1], os.O_RDONLY); fcntl.flock(held, fcntl.LOCK_EX); "
        "print('held', flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", words, str(pair.folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(Stopped):
            call(lambda owner: owner.ask("GET", "usage"), credentials=pair, bounds=replace(BOUNDS, seconds=0.5))
        assert journal.asked == []
        pair.save(Pair("access-9", "refresh-9", time.time() + 900))  # what the other exchanged it for
        other.communicate()
    assert call(lambda owner: owner.ask("GET", "usage"), credentials=pair).status == 200
    assert journal.names == ["GET usage"]


def test_a_turn_that_nobody_wants_any_more_is_not_kept(tmp_path: Path):
    """The call ended while a thread was taking it."""
    pair = PairOfLogin(tmp_path / "pair")
    pair.save(Pair("access-1", "refresh-1", 0))
    turn, next_one = pair.turn(), pair.turn()
    turn.give_back()
    assert turn.taken()
    assert next_one.taken()
    next_one.give_back()


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A studio of which nothing is kept yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("OZ0_BUDGET_KEY", "OZ0_BUDGET_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)
    return "https://studio.example"


def kept(studio: str, project: str, token: str) -> PairOfLogin:
    found = pair_of(studio, project)
    found.save(Pair(token, f"refresh of {token}", time.time() + 900, f"id of {project}", project))
    return found


def test_each_project_has_a_pair_of_its_own_and_one_that_is_used_stays_the_same(at_home: str):
    running = found_for(at_home)
    with pytest.raises(NoCredentials, match="oz0 login"):
        running.read()
    kept(at_home, "one", "access-1")
    assert running.read().token == "access-1"
    kept(at_home, "two", "access-2")
    assert running.read().token == "access-1"
    assert [found_for(at_home, project=name).read().token for name in ("one", "two")] == ["access-1", "access-2"]
    with pytest.raises(SeveralPairs, match="--project"):
        OnlyPair(at_home).read()
    with pytest.raises(NoCredentials):
        found_for(at_home, project="three").read()
    moved = PairOfLogin(pair_of(at_home, "one").folder, "two")
    with pytest.raises(NoCredentials, match="not of the project"):
        moved.read()


def test_the_pairs_of_a_studio_are_forgotten_and_no_others(at_home: str):
    kept(at_home, "one", "access-1")
    kept(at_home, "two", "access-2")
    other = kept("https://other.example", "one", "access-3")
    forget_pairs(at_home)
    with pytest.raises(NoCredentials):
        found_for(at_home, project="one").read()
    with pytest.raises(NoCredentials):
        found_for(at_home).read()
    assert other.read().token == "access-3"


def test_a_key_and_a_project_are_not_named_together(at_home: str, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(ValueError, match="--key-file names one: leave --project out"):
        found_for(at_home, file=Path("key"), project="one")
    monkeypatch.setenv("OZ0_BUDGET_KEY", "key-1")
    with pytest.raises(ValueError, match="OZ0_BUDGET_KEY names one"):
        found_for(at_home, project="one")


def test_a_new_pair_of_another_project_is_not_taken(journal: Journal, call: Callable[..., Any], tmp_path: Path):
    pair = PairOfLogin(tmp_path / "pair")
    pair.save(Pair("access-1", "refresh-1", 0, "proj-of-another"))
    with pytest.raises(Lost) as lost:
        call(lambda owner: owner.ask("GET", "usage"), credentials=pair)
    assert not lost.value.doubt
    assert pair.read().token == "access-1"
