"""everything: the public reference server, fetched by npm as it is pinned, or left out in one sentence."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from catalog.rules.kinds import traits_of
from studio import example_programs
from tests.examples.serving import EXAMPLES, plugin, run, serving

PINS = json.loads((EXAMPLES / "everything" / "package-lock.json").read_text())


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH of the test's own, with a node that does nothing."""
    folder = tmp_path / "programs"
    folder.mkdir()
    _program(folder / "node", "exit 0")
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setattr(shutil, "which", lambda name: str(folder / name) if (folder / name).exists() else None)
    return folder


def _program(file: Path, script: str) -> None:
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def missing(home: Path) -> str:
    return example_programs.fetch("everything", examples=EXAMPLES, home=home)


def test_without_npm_it_says_what_to_install(programs: Path, tmp_path: Path) -> None:
    assert missing(tmp_path) == "install Node.js with npm to see it"
    assert not (tmp_path / "demo").exists()


def test_what_npm_cannot_fetch_is_told_in_its_own_words_and_tried_again(programs: Path, tmp_path: Path) -> None:
    _program(programs / "npm", 'echo "npm error network is down" >&2; exit 1')
    assert missing(tmp_path) == "npm could not fetch its server: network is down"
    _program(programs / "npm", "mkdir -p node_modules && echo {} > node_modules/.package-lock.json")
    assert missing(tmp_path) == ""


def test_what_was_fetched_is_not_fetched_again(programs: Path, tmp_path: Path) -> None:
    _program(
        programs / "npm", f"echo x >> {tmp_path}/runs; mkdir -p node_modules; touch node_modules/.package-lock.json"
    )
    assert [missing(tmp_path) for _ in range(2)] == ["", ""]
    assert (tmp_path / "runs").read_text() == "x\n"


def test_everything_it_needs_is_pinned_by_its_content_and_by_no_address() -> None:
    packages = {name: entry for name, entry in PINS["packages"].items() if name}
    assert len(packages) > 50
    assert all(entry["integrity"].startswith("sha512-") for entry in packages.values())
    assert not [name for name, entry in packages.items() if "resolved" in entry]


def test_its_long_operation_says_that_it_only_reads_and_reports_each_step_or_it_says_why_it_is_not_here(
    tmp_path: Path,
) -> None:
    why = missing(tmp_path)
    assert why == "" or why.startswith(("npm ", "install Node.js")), why
    if why:
        return
    (agent,) = plugin("everything").agents
    (call,) = agent.rehearsal[0].calls
    heard: list[tuple[float, float | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total))

    async def talk() -> None:
        async with serving("everything", tmp_path) as client:
            assert isinstance(client, Client)
            entry = next(tool for tool in (await client.list_tools()).tools if tool.name == call.function)
            told: dict[str, Any] = entry.annotations.model_dump(by_alias=True) if entry.annotations else {}
            assert traits_of(told, {}, trusted=True).retry_safe  # so the studio asks for progress (RULES P1)
            await client.call_tool(call.function, {"duration": 0.2, "steps": 4}, progress_callback=note)

    run(talk)
    assert heard == [(1, 4), (2, 4), (3, 4), (4, 4)]
