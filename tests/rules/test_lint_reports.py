"""What lint says to programs: JSON, SARIF, JUnit, exit codes."""

import json
import re
from typing import Any, Final
from xml.etree import ElementTree as Xml

import jsonschema
import pytest

from catalog.rules import lint
from catalog.rules.budgets import BUDGET, TOKENS
from catalog.rules.findings import Finding, Severity
from catalog.rules.lint_reports import Exit, Report, as_json, as_junit, as_sarif
from tests.repo.tree import ROOT

pytestmark = pytest.mark.rule("T6")
OVER = Finding(Severity.ERROR, BUDGET, "agents/a clerk.yaml", 7, "limits.tool_tokens", "too much", "drop some")
LONG = Finding(Severity.WARNING, TOKENS, "oz0-plugin.yaml", 0, "shop.look", "1,600 tokens", "say less")
MISSING = Finding(Severity.WARNING, lint.NOT_MEASURED, "oz0-listing.json", 0, "", "none", "run inspect")
DAMAGED = Finding(Severity.ERROR, lint.DAMAGED, "oz0-listing.json", 0, "", "it is damaged", "run inspect")
UNREADABLE = Finding(Severity.ERROR, lint.FILES, "oz0-plugin.yaml", 2, "version", "is a number", "quote it")
SARIF: Final = jsonschema.Draft4Validator(
    json.loads((ROOT / "tests" / "schemas" / "sarif-2.1.0-rtm.5.json").read_text()),
    format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER,
)


def report(*findings: Finding, **more: Any) -> Report:
    return Report("shop", findings, **more)


@pytest.mark.parametrize(
    ("findings", "strict", "code"),
    [
        ((), False, Exit.CLEAN),
        ((LONG,), False, Exit.CLEAN),
        ((LONG,), True, Exit.FOUND),
        ((OVER, LONG), False, Exit.FOUND),
        ((UNREADABLE,), False, Exit.FOUND),
        ((MISSING,), False, Exit.NOT_MEASURED),
        ((MISSING,), True, Exit.NOT_MEASURED),
        ((DAMAGED,), False, Exit.NOT_MEASURED),
        ((OVER, MISSING), False, Exit.FOUND),
    ],
)
def test_the_exit_code_says_clean_found_or_not_measured(
    findings: tuple[Finding, ...], strict: bool, code: Exit
) -> None:
    found = report(*findings, strict=strict)
    assert found.exit == code
    assert as_json(found)["exit"] == code
    assert as_sarif(found)["runs"][0]["invocations"][0] == {
        "executionSuccessful": code is not Exit.NOT_MEASURED,
        "exitCode": code,
    }


def test_json_has_every_finding_whole_and_counts_them() -> None:
    said = json.loads(json.dumps(as_json(report(OVER, LONG))))
    assert (said["plugin"], said["measured"], said["errors"], said["warnings"]) == ("shop", True, 1, 1)
    assert said["findings"][0] == {
        "severity": "error",
        "code": "tools.budget",
        "file": "agents/a clerk.yaml",
        "line": 7,
        "key": "limits.tool_tokens",
        "message": "too much",
        "fix": "drop some",
    }


EVERY = tuple(
    Finding(severity, code, "oz0-plugin.yaml", 1, "key", "what", "fix") for code, (severity, _) in lint.CHECKS.items()
)


@pytest.mark.parametrize("findings", [(), (OVER, LONG), (MISSING,), (DAMAGED,), (UNREADABLE,), EVERY])
def test_sarif_is_valid_by_the_schema_of_its_committee(findings: tuple[Finding, ...]) -> None:
    log = json.loads(json.dumps(as_sarif(report(*findings, version="0.1.0", base="file:///shop/"))))
    SARIF.validate(log)
    assert log["$schema"].endswith("/sarif-schema-2.1.0.json")
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [rules[result["ruleIndex"]] for result in run["results"]] == [finding.code for finding in findings]
    assert run["originalUriBaseIds"] == {"PLUGIN": {"uri": "file:///shop/"}}
    for result in run["results"]:
        (place,) = result["locations"]
        uri = place["physicalLocation"]["artifactLocation"]["uri"]
        assert re.fullmatch("[A-Za-z0-9%._~/-]+", uri), "a path has to be spelled as an address"


