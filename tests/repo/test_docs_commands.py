"""Every command that a page gives is run: here, in an empty folder, or by the test that RUN_ELSEWHERE names."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.repo.docs_commands import TOUR, TUTORIAL, Block, blocks, run, tour, unknown_words
from tests.repo.tree import ROOT, tell

# A make that would call itself, and what needs a network: the test that does the same in another way.
RUN_ELSEWHERE = {
    "make run": "tests/browser/test_demo.py::test_an_approval_waits_with_what_would_run",
    "make test": "tests/repo/test_docs.py::test_ci_runs_the_readmes_test_command_and_nothing_else",
    "make check": "tests/repo/test_docs_commands.py::test_make_knows_how_to_do_what_the_pages_tell_it",
    "oz0 connect": "tests/gateway/test_connect.py::test_what_connect_prints_is_loaded_and_used",
    "pip install .": "tests/faults/test_installed.py::test_it_comes_up_with_the_demo_from_the_packages_own_files",
    "uv pip compile": "tests/repo/test_docs_commands.py::test_the_lock_is_of_the_kind_that_the_page_says_how_to_make",
}
RUN_BY_THE_TUTORIAL = "tests/drills/test_tutorial.py::test_the_tutorial_goes_as_it_is_written"
RUN_BY_THE_TOUR = "tests/browser/test_tour.py::test_the_tour_of_the_readme_goes_as_it_is_written"
ALL = blocks(ROOT)


def elsewhere(block: Block) -> str | None:
    """The test that runs this block, None when it is run here."""
    if block.place == "README.md" and block.heading == TOUR:
        return RUN_BY_THE_TOUR
    if block.place == TUTORIAL:
        return RUN_BY_THE_TUTORIAL
    return next((test for start, test in RUN_ELSEWHERE.items() if block.text.startswith(start)), None)


HERE = [block for block in ALL if elsewhere(block) is None]


def test_the_pages_give_commands_and_the_tour_is_among_them() -> None:
    assert {block.place for block in ALL} >= {"README.md", "CONTRIBUTING.md"}
    assert len(tour(ROOT)) >= 4


def test_each_command_is_run_as_it_is_written(tmp_path: Path) -> None:
    for number, block in enumerate(HERE):
        folder = tmp_path / str(number)
        folder.mkdir()
        done = run(block.text, folder)
        assert done.returncode == 0, f"{block.place}:{block.line}: {done.stdout}{done.stderr}"


def test_a_command_that_fails_is_seen(tmp_path: Path) -> None:
    assert run("oz0 --help | grep -q import", tmp_path).returncode == 0
    assert run("oz0 no-such-command", tmp_path).returncode != 0


def test_make_knows_how_to_do_what_the_pages_tell_it() -> None:
    for block in ALL:
        if block.text.startswith("make "):
            command = [*block.text.split(), "-n", f"VENV={sys.prefix}"]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 0, f"{block.place}:{block.line}: {done.stderr}"
            assert "python -m" in done.stdout, f"{block.place}:{block.line}"


@pytest.mark.parametrize("name", sorted({*RUN_ELSEWHERE.values(), RUN_BY_THE_TOUR, RUN_BY_THE_TUTORIAL}))
def test_what_is_run_elsewhere_is_run_by_a_test_that_is_there(name: str) -> None:
    file, _, test = name.partition("::")
    defined = {
        node.name for node in ast.walk(ast.parse((ROOT / file).read_text())) if isinstance(node, ast.FunctionDef)
    }
    assert test in defined


def test_the_python_that_the_authors_pages_show_is_python() -> None:
    pages = [path.read_text() for path in (ROOT / "docs/authors").glob("*.md")]
    shown = [match for page in pages for match in re.findall(r"^```python\n(.+?)^```$", page, re.MULTILINE | re.DOTALL)]
    assert len(shown) > 5
    for text in shown:
        ast.parse(text)


def test_nothing_stands_in_the_list_that_no_page_gives() -> None:
    for start in RUN_ELSEWHERE:
        assert any(block.text.startswith(start) for block in ALL), start


def test_the_lock_is_of_the_kind_that_the_page_says_how_to_make() -> None:
    page = next(block.text for block in ALL if block.text.startswith("uv pip compile"))
    lock = (ROOT / "requirements.lock").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    for name in wanted:
        bare = name.lower().split(">")[0].split("[")[0].split("=")[0].strip()
        assert f"\n{bare}==" in f"\n{lock}", (
            f"{name} is not in requirements.lock: make it again as CONTRIBUTING.md says"
        )
    assert "--generate-hashes" in page
    assert lock.count("==") <= lock.count("--hash=sha256:")
    for option, absent in (
        ("--no-emit-index-url", "--index-url"),
        ("--no-header", "# This file"),
        ("--no-annotate", "# via"),
    ):
        assert option in page
        assert absent not in lock


def test_the_pages_name_only_what_the_command_has() -> None:
    found = unknown_words(ROOT)
    assert not found, tell(found)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("`oz0 plugin gone FOLDER`", "names `oz0 plugin gone`, which is no command"),
        ("`oz0 gone`", "names `oz0 gone`, which is no command"),
        ("`oz0 up --gone`", "names --gone, which `oz0 up` does not take"),
        ("```sh\noz0 import --gone\n```", "names --gone, which `oz0 import` does not take"),
    ],
)
def test_a_name_the_command_does_not_have_is_seen(said: str, told: str, tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("")
    (tmp_path / "README.md").write_text(f"`oz0 up --demo`, `oz0 import FILE`\n{said}\n")
    assert told in tell(unknown_words(tmp_path))
