"""bookshop: a cancelled call cleans up, a `def` that asks stops, and one that never asks does not."""

import asyncio
import json
from pathlib import Path

import pytest
from mcp import Client, MCPError

from tests.examples.serving import called, run, serving, text, until


def journal(home: Path) -> list[str]:
    path = home / "demo" / "bookshop" / "journal.jsonl"
    found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [f"{line['event']} {line['what']}".strip() for line in found]


async def cancelled_once(client: Client, home: Path, seen: str, function: str, **arguments: object) -> None:
    """Call, wait until the journal shows that it is under way, and let the call go."""
    call = asyncio.create_task(called(client, function, **arguments))
    await until(lambda: seen in journal(home))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


@pytest.mark.rule("D5")
def test_a_cancelled_order_gives_the_copy_back_before_it_ends_and_is_not_made(tmp_path: Path):
    async def talk() -> None:
        async with serving("bookshop", tmp_path) as client:
            await cancelled_once(client, tmp_path, "kept Tides", "order_book", title="Tides", payment_takes=300)
            await until(lambda: "given back Tides" in journal(tmp_path))
            assert "ordered Tides" not in journal(tmp_path)
            assert "Tides" in text(await called(client, "search_shelves", word="tides"))

    run(talk)


@pytest.mark.rule("D5")
def test_an_order_left_alone_is_made_and_gives_the_copy_back_too(tmp_path: Path):
    async def talk() -> None:
        async with serving("bookshop", tmp_path) as client:
            assert text(await called(client, "order_book", title="Tides", payment_takes=0)) == "Ordered 'Tides'."
        assert journal(tmp_path) == ["kept Tides", "ordered Tides", "given back Tides"]

    run(talk)


@pytest.mark.rule("D5")
def test_an_order_past_the_clients_limit_gives_the_copy_back(tmp_path: Path):
    async def talk() -> None:
        async with serving("bookshop", tmp_path) as client:
            with pytest.raises(MCPError):
                await client.call_tool("order_book", {"title": "Tides", "payment_takes": 300}, read_timeout_seconds=0.3)
            await until(lambda: "given back Tides" in journal(tmp_path))
            assert "ordered Tides" not in journal(tmp_path)

    run(talk)


@pytest.mark.rule("D5")
def test_a_cancelled_index_stops_between_two_titles_and_opens_the_search_again(tmp_path: Path):
    titles = [f"Title {n}" for n in range(1000)]

    async def talk() -> None:
        async with serving("bookshop", tmp_path) as client:
            await cancelled_once(client, tmp_path, "indexed Title 0", "rebuild_index", titles=titles, seconds_each=0.05)
            await until(lambda: "search open" in journal(tmp_path))
        assert journal(tmp_path)[0] == "search closed"
        assert len(journal(tmp_path)) < 500

    run(talk)


@pytest.mark.rule("D5")
def test_a_def_function_that_never_asks_prints_to_the_last_page_after_the_cancel(tmp_path: Path):
    async def talk() -> None:
        async with serving("bookshop", tmp_path) as client:
            await cancelled_once(client, tmp_path, "printed page 1", "print_catalogue", pages=8, seconds_each=0.1)
            assert "printed page 8" not in journal(tmp_path)
            await until(lambda: "printed page 8" in journal(tmp_path))

    run(talk)


def test_a_search_reports_how_far_it_got(tmp_path: Path):
    async def talk() -> None:
        seen: list[tuple[float, float | None]] = []

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            seen.append((progress, total))

        async with serving("bookshop", tmp_path) as client:
            found = await client.call_tool("search_shelves", {"word": "salt"}, progress_callback=on_progress)
            assert "The Salt Roads (history)" in text(found)
            await until(lambda: len(seen) == 4)
        assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]

    run(talk)
