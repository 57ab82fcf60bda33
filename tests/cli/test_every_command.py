"""What holds for each command of `oz0`, whichever it is (CASES I07)."""

import json
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from studio.cli import main
from tests.cli.commands import LEAVES, every_command, typed
from tests.repo.tree import ROOT

ALL = dict(every_command())
LOGS = {"web", "node"}  # what they print is their log
NOWHERE = {
    "DATABASE_URL": "postgres://oz0_app:x@127.0.0.1:9/oz0",
    "DATABASE_OWNER_URL": "postgres://oz0_owner:x@127.0.0.1:9/oz0",
    "REDIS_URL": "redis://127.0.0.1:9/0",
    "OZ0_SECRET_KEY": "x" * 50,
}
MORE = {"set-password": ["--password", "long enough by far"], "completion": ["bash"]}


def exits_told(help_text: str) -> set[int]:
    """The codes that a help text lists."""
    section = help_text.partition("Exit code")[2].partition("Examples:")[0]
    return {int(code) for code in re.findall(r"(?<![\w.])([0-9])(?:  |: )", section)}


@pytest.mark.parametrize("words", ALL)
def test_its_help_says_what_it_does_how_it_ends_and_how_it_is_called(words: str) -> None:
    done = CliRunner().invoke(main, [*words.split(), "--help"], prog_name="oz0")
    assert done.exit_code == 0
    shown = done.output.partition("Examples:")[2].split("\n\n")[0].splitlines()
    assert [line for line in shown if "oz0 " in line], "no example"
    assert all(len(line) <= 100 for line in done.output.splitlines())
    if words in LEAVES:
        assert {0, 2} <= exits_told(done.output)


@pytest.mark.parametrize("words", LEAVES)
def test_each_of_its_examples_is_a_call_that_it_takes(words: str) -> None:
    for line in getattr(LEAVES[words], "examples", ()):
        found = re.search(r"""(?:^|[\s"(])oz0 (.+)""", line)
        assert found, line
        call = found[1]
        assert call.startswith(words), line
        options = re.findall(r"(?<!\S)--[a-z-]+", call.partition(" > ")[0])
        known = {option for one in LEAVES[words].params for option in (*one.opts, *one.secondary_opts)}
        assert set(options) <= known, line


@pytest.mark.parametrize("words", LEAVES)
def test_the_page_of_the_command_has_it_with_its_exit_codes(words: str) -> None:
    page = (ROOT / "docs/cli.md").read_text()
    row = re.search(rf"^\| `oz0 {words}` \| .+ \| ([0-9, ]+) \|$", page, re.MULTILINE)
    assert row, f"docs/cli.md has no row for `oz0 {words}`"
    done = CliRunner().invoke(main, [*words.split(), "--help"], prog_name="oz0")
    assert {int(code) for code in row[1].split(", ")} == exits_told(done.output)


@pytest.mark.parametrize("words", ALL)
def test_a_wrong_call_ends_with_2_and_a_sentence(words: str) -> None:
    done = CliRunner().invoke(main, [*words.split(), "--no-such-option"], prog_name="oz0")
    assert done.exit_code == 2
    assert done.stdout == ""
    assert "No such option '--no-such-option'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", LEAVES)
def test_every_command_but_those_that_log_speaks_json(words: str) -> None:
    options = {option for one in LEAVES[words].params for option in one.opts}
    assert ("--json" in options) == (words not in LOGS)


@pytest.mark.parametrize("words", sorted(set(LEAVES) - LOGS - {"plugin new"}))
def test_without_a_studio_json_alone_comes_to_standard_output_and_no_traceback_anywhere(
    words: str, tmp_path: Path
) -> None:
    arguments = []
    for one in LEAVES[words].params:
        if isinstance(one, click.Argument) and words not in MORE:
            arguments.append(str(tmp_path / "nothing") if isinstance(one.type, click.Path) else "nothing")
    if words == "up":
        (tmp_path / "home").write_text("a file, where a folder is to be")
    done = typed(*words.split(), *arguments, *MORE.get(words, ()), "--json", cwd=tmp_path, **NOWHERE)
    assert "Traceback" not in done.stderr + done.stdout
    told = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode == 2:
        assert told == []
    else:
        assert told, done.stderr
    if done.returncode != 0 and words != "status":
        assert done.stderr.strip()
    assert done.returncode in {0, 1, 2, 3}
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (["upp"], "'up'"),
        (["plugin", "lnt"], "'lint'"),
        (["jobs", "strat"], "'start'"),
        (["lint"], "'plugin lint'"),
        (["plugin", "lint", "--formt", "json"], "'--format'"),
        (["sign-in-lnk"], "'sign-in-link'"),
    ],
)
def test_a_mistyped_word_is_told_with_the_one_it_may_be_meant_for(call: list[str], meant: str) -> None:
    done = CliRunner().invoke(main, call, prog_name="oz0")
    assert done.exit_code == 2
    assert f"Did you mean {meant}?" in done.stderr


def test_a_reader_that_has_gone_is_no_mistake(tmp_path: Path) -> None:
    script = f"cd {ROOT} && {{ {sys.executable} -m studio.cli plugin --help; echo $? >{tmp_path}/code; }} | true"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    assert (tmp_path / "code").read_text().strip() in {"0", "1"}  # whether it had printed before its reader went


def test_a_place_that_cannot_be_written_is_told_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = CliRunner().invoke(main, ["plugin", "new", "shelf", "--dir", str(tmp_path / "file" / "shelf"), "--json"])
    assert done.exit_code == 1
    assert "fix: " in done.stderr
    assert str(tmp_path / "file") in json.loads(done.stdout)["error"]


def test_help_comes_at_once_and_reads_no_django() -> None:
    look = "import sys; from studio.cli import main; main(['--help'], standalone_mode=False)"
    look += (
        "; print(sorted(n for n in ('django', 'celery', 'mcp', 'psycopg', 'yaml', 'watchfiles') if n in sys.modules))"
    )
    command = [sys.executable, "-c", f"import time\n{look}\nprint(time.process_time())"]
    took = []
    for _ in range(3):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
        read, seconds = done.stdout.splitlines()[-2:]
        assert read == "[]"
        took.append(float(seconds))
    assert min(took) < 1  # 0.2 where two cores are shared by many; reading Django alone would be more
