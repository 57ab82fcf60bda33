"""repo: the public git server as it is, on the demo's repository."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from catalog.rules.kinds import Kind, kind_of
from tests.examples.serving import EXAMPLES, called, run, serving, text

SCRIPT = EXAMPLES / "repo" / "make_demo_repo.py"


def git(repo: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", repo, *words], check=True, capture_output=True, text=True, timeout=20).stdout


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "demo" / "repo"
    subprocess.run([sys.executable, SCRIPT, folder], check=True, timeout=20)
    return folder


def test_the_demo_repository_is_made_once_and_has_a_change_to_commit(repo: Path):
    assert git(repo, "log", "--format=%s").split("\n")[:-1] == ["Begin"]
    assert git(repo, "status", "--porcelain") == " M CHANGES.md\n"
    head = git(repo, "rev-parse", "HEAD")
    subprocess.run([sys.executable, SCRIPT, repo], check=True, timeout=20)
    assert git(repo, "rev-parse", "HEAD") == head
    assert [path.name for path in repo.parent.iterdir()] == ["repo"]


def test_its_reset_says_that_it_is_destructive_and_its_other_writes_that_they_only_add(repo: Path, tmp_path: Path):
    async def talk() -> None:
        async with serving("repo", tmp_path) as client:
            listed = (await client.list_tools()).tools
        kinds = {
            tool.name: kind_of(
                tool.annotations.model_dump(by_alias=True, exclude_none=True) if tool.annotations else {}
            )
            for tool in listed
        }
        assert [name for name, kind in kinds.items() if kind is Kind.DESTRUCTIVE] == ["git_reset"]
        assert {name for name, kind in kinds.items() if kind is Kind.WRITE} == {
            *("git_add", "git_commit", "git_create_branch", "git_checkout"),
        }
        assert Kind.UNDECLARED not in kinds.values()

    run(talk)


def test_the_clerks_job_commits_stages_and_resets_as_often_as_one_likes(repo: Path, tmp_path: Path):
    where: dict[str, Any] = {"repo_path": str(repo)}

    async def talk() -> None:
        async with serving("repo", tmp_path) as client:
            for round_number in (1, 2):
                assert "staged successfully" in text(await called(client, "git_add", **where, files=["CHANGES.md"]))
                message = f"Note change {round_number}"
                assert "committed" in text(await called(client, "git_commit", **where, message=message))
                assert git(repo, "log", "-1", "--format=%s").strip() == message
                await called(client, "git_add", **where, files=["CHANGES.md"])
                assert git(repo, "diff", "--cached", "--name-only") == "CHANGES.md\n"
                await called(client, "git_reset", **where)
                assert git(repo, "diff", "--cached", "--name-only") == ""
                assert git(repo, "status", "--porcelain") == " M CHANGES.md\n"

    run(talk)


def test_the_server_keeps_to_the_one_repository(repo: Path, tmp_path: Path):
    async def talk() -> None:
        async with serving("repo", tmp_path) as client:
            result = await called(client, "git_status", repo_path=str(tmp_path))
        assert result.is_error
        assert "outside the allowed repository" in text(result)

    run(talk)
