"""billing: what its functions say, one effect for one key, a note that outlives its server, and a busy service."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError

from catalog.rules.kinds import Kind, traits_of
from tests.examples.serving import called, run, serving, text, until

CHARGE = {"account": "A-77", "order_id": "o-1", "amount": 4200}


def lines(home: Path, file: str = "ledger.jsonl") -> list[dict[str, Any]]:
    path = home / "demo" / "billing" / file
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def drill(home: Path, **wanted: Any) -> None:
    path = home / "demo" / "billing" / "drill.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(wanted))


async def charged(client: Client, key: str, **changed: Any) -> str:
    return text(await called(client, "charge", key, **(CHARGE | changed)))


def test_every_function_says_what_it_does_but_the_one_left_out_on_purpose(tmp_path: Path):
    async def talk() -> None:
        async with serving("billing", tmp_path) as client:
            listed = (await client.list_tools()).tools
        traits = {
            tool.name: traits_of(
                tool.annotations.model_dump(by_alias=True, exclude_none=True) if tool.annotations else {},
                tool.meta or {},
            )
            for tool in listed
        }
        assert {name: found.kind for name, found in traits.items()} == {
            "charge": Kind.WRITE,
            "note": Kind.WRITE,
            "refund": Kind.DESTRUCTIVE,
            "balance": Kind.READ,
            "list_ledger": Kind.READ,
            "export_ledger": Kind.UNDECLARED,
        }
        assert {name for name, found in traits.items() if found.retry_safe} == {"charge", "balance", "list_ledger"}
        assert {name for name, found in traits.items() if found.honours_key} == {"charge"}

    run(talk)


def test_a_key_seen_before_is_answered_from_its_line_also_after_a_restart(tmp_path: Path):
    async def talk() -> None:
        async with serving("billing", tmp_path) as client:
            first = await charged(client, "job_1/1")
            again = await charged(client, "job_1/1")
            other = await charged(client, "job_1/2")
        async with serving("billing", tmp_path) as client:
            restarted = await charged(client, "job_1/1")
        assert first == again == restarted
        assert first != other
        assert [line["key"] for line in lines(tmp_path)] == ["job_1/1", "job_1/2"]

    run(talk)


def test_a_key_used_with_other_arguments_is_refused_and_nothing_is_done(tmp_path: Path):
    """CASES R11."""

    async def talk() -> None:
        async with serving("billing", tmp_path) as client:
            await charged(client, "job_1/1")
            result = await called(client, "charge", "job_1/1", **(CHARGE | {"amount": 1}))
        assert result.is_error
        assert "used for another call" in text(result)
        assert len(lines(tmp_path)) == 1

    run(talk)


def test_two_servers_given_one_key_at_the_same_moment_charge_once(tmp_path: Path):
    async def talk() -> None:
        drill(tmp_path, wait_before=0.2)
        async with serving("billing", tmp_path) as one, serving("billing", tmp_path) as two:
            calls = [charged(client, f"job_1/{n}") for client in (one, two) for n in range(5)]
            answers = await asyncio.gather(*calls)
        assert answers[:5] == answers[5:]
        assert sorted(line["key"] for line in lines(tmp_path)) == [f"job_1/{n}" for n in range(5)]

    run(talk)


def test_a_line_cut_off_by_a_crash_was_not_done_and_does_not_spoil_the_next(tmp_path: Path):
    async def talk() -> None:
        async with serving("billing", tmp_path) as client:
            await charged(client, "job_1/1")
            with (tmp_path / "demo" / "billing" / "ledger.jsonl").open("a") as ledger:
                ledger.write('{"effect": "charge", "key": "job_1/2", "am')
            await charged(client, "job_1/2")
        assert [line["key"] for line in lines(tmp_path)] == ["job_1/1", "job_1/2"]

    run(talk)


def test_a_note_told_to_kills_its_server_once_it_is_written_and_is_written_again_when_run_again(tmp_path: Path):
    note = {"account": "A-77", "text": "October closed", "drill": "die_after_write"}

    async def dies() -> None:
        async with serving("billing", tmp_path) as client:
            with pytest.raises(MCPError, match="Connection closed"):
                await called(client, "note", "job_1/6", **note)
        assert [line["text"] for line in lines(tmp_path)] == ["October closed"]

    async def is_run_again() -> None:
        async with serving("billing", tmp_path) as client:
            assert "Noted about A-77" in text(await called(client, "note", "job_1/6", **note))
        assert [line["key"] for line in lines(tmp_path)] == ["job_1/6", "job_1/6"]

    run(dies)
    run(is_run_again)


@pytest.mark.parametrize("wait", [2, 0.5, None])
def test_a_busy_service_says_so_with_its_wait_and_does_nothing(tmp_path: Path, wait: float | None):
    async def talk() -> None:
        drill(tmp_path, functions=["charge"], busy={"calls": 2} | ({} if wait is None else {"retry_after": wait}))
        async with serving("billing", tmp_path) as client:
            spared = await called(client, "balance", account="A-77")
            busy = [await called(client, "charge", "job_1/1", **CHARGE) for _ in range(2)]
            then = await called(client, "charge", "job_1/1", **CHARGE)
        assert not spared.is_error
        for result in busy:
            assert result.is_error
            assert result.meta is not None
            assert result.meta["oz0/retryable"] is True
            assert result.meta.get("oz0/retry_after") == wait
        assert not then.is_error
        assert len(lines(tmp_path)) == 1
        assert [line["function"] for line in lines(tmp_path, "calls.jsonl")] == ["balance", *["charge"] * 3]

    run(talk)


def test_a_call_can_be_held_before_and_after_its_effect(tmp_path: Path):
    async def talk() -> None:
        async with serving("billing", tmp_path) as client:
            drill(tmp_path, functions=["charge"], wait_before=600)
            before = asyncio.create_task(charged(client, "job_1/1"))
            await until(lambda: len(lines(tmp_path, "calls.jsonl")) == 1)
            assert "0.00" in text(await called(client, "balance", account="A-77"))
            drill(tmp_path, functions=["charge"], wait_after=600)
            after = asyncio.create_task(charged(client, "job_1/2"))
            await until(lambda: len(lines(tmp_path)) == 1)
            assert "42.00" in text(await called(client, "balance", account="A-77"))
            assert not before.done()
            assert not after.done()
            for task in (before, after):
                task.cancel()
            await asyncio.gather(before, after, return_exceptions=True)

    run(talk)


def test_refunds_balance_and_export_agree_with_the_ledger(tmp_path: Path):
    async def talk() -> None:
        async with serving("billing", tmp_path) as client:
            await charged(client, "job_1/1")
            await called(client, "refund", "job_1/2", order_id="o-1", amount=1200)
            too_much = await called(client, "refund", "job_1/3", order_id="o-1", amount=3001)
            assert too_much.is_error
            assert "only 30.00 is left" in text(too_much)
            assert text(await called(client, "balance", account="A-77")) == "Account A-77 stands at 30.00."
            assert "refund A-77 o-1 12.00" in text(await called(client, "list_ledger"))
            assert "2 lines" in text(await called(client, "export_ledger"))
        assert len((tmp_path / "demo" / "billing" / "export.csv").read_text().splitlines()) == 3

    run(talk)