def test_the_check_of_sarif_finds_what_is_missing_and_what_is_too_much() -> None:
    log = json.loads(json.dumps(as_sarif(report(OVER))))
    log["runs"][0]["results"][0]["severity"] = "error"
    del log["runs"][0]["tool"]["driver"]["name"]
    told = {error.message for error in SARIF.iter_errors(log)}
    assert "'name' is a required property" in told
    assert any("'severity' was unexpected" in one for one in told)


def test_sarif_names_the_file_the_line_when_there_is_one_and_the_fix() -> None:
    over, long = as_sarif(report(OVER, LONG, strict=True))["runs"][0]["results"]
    assert over["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "agents/a%20clerk.yaml", "uriBaseId": "PLUGIN"},
        "region": {"startLine": 7},
    }
    assert over["message"]["text"] == "limits.tool_tokens: too much\nfix: drop some"
    assert "region" not in long["locations"][0]["physicalLocation"]
    assert long["level"] == "error", "strict"


def cases(*findings: Finding, **more: Any) -> dict[str, list[str]]:
    """By check: how each of its cases ended."""
    whole = Xml.fromstring(as_junit(report(*findings, **more)))
    found: dict[str, list[str]] = {}
    for case in whole.iter("testcase"):
        found.setdefault(case.attrib["classname"], []).append(case[0].tag if len(case) else "passed")
    suite = whole[0]
    for kind, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        assert int(suite.attrib[attribute]) == sum(ends.count(kind) for ends in found.values())
    assert int(suite.attrib["tests"]) == sum(map(len, found.values()))
    return found


def test_junit_passes_what_found_nothing_and_fails_what_did() -> None:
    assert set(cases()) == set(lint.CHECKS)
    ends = {code: ends[0] for code, ends in cases().items()}
    assert {code for code, end in ends.items() if end != "passed"} == lint.STARTED  # lint alone starts no server
    found = cases(OVER, OVER, LONG)
    assert (found[BUDGET], found[TOKENS]) == (["failure", "failure"], ["system-out"])
    assert cases(LONG, strict=True)[TOKENS] == ["failure"]


@pytest.mark.parametrize(("finding", "own"), [(MISSING, "error"), (DAMAGED, "error"), (UNREADABLE, "failure")])
def test_junit_never_passes_a_check_that_was_not_made(finding: Finding, own: str) -> None:
    found = cases(finding)
    assert found.pop(finding.code) == [own]
    assert found.pop(lint.FILES, ["passed"]) == ["passed"]
    assert {end for ends in found.values() for end in ends} == {"skipped"}


def test_junit_is_well_formed_whatever_a_server_says_of_itself() -> None:
    hostile = '\x00\x1b[31m ]]> <!-- & " \ud800 \ufffe </testcase> \u202e'
    bad = Finding(Severity.ERROR, lint.NAMES, "oz0-plugin.yaml", 0, hostile, hostile, hostile)
    text = as_junit(report(bad))
    text.encode()
    (failure,) = Xml.fromstring(text).iter("failure")
    assert '⟨U+0000⟩⟨U+001B⟩[31m ]]> <!-- & " ⟨U+D800⟩ ⟨U+FFFE⟩ </testcase>' in failure.attrib["message"]


def test_every_code_that_lint_gives_is_among_its_checks_with_the_severity_it_has() -> None:
    for finding in (OVER, LONG, MISSING, DAMAGED, UNREADABLE):
        assert lint.CHECKS[finding.code][0] == finding.severity
