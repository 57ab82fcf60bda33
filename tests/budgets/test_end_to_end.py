"""The three examples that the budget server was specified by, by a stock client, against the studio's own journal."""

import asyncio
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from mcp import Client

from budgets.rules.words import KeyScope, LimitMode, Period
from studio.cli import main
from tests.budgets.callers import Caller
from tests.budgets.ledgers import a_ledger, an_id, another
from tests.budgets.serving import MODES, fresh, program, said
from tests.served import served

LITERAL = "019a0000-0000-7000-8000-000000000001"  # of a day that is long over
CHECK = {"model": "gpt-4o", "provider": "openai", "estimated_input_tokens": 100}
DEAR = CHECK | {"estimated_input_tokens": 4_000_000, "tags": {"team": "a"}, "agent_run_id": "nightly"}


class Studio:
    """A studio with a project, and what a client needs to ask it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.ledger = a_ledger((Period.DAY, "1", LimitMode.HARD_DENY))
        self.full = Caller(self.ledger, "full")
        self.read_only = Caller(self.ledger, "read", KeyScope.READ_ONLY)
        self.stranger = Caller(another(self.ledger.tenant, name="other"), "other")


@pytest.fixture
def studio(database: object) -> Iterator[Studio]:
    with served() as url:
        yield Studio(url)


def talk(studio: Studio, home: Path, mode: Any, caller: Caller, conversation: Any) -> Any:
    async def whole() -> Any:
        async with asyncio.timeout(100), program(studio, home, mode=mode, OZ0_BUDGET_KEY=caller.token) as client:
            return await conversation(client)

    return asyncio.run(whole())


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    return said(await client.call_tool(tool, arguments))


@pytest.mark.rule("S1")
@pytest.mark.rule("S2")
@pytest.mark.rule("S5")
@pytest.mark.rule("S6")
@pytest.mark.parametrize("mode", MODES)
def test_the_three_examples_go_as_they_are_written_and_the_literal_id_is_gone(
    studio: Studio, mode: Any, tmp_path: Path
):
    """Also CASES J09 and J11: whose id it is, of when, with what; and that an event is the one it was."""
    operation, dear = fresh(), fresh()
    old = str(an_id(studio.ledger, timedelta(hours=24, seconds=1)))
    early = str(an_id(studio.ledger, -timedelta(minutes=5)))

    async def whole(client: Client) -> dict[str, Any]:
        first = await call(client, "budget_check_batch", operation_id=operation, checks=[CHECK], no_record=False)
        assert first["ok"], first
        assert first["data"]["results"][0]["allowed"]
        assert first["recovery"]["items"][0]["reservation_id"]
        turned = dict(reversed(CHECK.items()))
        again = await call(client, "budget_check_batch", operation_id=operation, checks=[turned], no_record=False)
        assert again["data"]["items"] == first["data"]["items"]
        changed = await call(client, "budget_check_batch", operation_id=operation, checks=[CHECK, CHECK])
        assert changed["error"]["code"] == "operation_conflict"
        found = await call(client, "budget_check_batch", operation_id=operation, recover_only=True)
        assert found["data"]["items"] == first["data"]["items"]
        denied = await call(client, "budget_check_batch", operation_id=dear, checks=[DEAR], no_record=True)
        assert denied["data"]["results"][0]["denied_by_period"] == "day"
        kept = denied["data"]["recording_retry"]
        for expected in ("ingested", "deduplicated"):
            told = await call(client, "budget_check_batch", operation_id=dear, record_only=kept)
            assert (told["ok"], told["recovery"]["recording"]) == (True, expected)
        for change in ({"tags": {"team": "b"}}, {"timestamp": "2026-11-30T12:00:00+00:00"}):
            other = [{"index": 0, "event": kept[0]["event"] | change}]
            told = await call(client, "budget_check_batch", operation_id=dear, record_only=other)
            assert (told["error"]["code"], told["recovery"]["recording"]) == ("recording_rejected", "rejected")
        for arguments in ({"checks": [CHECK]}, {"recover_only": True}):
            for over in (LITERAL, old):
                gone = await call(client, "budget_check_batch", operation_id=over, **arguments)
                assert gone["error"]["code"] == "operation_expired"
            for ahead in (early, "ff" + operation[2:]):
                future = await call(client, "budget_check_batch", operation_id=ahead, **arguments)
                assert future["error"]["code"] == "operation_in_future"
        return first

    first = talk(studio, tmp_path, mode, studio.full, whole)

    async def look(client: Client) -> dict[str, Any]:
        return await call(client, "budget_check_batch", operation_id=operation, recover_only=True)

    read = talk(studio, tmp_path, mode, studio.read_only, look)
    assert read["data"]["items"] == first["data"]["items"]
    assert talk(studio, tmp_path, mode, studio.stranger, look)["error"]["code"] == "operation_not_found"


@pytest.mark.rule("S8")
@pytest.mark.rule("S11")
def test_a_reservation_is_confirmed_replayed_and_recorded_and_then_listed(studio: Studio, tmp_path: Path):
    async def whole(client: Client) -> None:
        made = await call(client, "budget_check_batch", operation_id=fresh(), checks=[CHECK | {"agent_run_id": "n"}])
        reservation = made["recovery"]["items"][0]["reservation_id"]
        used = {"reservation_id": reservation, "model": "gpt-4o", "provider": "openai"}
        used |= {"input_tokens": 90, "output_tokens": 12, "agent_run_id": "n"}
        first = await call(client, "budget_confirm", **used)
        assert first["ok"], first
        assert (first["recovery"]["settlement"], first["recovery"]["recording"]) == ("confirmed", "ingested")
        again = await call(client, "budget_confirm", **used, no_record=True)
        assert (again["recovery"]["settlement"], again["recovery"]["recording"]) == ("confirmed", "skipped")
        other = await call(client, "budget_confirm", **(used | {"output_tokens": 13}))
        assert (other["error"]["code"], other["recovery"]["settlement"]) == ("operation_conflict", "unknown")
        told = await call(client, "budget_confirm", record_only=first["data"]["recording_retry"])
        assert (told["recovery"]["settlement"], told["recovery"]["recording"]) == ("not_submitted", "deduplicated")
        usage = await call(client, "usage_list", run="n")
        assert [row["call_id"] for row in usage["data"]["usage"]] == [first["recovery"]["call_id"]]
        run = (await call(client, "runs_list"))["data"]["runs"][0]
        assert (await call(client, "run_find", name="n"))["data"]["run"] == run
        assert (await call(client, "run_find", run_id=run["run_id"]))["data"]["run"]["agent_run_id"] == "n"

    talk(studio, tmp_path, "2026-07-28", studio.full, whole)

    async def denied(client: Client) -> None:
        found = await call(client, "budget_check_batch", operation_id=fresh(), checks=[CHECK])
        assert (found["error"]["code"], found["recovery"]["state"]) == ("not_allowed", "not_submitted")

    talk(studio, tmp_path, "2026-07-28", studio.read_only, denied)


@pytest.mark.rule("W6")
def test_the_command_pages_to_the_end_of_a_real_list(studio: Studio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """More events than a page holds, told in three requests."""
    event = {"instance_id": "sdk", "attempt_index": 0, "status": "success", "model": "gpt-4o", "provider": "openai"}
    for part in range(3):
        studio.full.ingest(
            *(
                event
                | {"call_id": f"c{part}-{row}", "timestamp": f"2026-11-30T12:{part:02}:{row % 60:02}.{row:03}000Z"}
                for row in range(100)
            )
        )
    monkeypatch.setenv("OZ0_BUDGET_KEY", studio.read_only.token)
    done = CliRunner().invoke(main, ["budget", "usage", "--studio", studio.url, "--json"])
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len({row["call_id"] for row in rows}) == len(rows) == 300
