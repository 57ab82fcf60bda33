"""`oz0 plugin inspect` and `oz0 plugin lint`, on the examples and on what is broken."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from catalog.rules.estimates import METHOD
from studio.cli.plugin import plugin
from tests.examples.serving import EXAMPLES


@pytest.fixture
def billing(tmp_path: Path) -> Path:
    """A copy of the example that has an agent over its budget on purpose."""
    return Path(shutil.copytree(EXAMPLES / "billing", tmp_path / "billing"))


def oz0(*words: object) -> Result:
    return CliRunner().invoke(plugin, [str(word) for word in words], catch_exceptions=False)


@pytest.mark.rule("T1")
@pytest.mark.rule("T3")
@pytest.mark.rule("T5")
def test_inspect_measures_and_lint_reads_what_it_kept_without_starting_a_server(billing: Path) -> None:
    inspected = oz0("inspect", billing, "--json")
    assert inspected.exit_code == 0, inspected.output
    costs = json.loads(inspected.stdout)
    assert costs["method"] == METHOD
    assert costs["tokens"] == sum(costs["functions"].values()) > 300
    assert costs["agents"]["know-it-all"]["over"]
    assert not costs["agents"]["auditor"]["over"]
    (billing / "billing_server.py").rename(billing / "billing_server.gone")  # nothing could be started now
    linted = oz0("lint", billing, "--json")
    assert linted.exit_code == 1
    found = {one["code"]: one for one in json.loads(linted.stdout)["findings"]}
    assert set(found) == {"listing.old", "tools.budget"}
    assert found["tools.budget"]["file"] == "agents/know-it-all.yaml"
    words = oz0("lint", billing)
    assert words.exit_code == 1
    assert "error[tools.budget]: agents/know-it-all.yaml: limits.tool_tokens: agent know-it-all" in words.output
    assert "1 error, 1 warning" in words.output


@pytest.mark.rule("T5")
def test_lint_without_a_listing_says_so_and_is_no_error(billing: Path) -> None:
    linted = oz0("lint", billing)
    assert linted.exit_code == 0
    assert "there is no measured listing, so names and token budgets were not checked" in linted.output


def test_a_server_that_does_not_start_is_named_with_what_it_said(billing: Path) -> None:
    (billing / "billing_server.py").write_text("raise SystemExit('no ledger today')")
    inspected = oz0("inspect", billing)
    assert inspected.exit_code == 4
    assert "not listed: billing" in inspected.stderr
    assert "no ledger today" in inspected.stderr


@pytest.mark.parametrize("words", [("inspect",), ("lint",), ("lint", "--json")])
def test_files_that_cannot_be_read_are_named_with_the_fix(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "oz0-plugin.yaml").write_text("name: shop\nversion: 1\n")
    done = oz0(*words, tmp_path)
    assert done.exit_code == 3
    assert "fix" in done.stdout + done.stderr


def test_a_damaged_listing_is_told(billing: Path) -> None:
    (billing / "oz0-listing.json").write_text("{}")
    done = oz0("lint", billing)
    assert done.exit_code == 3
    assert "oz0-listing.json: it is not of format 1" in done.stderr
