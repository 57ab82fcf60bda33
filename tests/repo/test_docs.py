"""The pages are complete and true: what they name is there, and what they promise is written as it was promised."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.repo.docs_pages import broken_links, misnumbered_decisions, unknown_commands, unwritten_settings
from tests.repo.tree import ROOT, Finding, tell

type Check = Callable[[Path], list[Finding]]
CHECKS: tuple[Check, ...] = (broken_links, unknown_commands, unwritten_settings, misnumbered_decisions)
PROMISE = (
    'at most once for plain writes, once per key for writes that honour the key, and an honest "unknown" otherwise.'
)
PAGES = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "docs/architecture.md",
    "docs/machines.md",
    "docs/operating.md",
    "docs/rules.md",
    "docs/states.md",
    "docs/style.md",
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_pages_are_true(check: Check) -> None:
    found = check(ROOT)
    assert not found, tell(found)


@pytest.mark.parametrize("place", PAGES)
def test_every_page_a_newcomer_needs_is_there_and_begins_with_its_title(place: str) -> None:
    assert (ROOT / place).read_text().startswith("# ")


def test_the_readme_makes_the_promise_word_for_word() -> None:
    assert PROMISE in re.sub(r"\s+", " ", (ROOT / "README.md").read_text())


def test_the_first_two_commands_of_the_readme_start_it_and_test_it() -> None:
    commands = re.findall(r"^```sh\n(.+?)\n```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert commands[:2] == ["make run", "make test"]


def test_the_readme_shows_two_pictures_in_its_first_screen_and_each_is_small_and_of_one_width() -> None:
    first = (ROOT / "README.md").read_text().split("\n## ")[0]
    shown = re.findall(r"^!\[(.{20,})\]\((docs/pictures/.+\.png)\)$", first, re.MULTILINE)
    assert len(shown) == 2
    assert {name for _, name in shown} == {f"docs/pictures/{path.name}" for path in (ROOT / "docs/pictures").iterdir()}
    for _, name in shown:
        picture = (ROOT / name).read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert int.from_bytes(picture[16:20]) == 1280  # where a PNG says how wide it is
        assert len(picture) < 200_000


def test_ci_runs_the_readmes_test_command_and_nothing_else() -> None:
    script = ROOT / ".ci" / "run"
    steps = [line for line in script.read_text().splitlines() if line and not line.startswith(("#", "set ", "cd "))]
    assert steps == ["exec make test"]
    assert os.access(script, os.X_OK)


def test_the_architecture_says_where_things_go() -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    assert "## Where does it go?" in page
    rooms = re.search(
        r"^layers =\n((?:    .+\n)+)", (ROOT / ".importlinter").read_text().split("inside-apps]")[1], re.M
    )
    assert rooms
    for room in re.findall(r"[a-z]+", rooms[1]):
        assert room in page or room in {"apps", "migrations"}, f"docs/architecture.md does not say what `{room}` is"


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A small tree whose pages are true."""
    (tmp_path / "docs/decisions").mkdir(parents=True)
    (tmp_path / "studio").mkdir()
    (tmp_path / ".gitignore").write_text(".venv/\n")
    (tmp_path / "Makefile").write_text("help: ## List\nrun: .venv ## Start\n")
    (tmp_path / "README.md").write_text("`make run`, then [read](docs/operating.md#there)\n")
    (tmp_path / "studio/settings.py").write_text('DEBUG = env.bool("OZ0_DEBUG", default=False)\n')
    (tmp_path / "docs/operating.md").write_text("# There\n| variable |\n|---|\n| `OZ0_DEBUG` |\n")
    (tmp_path / "docs/decisions/README.md").write_text("[1](0001-first.md)\n")
    (tmp_path / "docs/decisions/0001-first.md").write_text("# 1. First\n")
    return tmp_path


@pytest.mark.parametrize(
    ("check", "place", "text", "said"),
    [
        (broken_links, "README.md", "[gone](docs/gone.md)\n", "links to docs/gone.md"),
        (broken_links, "README.md", "see `jobs/rules/gone.py`\n", "names jobs/rules/gone.py"),
        (broken_links, "README.md", "![gone](docs/gone.png)\n", "links to docs/gone.png"),
        (broken_links, "README.md", "[there](docs/operating.md#gone)\n", "there is no such heading"),
        (broken_links, "README.md", "[here](#gone)\n# Here\n", "there is no such heading"),
        (broken_links, "README.md", "[1]: https://example\n", "which is no address of a page"),
        (broken_links, "README.md", "[a](https//example.org)\n", "links to https//example.org"),
        (unknown_commands, "README.md", "`make run` and `make gone`\n", "make gone is not in the Makefile"),
        (unknown_commands, "README.md", "nothing\n", "no page says what make run is for"),
        (unwritten_settings, "studio/settings.py", 'X = env.str("OZ0_X")\nD = env.str("OZ0_DEBUG")\n', "OZ0_X is read"),
        (unwritten_settings, "docs/operating.md", "| `OZ0_DEBUG` |\n| `OZ0_X` |\n", "OZ0_X is listed"),
        (misnumbered_decisions, "docs/decisions/0003-third.md", "# 3. Third\n", "should be number 0002"),
        (misnumbered_decisions, "docs/decisions/0001-first.md", "# First\n", "should begin with `# 1. `"),
    ],
)
def test_each_check_sees_its_fault(check: Check, place: str, text: str, said: str, written: Path) -> None:
    assert check(written) == []
    (written / place).write_text(text)
    assert said in tell(check(written))
