"""The authors' tutorial, as it is written: from an empty folder to a drilled plugin, one block after the other.

What it then does in a studio (`oz0 up`, adding a plugin, starting a job) is run with the README's tour.
"""

from pathlib import Path

import pytest

from tests.repo.docs_commands import TUTORIAL, run, script_of
from tests.repo.tree import ROOT

LONG = 300  # seconds that one step may take: a drill mostly waits


@pytest.mark.timeout(900)
@pytest.mark.rule("D1")
@pytest.mark.rule("D2")
def test_the_tutorial_goes_as_it_is_written(tmp_path: Path) -> None:
    new, tested, inspected, own_tests, drilled, lie, *_in_a_studio = script_of(ROOT, TUTORIAL)
    assert "wrote shelf" in typed(new, tmp_path)
    assert typed(tested, tmp_path) == "0 errors, 0 warnings\n"
    assert "plugin shelf, of 16,000" in typed(inspected, tmp_path)
    typed(own_tests, tmp_path)
    proven = typed(drilled, tmp_path)
    assert " 0 failed" in proven
    assert " 0 not measured" in proven
    assert "repeated                2 effects under one key: its repeat acted again" in typed(lie, tmp_path)


def typed(script: str, folder: Path) -> str:
    """What a person types; what it says."""
    done = run(script, folder, seconds=LONG)
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done.stdout
