"""The commands that the pages give: every ```sh block, and every `oz0 …` a page or a template names."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from studio.cli import main
from tests.repo.tree import ROOT, Finding, files

BLOCK: Final = re.compile(r"^```sh\n(?P<text>.+?)\n```$", re.MULTILINE | re.DOTALL)
HEADING: Final = re.compile(r"^## (?P<text>.+)$", re.MULTILINE)
NAMED: Final = re.compile(r"(?:`|<code>)oz0 (?P<words>[^`<]+)(?:`|</code>)|^oz0 (?P<line>.+)$", re.MULTILINE)
WORD: Final = re.compile(r"[a-z][a-z-]*\Z")
TOUR: Final = "A tour in ten minutes"
TUTORIAL: Final = "docs/authors/tutorial.md"
# docs/rules.md says what the product must come to do; what it does is on the other pages.
PROMISES: Final = frozenset({"docs/rules.md"})


@dataclass(frozen=True, slots=True)
class Block:
    """One ```sh block: the page, its line there, the heading it stands under, and the script."""

    place: str
    line: int
    heading: str
    text: str


def blocks(tree: Path) -> list[Block]:
    """Every ```sh block of README.md, CONTRIBUTING.md and the pages below docs/, in their order."""
    return [
        Block(place, text.count("\n", 0, match.start()) + 1, _heading(text, match.start()), match["text"])
        for place, text in _pages(tree)
        for match in BLOCK.finditer(text)
    ]


def tour(tree: Path) -> list[str]:
    """The scripts of the README's tour, in their order."""
    return [block.text for block in blocks(tree) if block.place == "README.md" and block.heading == TOUR]


def script_of(tree: Path, place: str) -> list[str]:
    """The scripts of one page, in their order."""
    return [block.text for block in blocks(tree) if block.place == place]


def run(script: str, folder: Path, *, seconds: float = 100, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a block as a person would type it, in this folder, with this checkout's `oz0` and Python on the path."""
    (folder / "bin").mkdir(exist_ok=True)
    program = folder / "bin/oz0"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m studio.cli "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = ["sh", "-e", "-c", script]
    env = os.environ | {"PATH": path} | more
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=seconds, check=False)


def unknown_words(tree: Path) -> list[Finding]:
    """What pages and templates call `oz0 …` and the command does not have: a subcommand, or an option of one."""
    found = []
    templates = [(path.relative_to(tree).as_posix(), path.read_text()) for path in (tree / "templates").rglob("*.html")]
    for place, text in [*_pages(tree), *templates]:
        if place in PROMISES:
            continue
        for match in NAMED.finditer(text):
            words = (match["words"] or match["line"]).split()
            if wrong := _wrong(words):
                found.append(Finding(place, text.count("\n", 0, match.start()) + 1, wrong))
    return found


def _wrong(words: list[str]) -> str:
    """Why `oz0` would not take these words, empty when it would."""
    command: click.Command = main
    taken = ["oz0"]
    while isinstance(command, click.Group) and words and WORD.match(words[0]):
        under = command.get_command(click.Context(command), words[0])
        if under is None:
            return f"names `{' '.join(taken)} {words[0]}`, which is no command"
        command, taken, words = under, [*taken, words[0]], words[1:]
    options = {option for one in command.params for option in (*one.opts, *one.secondary_opts)} | {"--help", "-h"}
    if command is main:
        options.add("--json")  # said of commands in general
    wrong = next((word for word in words if word.startswith("--") and word.partition("=")[0] not in options), None)
    return f"names {wrong}, which `{' '.join(taken)}` does not take" if wrong else ""


def _heading(text: str, offset: int) -> str:
    above = [match["text"] for match in HEADING.finditer(text, 0, offset)]
    return above[-1] if above else ""


def _pages(tree: Path) -> Iterator[tuple[str, str]]:
    for path in files(tree):
        place = path.relative_to(tree).as_posix()
        if place in {"README.md", "CONTRIBUTING.md", "CHANGELOG.md"} or (
            place.startswith("docs/") and path.suffix == ".md"
        ):
            yield place, path.read_text()
