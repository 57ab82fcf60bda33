"""`oz0 budget` against a journal of sockets: chunks with their ids, exit codes, paging without end, and its key."""

import json
import stat
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from base import ids
from budgets.sessions.credentials import KeyOfEnvironment, NoCredentials, read_studio
from studio.cli import _logins, main
from tests.budgets.serving import CHECK, lose, saying
from tests.servers.journals import Asked, Journal, told
from tests.servers.raw_http import Peer


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Journal]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("OZ0_BUDGET_KEY", "key-1")
    with Journal() as one:
        monkeypatch.setenv("OZ0_BUDGET_URL", one.url)
        yield one


def oz0(*words: str, given: Any = None) -> Result:
    text = None if given is None else json.dumps(given)
    return CliRunner().invoke(main, ["budget", *words], prog_name="oz0", input=text)


def rows(done: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.rule("W6")
def test_a_long_list_is_checked_in_chunks_of_32_one_operation_each_whose_id_comes_first(journal: Journal):
    done = oz0("check", "--file", "-", "--json", given=[CHECK] * 70)
    assert done.exit_code == 0, done.output
    found = rows(done)
    assert [(one["first"], one["checks"]) for one in found[::2]] == [(0, 32), (32, 32), (64, 6)]
    sent = [one.body for one in journal.asked]
    assert [len(one["checks"]) for one in sent] == [32, 32, 6]
    assert [one["operation_id"] for one in sent] == [one["operation_id"] for one in found[::2]]
    assert len({one["operation_id"] for one in sent}) == 3


@pytest.mark.rule("W6")
def test_an_operation_whose_reply_is_lost_is_named_and_none_after_it_is_submitted(journal: Journal):
    journal.script["POST check/batches"] = [None, lose, None]
    done = oz0("check", "--file", "-", given=[CHECK] * 70)
    assert done.exit_code == 1
    lost = journal.asked[1].body["operation_id"]
    assert f"operation {lost}: checks 32 to 63" in done.stdout
    assert "outcome_unavailable" in done.stderr
    assert "The last 6 checks were not submitted." in done.stderr
    assert journal.count("POST check/batches") == 2


@pytest.mark.rule("W6")
def test_usage_is_listed_to_its_end_however_many_pages_and_bytes_that_is(journal: Journal):
    journal.pages["usage"] = [[{"event_id": f"e{page}", "note": "x" * 100_000}] for page in range(24)]
    done = oz0("usage", "--json")
    assert done.exit_code == 0
    assert [row["event_id"] for row in rows(done)] == [f"e{page}" for page in range(24)]
    assert journal.count("GET usage") == 24


RESERVATION = "01a22e93-7b6d-7554-ad9f-74b078da5299"
ARGUMENTS = ("--model", "gpt-4o", "--provider", "openai", "--input-tokens", "9")


@pytest.mark.parametrize(
    ("line", "body", "code"),
    [
        ("401 No", {"detail": {"code": "unauthenticated"}}, 3),
        ("403 No", {"detail": {"code": "not_allowed"}}, 3),
        ("404 No", {"detail": {"code": "operation_not_found"}}, 5),
        ("409 No", {"detail": {"code": "operation_conflict"}}, 1),
        ("410 No", {"detail": {"code": "operation_expired"}}, 1),
        ("500 No", {}, 1),
    ],
)
def test_each_refusal_has_its_exit_code(journal: Journal, line: str, body: Any, code: int):
    for name in ("GET", "POST"):
        journal.script[name] = [saying(line, body)]
    operation = str(ids.new())
    assert oz0("check", *ARGUMENTS).exit_code == code
    assert oz0("recover", operation).exit_code == code
    assert oz0("confirm", RESERVATION, *ARGUMENTS, "--output-tokens", "1").exit_code == code
    assert oz0("usage", "--json").exit_code == code
    assert len(journal.asked) == 4


def test_denials_end_with_4_and_are_looked_up_and_recorded_again(journal: Journal, tmp_path: Path):
    journal.denied = {1}
    done = oz0("check", "--file", "-", "--json", "--no-record", given=[CHECK] * 2)
    assert done.exit_code == 4
    operation, result = rows(done)
    assert result["recovery"]["recording"] == "skipped"
    found = oz0("recover", operation["operation_id"])
    assert found.exit_code == 4
    assert "denied by the limit of the day" in found.stdout
    assert "reservation res-0" in found.stdout
    kept = result["data"]["recording_retry"]
    done = oz0("record", "--file", "-", "--operation-id", operation["operation_id"], given=kept)
    assert (done.exit_code, journal.asked[-1].body) == (0, {"events": [kept[0]["event"]]})
    kept[0]["event"]["call_id"] = "another"
    assert oz0("record", "--file", "-", "--operation-id", operation["operation_id"], given=kept).exit_code == 2
    assert journal.count("POST ingest") == 1


@pytest.mark.rule("S11")
def test_a_recording_of_which_nobody_knows_is_no_success(journal: Journal):
    async def legacy(peer: Peer, asked: Asked) -> None:
        await peer.status("202 Accepted", told(asked.body["events"], matched_by="legacy_key", same=None))

    journal.script["POST ingest"] = [legacy]
    done = oz0("confirm", RESERVATION, *ARGUMENTS, "--output-tokens", "1", "--json")
    assert done.exit_code == 0
    (found,) = rows(done)
    assert (found["recovery"]["settlement"], found["recovery"]["recording"]) == ("confirmed", "unknown")
    assert oz0("record", "--file", "-", given=found["data"]["recording_retry"]).exit_code == 1


def test_without_a_key_it_ends_with_3_and_with_a_wrong_call_with_2(journal: Journal, monkeypatch: pytest.MonkeyPatch):
    assert oz0("check").exit_code == 2
    assert oz0("check", "--model", "gpt-4o").exit_code == 2
    assert oz0("check", "--file", "-", given=[CHECK | {"surprise": 1}]).exit_code == 2
    assert oz0("check", *ARGUMENTS, "--operation-id", "no-id").exit_code == 2
    assert oz0("recover", "019A0000-0000-7000-8000-000000000001").exit_code == 2
    monkeypatch.delenv("OZ0_BUDGET_KEY")
    done = oz0("check", *ARGUMENTS, "--json")
    assert done.exit_code == 3
    assert rows(done)[-1]["error"]["code"] == "credentials_missing"
    assert journal.asked == []


def test_who_only_looks_at_things_gets_a_key_that_only_does(journal: Journal, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("OZ0_BUDGET_KEY")
    _logins.keep(_logins.Login(journal.url, "login-token", "ada", "home", "2027-01-01T00:00:00+00:00"))
    journal.script["POST tokens"] = [saying("403 No", {"detail": {"code": "not_allowed"}}), None]
    assert oz0("usage", "--project", "research").exit_code == 0
    assert [one.body.get("scope") for one in journal.asked[:2]] == [None, "read_only"]
    journal.script["POST check/batches"] = [saying("403 No", {"detail": {"code": "not_allowed"}})]
    assert oz0("check", *ARGUMENTS).exit_code == 3


def test_a_login_is_traded_once_for_a_pair_that_is_exchanged_and_forgotten_with_it(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.delenv("OZ0_BUDGET_KEY")
    monkeypatch.delenv("OZ0_BUDGET_URL")
    _logins.keep(_logins.Login(journal.url, "login-token", "ada", "home", "2027-01-01T00:00:00+00:00"))
    assert oz0("usage").exit_code == 2  # which project?
    assert oz0("usage", "--project", "nobody's").exit_code == 5
    assert oz0("usage", "--project", "research").exit_code == 0
    traded = journal.asked[-2]
    assert (traded.path, traded.body) == ("tokens", {"project": "research"})
    assert traded.headers["authorization"] == "Bearer login-token"
    assert journal.asked[-1].headers["authorization"] == "Bearer access-1"
    kept = sorted((tmp_path / "config/oz0/budgets").rglob("*.*")) + sorted((tmp_path / "config").rglob("refresh"))
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept if path.is_file()} == {0o600}
    del journal.asked[:]
    journal.script["GET usage"] = [saying("401 Old"), None]
    assert oz0("usage").exit_code == oz0("usage", "--project", "research").exit_code == 0
    assert journal.names == ["GET usage", "POST tokens/refresh", "GET usage", "GET usage"]
    assert journal.asked[-1].headers["authorization"] == "Bearer access-2"
    monkeypatch.setattr("studio.cli._far.ask", lambda *_, **__: type("Said", (), {"ok": True, "status": 200}))
    assert CliRunner().invoke(main, ["logout"]).exit_code == 0
    assert not [path for path in (tmp_path / "config/oz0/budgets").rglob("*") if path.is_file()]


def test_each_project_keeps_its_own_pair_and_two_must_be_told_apart(journal: Journal, monkeypatch: pytest.MonkeyPatch):
    def given(token: str) -> Any:
        pair = {"access_token": token, "refresh_token": f"r-{token}", "expires_in": 900, "project_id": token}
        return saying("200 OK", pair)

    monkeypatch.delenv("OZ0_BUDGET_KEY")
    _logins.keep(_logins.Login(journal.url, "login-token", "ada", "home", "2027-01-01T00:00:00+00:00"))
    journal.script["POST tokens"] = [given("one"), given("two"), saying("401 No")]
    for project in ("one", "two", "one", "two"):
        assert oz0("usage", "--project", project).exit_code == 0
        assert journal.asked[-1].headers["authorization"] == f"Bearer {project}"
    assert journal.count("POST tokens") == 2
    done = oz0("usage")
    assert (done.exit_code, "--project NAME" in done.stderr) == (2, True)


def test_a_key_and_a_project_together_are_a_wrong_call(journal: Journal, tmp_path: Path):
    done = oz0("usage", "--project", "research")
    assert done.exit_code == 2
    assert "OZ0_BUDGET_KEY names one: leave --project out" in " ".join(done.stderr.split())
    assert oz0("usage", "--project", "research", "--key-file", str(tmp_path / "key")).exit_code == 2
    assert journal.asked == []


@pytest.mark.parametrize(("line", "code"), [("401 No", 3), ("500 Broken", 1), ("429 Slow", 1), ("200 OK", 1)])
def test_a_pair_that_is_not_given_is_the_logins_fault_only_where_the_studio_says_so(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, line: str, code: int
):
    monkeypatch.delenv("OZ0_BUDGET_KEY")
    _logins.keep(_logins.Login(journal.url, "login-token", "ada", "home", "2027-01-01T00:00:00+00:00"))
    journal.script["POST tokens"] = [saying(line, {})]
    assert oz0("usage", "--project", "research").exit_code == code


def test_who_logs_in_anew_spends_by_a_new_pair_although_the_one_before_is_dead(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
):
    def logged_in() -> int:
        return CliRunner().invoke(main, ["login", journal.url, "--no-browser"]).exit_code

    monkeypatch.delenv("OZ0_BUDGET_KEY")
    journal.script |= {
        "POST /login/take/": [saying("200 OK", {"token": "login-token", "expires_at": "2027-01-01"})],
        "POST /login/": [saying("200 OK", {"login": "login_1", "code": "1234", "url": journal.url})],
        "GET usage": [None, saying("401 Revoked"), None],
        "POST tokens/refresh": [saying("401 Revoked")],
    }
    assert logged_in() == 0
    assert oz0("usage", "--project", "research").exit_code == 0
    dead = oz0("usage", "--project", "research")
    assert (dead.exit_code, "type oz0 login once more" in dead.stderr) == (3, True)
    assert logged_in() == 0
    assert oz0("usage", "--project", "research").exit_code == 0
    assert journal.count("POST tokens") == 2


@pytest.mark.parametrize("line", ["401 No", "403 No"])
def test_events_that_a_key_keeps_from_being_recorded_end_with_3(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, line: str
):
    event = rows(oz0("confirm", RESERVATION, *ARGUMENTS, "--output-tokens", "1", "--no-record", "--json"))[0]
    kept = event["data"]["recording_retry"]
    journal.script["POST ingest"] = [saying(line)]
    assert oz0("record", "--file", "-", given=kept).exit_code == 3
    monkeypatch.delenv("OZ0_BUDGET_KEY")
    assert oz0("record", "--file", "-", given=kept).exit_code == 3


def test_what_is_no_reservations_id_is_told_before_anything_is_sent(journal: Journal):
    said = oz0("confirm", "res-1", *ARGUMENTS, "--output-tokens", "1")
    assert said.exit_code == 2
    assert "RESERVATION_ID is a UUIDv7" in said.stderr
    assert journal.asked == []


def test_a_confirmation_tells_of_all_that_its_cost_depends_on(journal: Journal):
    given = (*ARGUMENTS, "--output-tokens", "1", "--cached-input-tokens", "4", "--modality", "image")
    assert oz0("confirm", RESERVATION, *given).exit_code == 0
    sent = journal.asked[0].body
    assert (sent["cached_input_tokens"], sent["modality"]) == (4, "image")
    assert journal.asked[1].body["events"][0]["cached_input_tokens"] == 4
    said = oz0("confirm", RESERVATION, *ARGUMENTS, "--output-tokens", "1", "--modality", "smell")
    assert (said.exit_code, "modality" in said.stderr, len(journal.asked)) == (2, True, 2)


def test_a_studios_address_with_something_behind_it_is_refused(journal: Journal):
    for behind in ("/x", "/?a=b"):
        said = oz0("usage", "--studio", f"{journal.url}{behind}")
        assert (said.exit_code, f"write {journal.url}, with nothing" in " ".join(said.stderr.split())) == (1, True)
        with pytest.raises(ValueError, match="with nothing behind it"):
            read_studio(f"{journal.url}{behind}")
    assert journal.asked == []
    assert oz0("usage", "--studio", f"{journal.url}/").exit_code == 0


@pytest.mark.parametrize("change", [{"modality": "txt"}, {"estimated_input_tokens": 10**13}, {"provider": "a\0b"}])
def test_every_check_is_looked_at_before_the_first_is_sent(journal: Journal, change: dict[str, Any]):
    said = oz0("check", "--file", "-", given=[CHECK] * 32 + [CHECK | change])
    assert (said.exit_code, f"check 32: {next(iter(change))}" in said.stderr, journal.asked) == (2, True, [])


def test_of_a_key_file_no_more_is_read_than_a_key_has(tmp_path: Path):
    """One without an end, such as /dev/zero, would be read until memory ends."""
    file = tmp_path / "key"
    with file.open("wb") as out:
        out.truncate(2**24)
    tracemalloc.start()
    try:
        with pytest.raises(NoCredentials, match="no key has"):
            KeyOfEnvironment(file).read()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**20
    file.write_text("k" * 4_096 + "\n")
    assert KeyOfEnvironment(file).read().token == "k" * 4_096
