"""`oz0 plugin inspect`, `lint` and `test`, on the examples and on what is broken."""

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

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
    assert set(found) == {"listing.old", "tools.budget", "tools.undeclared", "tools.annotations"}
    assert found["tools.budget"]["file"] == "agents/know-it-all.yaml"
    words = oz0("lint", billing)
    assert words.exit_code == 1
    assert "error[tools.budget]: agents/know-it-all.yaml:7: limits.tool_tokens: agent know-it-all" in words.output
    assert "1 error, 3 warnings" in words.output


@pytest.mark.rule("T5")
def test_lint_without_a_listing_says_so_and_is_no_clean_end(billing: Path) -> None:
    linted = oz0("lint", billing)
    assert linted.exit_code == 3
    assert "there is no measured listing, so names and token budgets were not checked" in linted.output


def test_a_server_that_does_not_start_is_named_with_what_it_said(billing: Path) -> None:
    (billing / "billing_server.py").write_text("raise SystemExit('no ledger today')")
    inspected = oz0("inspect", billing)
    assert inspected.exit_code == 4
    assert "not listed: billing" in inspected.stderr
    assert "no ledger today" in inspected.stderr


@pytest.mark.parametrize(("words", "code"), [(("inspect",), 3), (("lint",), 1), (("lint", "--json"), 1)])
def test_files_that_cannot_be_read_are_named_with_the_fix(tmp_path: Path, words: tuple[str, ...], code: int) -> None:
    (tmp_path / "oz0-plugin.yaml").write_text("name: shop\nversion: 1\n")
    done = oz0(*words, tmp_path)
    assert done.exit_code == code
    assert "fix" in done.stdout + done.stderr


def test_a_damaged_listing_is_told(billing: Path) -> None:
    (billing / "oz0-listing.json").write_text("{}")
    done = oz0("lint", billing)
    assert done.exit_code == 3
    assert "error[listing.damaged]: oz0-listing.json:1: it is not of format 1" in done.output


@pytest.fixture
def linted(billing: Path) -> Path:
    """The example with its listing, measured of these files."""
    assert oz0("inspect", billing).exit_code == 0
    return billing


@pytest.mark.rule("T6")
def test_one_lint_in_four_shapes_finds_the_same_and_ends_the_same(linted: Path) -> None:
    done = {shape: oz0("lint", linted, "--format", shape) for shape in ("text", "json", "sarif", "junit")}
    assert {one.exit_code for one in done.values()} == {1}
    assert "error[tools.budget]: agents/know-it-all.yaml" in done["text"].stdout
    found = json.loads(done["json"].stdout)["findings"]
    (run,) = json.loads(done["sarif"].stdout)["runs"]
    assert [one["ruleId"] for one in run["results"]] == [one["code"] for one in found]
    assert run["originalUriBaseIds"]["PLUGIN"]["uri"] == f"{linted.resolve().as_uri()}/"
    suite = ElementTree.fromstring(done["junit"].stdout)[0]
    assert suite.attrib["failures"] == str(sum(one["severity"] == "error" for one in found))


@pytest.mark.rule("T6")
def test_warnings_end_clean_unless_they_are_to_count(linted: Path) -> None:
    (linted / "agents" / "know-it-all.yaml").unlink()
    assert oz0("inspect", linted).exit_code == 0
    assert oz0("lint", linted).exit_code == 0
    (linted / "README.md").write_text("Another.")
    assert "listing.old" in oz0("lint", linted).output
    assert oz0("lint", linted).exit_code == 0
    assert oz0("lint", linted, "--strict").exit_code == 1


@pytest.mark.rule("T6")
@pytest.mark.parametrize("shape", ["text", "json", "sarif", "junit"])
def test_what_cannot_be_measured_is_told_in_every_shape(billing: Path, shape: str) -> None:
    done = oz0("lint", billing, "--format", shape)
    assert done.exit_code == 3
    assert "listing.missing" in done.stdout


@pytest.mark.rule("T6")
@pytest.mark.parametrize("words", [("--format", "html"), ("nowhere",)])
def test_a_wrong_call_ends_with_2(tmp_path: Path, words: tuple[str, ...]) -> None:
    paths = [tmp_path / word if not word.startswith("-") and word != "html" else word for word in words]
    assert oz0("lint", *paths).exit_code == 2


@pytest.mark.rule("D2")
def test_test_starts_the_server_keeps_its_listing_and_finds_what_lint_finds(billing: Path) -> None:
    tested = oz0("test", billing, "--json")
    assert tested.exit_code == 1  # of the agent that is over its budget on purpose
    codes = {one["code"] for one in json.loads(tested.stdout)["findings"]}
    assert codes == {"tools.budget", "tools.undeclared", "tools.annotations"}
    assert json.loads(oz0("lint", billing, "--json").stdout)["findings"] == json.loads(tested.stdout)["findings"]
    (billing / "agents" / "know-it-all.yaml").unlink()
    server = billing / "billing_server.py"
    server.write_text(server.read_text().replace('"billing_server"', "").replace("meta={KEY: True},", ""))
    again = oz0("test", billing)
    assert again.exit_code == 0
    assert "warning[tools.key]: billing_server.py:" in again.output  # measured anew, not read from the old listing


def test_test_of_a_server_that_does_not_start_says_what_it_said_and_could_not_measure(billing: Path) -> None:
    (billing / "agents" / "know-it-all.yaml").unlink()
    (billing / "billing_server.py").write_text("raise SystemExit('no ledger today')")
    tested = oz0("test", billing, "--format", "junit")
    assert tested.exit_code == 3
    assert "no ledger today" in tested.stdout
    assert ElementTree.fromstring(tested.stdout)[0].attrib["name"] == "oz0 plugin test billing"
