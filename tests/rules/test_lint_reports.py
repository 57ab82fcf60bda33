"""What lint says to programs: JSON, SARIF, JUnit, exit codes."""

import json
from typing import Any
from xml.etree import ElementTree as Xml

import jsonschema
import pytest

from catalog.rules import lint
from catalog.rules.budgets import BUDGET, TOKENS
from catalog.rules.findings import Finding, Severity
from catalog.rules.lint_reports import Exit, Report, as_json, as_junit, as_sarif

pytestmark = pytest.mark.rule("T6")
OVER = Finding(Severity.ERROR, BUDGET, "agents/a clerk.yaml", 7, "limits.tool_tokens", "too much", "drop some")
LONG = Finding(Severity.WARNING, TOKENS, "oz0-plugin.yaml", 0, "shop.look", "1,600 tokens", "say less")
MISSING = Finding(Severity.WARNING, lint.NOT_MEASURED, "oz0-listing.json", 0, "", "none", "run inspect")
DAMAGED = Finding(Severity.ERROR, lint.DAMAGED, "oz0-listing.json", 0, "", "it is damaged", "run inspect")
UNREADABLE = Finding(Severity.ERROR, lint.FILES, "oz0-plugin.yaml", 2, "version", "is a number", "quote it")
# What SARIF 2.1.0 asks of the objects that are written here.
NEEDED: dict[str, Any] = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "$schema": {"type": "string", "pattern": "sarif-schema-2.1.0.json$"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["tool"],
                "properties": {
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name"],
                                "properties": {
                                    "name": {"type": "string", "minLength": 1},
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "required": ["id"],
                                            "properties": {
                                                "shortDescription": {"$ref": "#/$defs/message"},
                                                "defaultConfiguration": {
                                                    "properties": {"level": {"$ref": "#/$defs/level"}}
                                                },
                                            },
                                        },
                                    },
                                },
                            }
                        },
                    },
                    "invocations": {
                        "items": {
                            "type": "object",
                            "required": ["executionSuccessful"],
                            "properties": {
                                "executionSuccessful": {"type": "boolean"},
                                "exitCode": {"type": "integer"},
                            },
                        }
                    },
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["message", "ruleId", "ruleIndex", "level", "locations"],
                            "properties": {
                                "message": {"$ref": "#/$defs/message"},
                                "level": {"$ref": "#/$defs/level"},
                                "ruleIndex": {"type": "integer", "minimum": 0},
                                "locations": {"items": {"$ref": "#/$defs/location"}},
                                "partialFingerprints": {"additionalProperties": {"type": "string"}},
                            },
                        },
                    },
                },
            },
        },
    },
    "$defs": {
        "level": {"enum": ["none", "note", "warning", "error"]},
        "message": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}},
        "location": {
            "type": "object",
            "required": ["physicalLocation"],
            "properties": {
                "physicalLocation": {
                    "type": "object",
                    "required": ["artifactLocation"],
                    "properties": {
                        "artifactLocation": {
                            "type": "object",
                            "required": ["uri", "uriBaseId"],
                            "properties": {"uri": {"type": "string", "pattern": "^[A-Za-z0-9%._~/-]+$"}},
                        },
                        "region": {
                            "required": ["startLine"],
                            "properties": {"startLine": {"type": "integer", "minimum": 1}},
                        },
                    },
                }
            },
        },
    },
}


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


@pytest.mark.parametrize("findings", [(), (OVER, LONG), (MISSING,), (DAMAGED,), (UNREADABLE,)])
def test_sarif_has_what_its_schema_asks_for(findings: tuple[Finding, ...]) -> None:
    log = json.loads(json.dumps(as_sarif(report(*findings, version="0.1.0", base="file:///shop/"))))
    jsonschema.Draft202012Validator(NEEDED).validate(log)
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [rules[result["ruleIndex"]] for result in run["results"]] == [finding.code for finding in findings]
    assert run["originalUriBaseIds"] == {"PLUGIN": {"uri": "file:///shop/"}}


def test_the_check_of_sarif_finds_what_is_missing() -> None:
    log = as_sarif(report(OVER))
    del log["runs"][0]["results"][0]["message"]["text"]
    with pytest.raises(jsonschema.ValidationError, match="'text' is a required property"):
        jsonschema.Draft202012Validator(NEEDED).validate(log)


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
