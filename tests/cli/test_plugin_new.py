"""`oz0 plugin new`: what it writes keeps every promise at once."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from base.folders import files_of
from catalog.rules.agents import fill_turn
from catalog.rules.frames import FRAMES
from catalog.rules.grants import Name, granted
from catalog.rules.kinds import Kind, traits_of
from catalog.rules.listing_file import read
from catalog.rules.plugins import read_plugin
from catalog.rules.schemas import misfit
from catalog.rules.templates import Values
from studio.cli.plugin import plugin


def oz0(*words: object) -> Result:
    return CliRunner().invoke(plugin, [str(word) for word in words], catch_exceptions=False)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new plugin."""
    folder = tmp_path_factory.mktemp("new") / "shelf"
    done = oz0("new", "acme-shelf", "--dir", folder)
    assert done.exit_code == 0, done.output
    return folder


@pytest.mark.rule("D1")
def test_a_new_plugin_is_clean_and_says_of_every_function_what_it_does(shelf: Path) -> None:
    tested = oz0("test", shelf, "--strict")
    borne, counted = tested.output.splitlines()
    assert (tested.exit_code, counted) == (0, "0 errors, 0 warnings")
    assert borne.endswith(f"{len(FRAMES)} of {len(FRAMES)} malformed lines borne")
    functions = read((shelf / "oz0-listing.json").read_bytes()).tools["acme_shelf"]
    traits = {one.name: traits_of(one.annotations, one.meta) for one in functions}
    assert {name: one.kind for name, one in traits.items()} == {
        "find_entries": Kind.READ,
        "add_entry": Kind.WRITE,
        "import_entries": Kind.WRITE,
    }
    assert {name for name, one in traits.items() if one.honours_key and one.retry_safe} == {"add_entry"}
    assert all(len(one.annotations) >= 4 for one in functions)


def test_every_call_of_the_agent_of_a_new_plugin_is_granted_and_fits_its_schema(shelf: Path) -> None:
    if not (shelf / "oz0-listing.json").exists():
        oz0("test", shelf)
    schemas = {
        one.name: one.input_schema for one in read((shelf / "oz0-listing.json").read_bytes()).tools["acme_shelf"]
    }
    (agent,) = read_plugin(files_of(shelf)).agents
    for turn in agent.rehearsal:
        for call in fill_turn(turn, Values(defaults=agent.input, results=["read"] * 9, last="read")).calls:
            assert Name(call.tool, call.function) in granted(
                agent.functions, [Name("acme_shelf", one) for one in schemas]
            )
            assert misfit(call.arguments, schemas[call.function]) is None


@pytest.mark.rule("D1")
def test_the_tests_of_a_new_plugin_pass_at_once(shelf: Path) -> None:
    command = [sys.executable, "-W", "error", "-m", "unittest", "discover", "tests"]
    done = subprocess.run(command, cwd=shelf, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Ran 7 tests" in done.stderr


@pytest.mark.parametrize("name", ["9lives", "a b", "oz", "a--b", "", "x" * 60, "../up", "a__b"])
def test_a_name_that_plugin_tool_and_modules_cannot_all_have_is_refused(name: str, tmp_path: Path) -> None:
    done = oz0("new", name, "--dir", tmp_path / "new")
    assert done.exit_code == 2
    assert not (tmp_path / "new").exists()


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    assert oz0("new", "shelf", "--dir", tmp_path).exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_it_tells_a_program_what_it_wrote(tmp_path: Path) -> None:
    done = oz0("new", "shelf", "--dir", tmp_path / "shelf", "--json")
    told = json.loads(done.stdout)
    assert sorted(told["files"]) == sorted(
        path.relative_to(tmp_path / "shelf").as_posix() for path in (tmp_path / "shelf").rglob("*") if path.is_file()
    )
    assert not any("@" in text for text in told["files"])


def test_no_command_of_a_plugin_reads_django() -> None:
    look = "import sys; from studio.cli import main\ntry: main(sys.argv[1:])\nexcept SystemExit: pass\n"
    look += "print([name for name in ('django', 'celery', 'mcp', 'psycopg') if name in sys.modules])"
    for words in (["plugin", "--help"], ["plugin", "lint", "examples/billing"], ["plugin", "new", "a b"]):
        done = subprocess.run([sys.executable, "-c", look, *words], capture_output=True, text=True, timeout=60)
        assert done.stdout.splitlines()[-1] == "[]", words
