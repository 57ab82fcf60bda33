"""What a drill cannot see it does not pass: without effects, arguments or a place to strike nothing is proven."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from catalog.rules.drill_file import read_drill
from catalog.rules.plugins import read_plugin
from jobs.drills import drill
from jobs.rules.drill_reports import suite, table
from jobs.rules.drills import Drilled, Exit, Fault, Finding, Verdict
from studio.cli.plugin import plugin
from tests.drills.liars import HEAD, liars


def drilled(files: dict[str, bytes], *only: str) -> Drilled:
    spec = read_plugin(files)
    return drill(spec, read_drill(spec, files), files, only=only)


def written(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def oz0(*words: object) -> Result:
    return CliRunner().invoke(plugin, ["test", *(str(word) for word in words)], catch_exceptions=False)


@pytest.mark.rule("D2")
def test_where_effects_cannot_be_seen_nothing_is_proven() -> None:
    """The control of the other tests: the same function, with its effects in sight, is proven throughout."""
    blind = HEAD.replace("effects.jsonl", "elsewhere.jsonl")
    found = drilled(liars("honest", head=blind), "liars.honest")
    verdicts = {one.verdict for one in found.findings}
    assert verdicts == {Verdict.NOT_MEASURED, Verdict.NOT_APPLICABLE}
    assert found.exit is Exit.NOT_MEASURED
    assert "one call of it has no effect that is seen" in {one.said for one in found.findings}


@pytest.mark.rule("D2")
def test_a_function_that_nobody_says_how_to_call_is_not_measured() -> None:
    """A write is never made unless the drill file says so, since it may land anywhere."""
    found = drilled(liars("looks"), "liars.honest")
    (finding,) = found.findings
    assert (finding.verdict, found.exit) == (Verdict.NOT_MEASURED, Exit.NOT_MEASURED)
    assert "honest: {arguments: {…}}" in finding.fix


@pytest.mark.rule("D2")
def test_a_read_whose_writes_would_not_be_seen_is_not_proven_by_its_silence() -> None:
    """No function of it writes, and where the author's own program looks the drill cannot leave a mark."""
    head = HEAD.replace('{file: "{{ home }}/effects.jsonl"}', '{program: ["python", "-c", "print(1)"]}')
    found = drilled(liars("looks", head=head), "liars.looks")
    (silent,) = [one for one in found.findings if one.fault is Fault.WRITES_NOTHING]
    assert silent.verdict is Verdict.NOT_MEASURED


def test_nothing_is_proven_without_a_control() -> None:
    with pytest.raises(ValueError, match="cannot be proven without a control"):
        Finding("shop", "buy", Fault.REPEATED, Verdict.PROVEN, "1 effect")


def test_the_exit_says_the_worst_and_what_does_not_apply_is_no_pass() -> None:
    def ends(*verdicts: Verdict) -> Exit:
        return Drilled.of("shop", [Finding("shop", "buy", Fault.EOF, one, "so", "seen") for one in verdicts]).exit

    assert ends(Verdict.PROVEN, Verdict.NOT_APPLICABLE) is Exit.CLEAN
    assert ends(Verdict.NOT_APPLICABLE) is Exit.NOT_MEASURED
    assert ends(Verdict.PROVEN, Verdict.NOT_MEASURED) is Exit.NOT_MEASURED
    assert ends(Verdict.PROVEN, Verdict.NOT_MEASURED, Verdict.FAILED) is Exit.FAILED
    assert ends() is Exit.NOT_MEASURED


def test_in_junit_what_does_not_apply_is_skipped_and_what_was_not_measured_an_error() -> None:
    cases = [
        Finding("shop", "buy", fault, verdict, "so\0", "seen") for fault, verdict in zip(Fault, Verdict, strict=False)
    ]
    whole = suite(Drilled.of("shop", cases))
    counted = {name: whole.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counted == {"tests": "4", "failures": "1", "errors": "1", "skipped": "1"}
    assert "so\0" not in ElementTree.tostring(whole, encoding="unicode")
    assert [line for verdict, line in table(Drilled.of("shop", cases)) if verdict is Verdict.FAILED]


@pytest.mark.rule("D2")
def test_the_command_drills_what_it_is_asked_to_and_tells_it_in_every_shape(tmp_path: Path) -> None:
    folder = written(tmp_path, liars("looks", "writes_while_reading"))
    report = tmp_path / "drill.xml"
    done = oz0(folder, "--drill", "--only", "liars.writes_while_reading", "--junit", report)
    assert done.exit_code == 1
    assert "FAILED        writes-nothing" in done.output
    assert "it says that it only reads, and 3 calls of it had 3 effects" in done.output
    lint_suite, lines, drill_suite = ElementTree.parse(report).getroot()
    assert [suite.get("name") for suite in (lint_suite, lines, drill_suite)] == [
        "oz0 plugin test liars",
        "malformed lines",
        "oz0 plugin test --drill liars",
    ]
    assert drill_suite.get("failures") == "2"
    told = json.loads(oz0(folder, "--drill", "--only", "liars.looks", "--json").stdout)
    assert (told["exit"], told["drill"]["proven"], told["drill"]["failed"]) == (0, 3, 0)


def test_wrong_calls_of_the_command_end_with_2(tmp_path: Path) -> None:
    folder = written(tmp_path, liars("looks"))
    assert oz0(folder, "--only", "liars.looks").exit_code == 2
    assert oz0(folder, "--drill", "--format", "sarif").exit_code == 2
    assert oz0(folder / "nowhere", "--drill").exit_code == 2
