"""`oz0 completion`: what a shell that has read its script really completes. Those shells are tried that are here."""

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from studio.cli import main
from tests.repo.tree import ROOT

PATIENCE = 60.0
# How a shell is started bare, and what it reads before its keys are pressed. fish completes for whoever asks.
BARE = {
    "bash": (["bash", "--noprofile", "--norc", "-i"], 'PS1="> "; bind "set enable-bracketed-paste off"'),
    "zsh": (["zsh", "-f", "-i"], 'PS1="> "; autoload -Uz compinit; compinit -u -D; unsetopt zle_bracketed_paste'),
}
HERE = [shell for shell in ("bash", "zsh", "fish") if shutil.which(shell)]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A path with `oz0` on it, and a home with nothing in it."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "oz0"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m studio.cli "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(tmp_path), "TERM": "dumb", "LANG": "C.UTF-8", "INPUTRC": "/dev/null"}


class Terminal:
    """A shell in a terminal, whose keys are pressed."""

    def __init__(self, shell: str, environment: dict[str, str], folder: Path) -> None:
        argv, prepare = BARE[shell]
        ours, theirs = pty.openpty()
        self.keys = ours
        self.process = subprocess.Popen(
            argv, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=folder, start_new_session=True
        )
        os.close(theirs)
        self.shown = ""
        self.type(f'{prepare}; eval "$(oz0 completion {shell})"; echo re""ady\n')
        self.until("\nready")

    def type(self, text: str) -> None:
        os.write(self.keys, text.encode())

    def until(self, text: str) -> str:
        """Everything shown from now on until it holds `text`."""
        seen, limit = "", time.monotonic() + PATIENCE
        while text not in seen:
            assert time.monotonic() < limit, f"no {text!r} in {seen!r}"
            if select.select([self.keys], [], [], 0.2)[0]:
                seen += os.read(self.keys, 4096).decode(errors="replace").replace("\r", "")
        return seen

    def end(self) -> None:
        self.process.kill()
        self.process.wait(10)
        os.close(self.keys)


@pytest.mark.parametrize("shell", [shell for shell in HERE if shell in BARE])
def test_a_key_completes_commands_options_and_their_values(
    shell: str, environment: dict[str, str], tmp_path: Path
) -> None:
    terminal = Terminal(shell, environment, tmp_path)
    try:
        # what is completed is passed to a program that shows its words
        for begun, whole in (
            ("oz0 plug\t", "oz0 plugin"),
            ("oz0 plugin lin\t", "oz0 plugin lint"),
            ("oz0 plugin lint --form\t", "oz0 plugin lint --format"),
            ("oz0 plugin lint --format sar\t", "oz0 plugin lint --format sarif"),
            ("oz0 sign-in\t", "oz0 sign-in-link"),
        ):
            terminal.type(begun)
            terminal.until(whole.rpartition(" ")[2][-4:])
            terminal.type("\x15")  # take the line back
    finally:
        terminal.end()


@pytest.mark.parametrize("shell", HERE)
def test_the_script_is_one_that_its_shell_can_read(shell: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["completion", shell], prog_name="oz0")
    assert done.exit_code == 0
    (tmp_path / "script").write_text(done.output)
    read = subprocess.run([shell, "-n", tmp_path / "script"], capture_output=True, text=True, timeout=60, check=False)
    assert (read.returncode, read.stderr) == (0, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_script_asks_the_program_itself_and_json_carries_it(shell: str) -> None:
    done = CliRunner().invoke(main, ["completion", shell], prog_name="oz0")
    assert "_OZ0_COMPLETE" in done.output
    told = CliRunner().invoke(main, ["completion", shell, "--json"], prog_name="oz0")
    assert json.loads(told.stdout) == {"shell": shell, "script": done.output.removesuffix("\n")}


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("oz0 plugin ", {"add", "inspect", "lint", "new", "test"}),
        ("oz0 completion ", {"bash", "fish", "zsh"}),
        ("oz0 plugin test --only ", {"shop.look", "shop.note"}),
        ("oz0 plugin test --only shop.n", {"shop.note"}),
    ],
)
def test_what_is_completed_is_found_without_django(words: str, found: set[str], tmp_path: Path) -> None:
    functions = [{"name": "look"}, {"name": "note"}]
    (tmp_path / "oz0-listing.json").write_text(json.dumps({"tools": {"shop": {"functions": functions}}}))
    look = "import sys, atexit; atexit.register(lambda: print('read', 'django' in sys.modules))"
    look += "; from studio.cli import main; main(prog_name='oz0')"
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1), "_OZ0_COMPLETE": "bash_complete"}
    done = subprocess.run(
        [sys.executable, "-c", look],
        env=os.environ | asked | {"PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    *said, read = done.stdout.splitlines()
    assert read == "read False"
    assert {line.partition(",")[2] for line in said} >= found


@pytest.mark.parametrize("shell", [shell for shell in HERE if shell == "fish"])
def test_fish_completes_what_it_is_asked(shell: str, environment: dict[str, str], tmp_path: Path) -> None:
    script = "oz0 completion fish | source; complete -C 'oz0 plugin li'; complete -C 'oz0 plugin lint --format s'"
    done = subprocess.run(
        [shell, "--no-config", "-c", script],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert {line.split("\t")[0] for line in done.stdout.splitlines()} == {"lint", "sarif"}, done.stderr
