"""What a person can change is in the audit log, and a view that forgets is seen."""

from pathlib import Path

import pytest

from tests.repo.audited import ELSEWHERE, unaudited
from tests.repo.tree import ROOT, tell

VIEW = """
from base import db
from tenants.operations import audit
def forgets(request): _change()
def notes(request):
    _change()
    _note()
def reads(request): return request
def _change():
    with db.write(1): pass
def _note(): audit.record(1, 2, 3)
"""

COMMAND = """
import click
from jobs.views.odd import _change
@click.command()
def break_it(): _change()
"""


@pytest.mark.rule("A12")
def test_every_page_and_command_that_changes_something_notes_it() -> None:
    found = unaudited(ROOT)
    assert not found, tell(found)


def test_what_is_noted_elsewhere_is_still_there() -> None:
    for name in ELSEWHERE:
        module, _, function = name.rpartition(".")
        assert f"def {function}(" in (ROOT / f"{module.replace('.', '/')}.py").read_text(), name


@pytest.mark.rule("A12")
def test_a_view_that_forgets_is_seen_and_one_that_notes_is_not(tmp_path: Path) -> None:
    for place, text in {
        ".gitignore": "",
        "studio/urls.py": "from jobs.views import odd\nurls = [odd.forgets, odd.notes, odd.reads]",
        "studio/cli/break_it.py": COMMAND,
        "jobs/views/odd.py": VIEW,
    }.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(text)
    found = {finding.what.split("`")[1] for finding in unaudited(tmp_path)}
    assert found == {"studio.cli.break_it.break_it", "jobs.views.odd.forgets"}
