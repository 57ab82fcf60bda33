"""Every rule has a number, every marker names a rule, and the page keeps the words it was given."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.repo.rules_report import PAGE, differing, proofs, report, rules, unknown_numbers
from tests.repo.tree import ROOT, tell

OURS = (ROOT / PAGE).read_text()
# The rules as they were agreed on, where that page lies beside the project.
AGREED = ROOT.parent / "shared" / "RULES.md"
MARKED = """
import pytest

pytestmark = pytest.mark.rule("L1")


@pytest.mark.rule("U4", "L2")
def test_one():
    pass


class TestMany:
    @pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.rule("K1"))])
    async def test_two(self, x):
        pass
"""


@pytest.fixture
def tree(tmp_path: Path) -> Callable[[str], Path]:
    """Make a tree with our rules and one test file."""

    def make(test: str) -> Path:
        (tmp_path / "docs").mkdir()
        (tmp_path / "tests").mkdir()
        (tmp_path / ".gitignore").write_text("")
        (tmp_path / PAGE).write_text(OURS)
        (tmp_path / "tests" / "test_x.py").write_text(test)
        return tmp_path

    return make


def test_every_marker_names_a_rule() -> None:
    wrong = unknown_numbers(ROOT)
    assert not wrong, tell(wrong)


def test_make_rules_ends_with_the_count() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.repo.rules_report"], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    count = len(set(proofs(ROOT)) & set(rules(OURS)))
    assert ran.stdout.splitlines()[-1] == f"proven {count} of {len(rules(OURS))}"


def test_a_rule_is_listed_with_its_tests_and_the_others_as_unproven() -> None:
    assert report({"A1": "first", "A2": "second"}, {"A2": ["tests/test_a.py::test_b"]}).splitlines() == [
        "A2  second",
        "      tests/test_a.py::test_b",
        "",
        "not proven yet:",
        "A1  first",
        "",
        "proven 1 of 2",
    ]


def test_markers_are_found_on_tests_classes_parameters_and_files(tree: Callable[[str], Path]) -> None:
    assert proofs(tree(MARKED)) == {
        "L1": ["tests/test_x.py::*"],
        "U4": ["tests/test_x.py::test_one"],
        "L2": ["tests/test_x.py::test_one"],
        "K1": ["tests/test_x.py::TestMany::test_two"],
    }


def test_a_marker_naming_no_rule_is_reported_with_its_place(tree: Callable[[str], Path]) -> None:
    made = tree('import pytest\n@pytest.mark.rule("U99")\ndef test_x(): pass\n')
    assert [str(found) for found in unknown_numbers(made)] == [
        "tests/test_x.py:2: names no rule: U99 is not in docs/rules.md"
    ]


def test_a_marker_whose_number_is_not_written_out_is_reported(tree: Callable[[str], Path]) -> None:
    made = tree('import pytest\nNUMBER = "U4"\n@pytest.mark.rule(NUMBER)\ndef test_x(): pass\n')
    assert [found.line for found in unknown_numbers(made)] == [3]


def test_the_rules_stand_here_word_for_word_as_they_were_agreed_on() -> None:
    different = differing(AGREED.read_text() if AGREED.exists() else OURS, OURS)
    assert not different, f"{PAGE} and {AGREED} differ:\n" + "\n".join(different)


def test_a_changed_and_a_missing_rule_are_told_apart_from_a_new_one() -> None:
    theirs = "- **A1** a call is safe\n- **A2** a call ends\n"
    ours = "- **A1** a call is safe enough\n- **A3** grown here\n"
    assert differing(theirs, ours) == [
        "A1 stands as\n  a call is safe enough\nand there as\n  a call is safe",
        "A2 stands as\n  (not at all)\nand there as\n  a call ends",
    ]


def test_a_number_used_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="A1 stands twice"):
        rules("- **A1** one\n- **A1** two\n")
