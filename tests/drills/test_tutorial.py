"""The authors' tutorial, as it is written: from an empty folder to a drilled plugin in a studio, block by block."""

import json
import time
from pathlib import Path

import pytest

from tests.faults.studios import state_folder, studio_in
from tests.repo.docs_commands import TUTORIAL, run, script_of
from tests.repo.tree import ROOT
from tests.waiting import until

LONG = 300  # seconds that one step may take: a drill mostly waits


@pytest.mark.timeout(1200)
@pytest.mark.rule("D1")
@pytest.mark.rule("D2")
def test_the_tutorial_goes_as_it_is_written(tmp_path: Path) -> None:
    """CASES F05, as far as a machine can try it: every command, and how long they take together."""
    new, tested, inspected, own_tests, drilled, lie, up, add, start = script_of(ROOT, TUTORIAL)
    began = time.monotonic()
    assert "wrote shelf" in typed(new, tmp_path)
    assert typed(tested, tmp_path).endswith("malformed lines borne\n0 errors, 0 warnings\n")
    assert "plugin shelf, of 16,000" in typed(inspected, tmp_path)
    typed(own_tests, tmp_path)
    proven = typed(drilled, tmp_path)
    assert " 0 failed" in proven
    assert " 0 not measured" in proven
    assert "repeated                2 effects under one key: its repeat acted again" in typed(lie, tmp_path)

    assert up == "oz0 up"  # as it is, but for the port
    with (
        state_folder(tmp_path / ".oz0") as home,
        studio_in(home, cwd=tmp_path, PYTHONPATH=str(ROOT)) as studio,
    ):
        studio.ready()
        assert "added shelf" in typed(add, tmp_path)
        until(lambda: len(listed(tmp_path)) == 3, "no node listed the new plugin", seconds=LONG)
        assert typed(start, tmp_path).splitlines()[-1] == "1: Buy milk"
    took = time.monotonic() - began
    print(f"the tutorial's commands take {took:.0f} s")  # noqa: T201  a figure that is looked at


def listed(folder: Path) -> list[str]:
    """The functions that the studio of this folder lists of the plugin."""
    tools = json.loads(typed("oz0 catalog --json", folder))["tools"]
    return [one["name"] for one in tools.get("shelf", {"functions": []})["functions"]]


def typed(script: str, folder: Path) -> str:
    """What a person types; what it says."""
    done = run(f"unset OZ0_SECRET_KEY DATABASE_URL REDIS_URL BROKER_URL; {script}", folder, seconds=LONG)
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done.stdout
