"""The breaks of `make mutants` fit the tree as it is, and what is named to catch each is there."""

import ast
import json
import shutil
from pathlib import Path

import pytest

from tests.faults.lab.classes import KINDS, SERVERS
from tests.faults.mutants.patches import FOLDER, Mutant, mutants, read, trouble
from tests.repo.tree import ROOT

MUTANTS = mutants()
LEAST = 12


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_break_fits_the_tree(mutant: Mutant) -> None:
    assert trouble(mutant, ROOT) == ""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_what_catches_a_break_is_there(mutant: Mutant) -> None:
    if mutant.trial:
        trial = json.loads(mutant.trial)
        assert trial["server"] in SERVERS and trial["function"] in KINDS
        return
    place, _, name = mutant.caught_by.partition("::")
    tests = {node.name for node in ast.parse((ROOT / place).read_text()).body if isinstance(node, ast.FunctionDef)}
    assert name in tests


def test_there_are_as_many_as_are_promised() -> None:
    assert len(MUTANTS) >= LEAST


def test_a_break_of_code_that_has_changed_is_said_to_fit_no_more(tmp_path: Path) -> None:
    mutant = read(FOLDER / "no_gate.patch")
    copy = tmp_path / "jobs" / "queries" / "locks.py"
    copy.parent.mkdir(parents=True)
    shutil.copy(ROOT / "jobs/queries/locks.py", copy)
    assert trouble(mutant, tmp_path) == ""
    copy.write_text(copy.read_text().replace("FOR SHARE", "FOR KEY SHARE"))
    assert "no_gate.patch does not fit the tree any more" in trouble(mutant, tmp_path)


def test_a_patch_without_its_two_lines_is_refused(tmp_path: Path) -> None:
    (tmp_path / "odd.patch").write_text("What: something\n\ndiff --git a/a b/a\n")
    with pytest.raises(ValueError, match=r"odd\.patch must begin with"):
        read(tmp_path / "odd.patch")
