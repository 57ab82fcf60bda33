"""What lint found, for programs: JSON, SARIF 2.1.0 and JUnit XML, and the exit code (RULES T6).

Texts are written as they are given; the caller makes hidden characters visible before.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final
from urllib.parse import quote
from xml.etree import ElementTree as Xml

from catalog.rules.bearing import BORNE, Bearing
from catalog.rules.findings import Finding, Severity
from catalog.rules.lint import CHECKS, FILES, STARTED, UNMEASURED

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT: Final = "PLUGIN"  # what SARIF calls the plugin's folder
LINT: Final = "oz0 plugin lint"
TEST: Final = "oz0 plugin test"
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Exit(IntEnum):
    """How lint ends. 2, a wrong call of the command, is given by the command line itself."""

    CLEAN = 0
    FOUND = 1
    USAGE = 2
    NOT_MEASURED = 3


@dataclass(frozen=True, slots=True)
class Report:
    """One run of lint, or of the command `name`. `strict` makes warnings errors; `base` is the plugin's folder as an
    address, if it has one."""

    plugin: str
    findings: tuple[Finding, ...]
    strict: bool = False
    version: str = ""
    base: str = ""
    name: str = LINT

    @property
    def errors(self) -> int:
        """How many findings fail it."""
        return sum(self.fails(finding) for finding in self.findings)

    @property
    def warnings(self) -> int:
        """How many do not."""
        return len(self.findings) - self.errors

    @property
    def measured(self) -> bool:
        """Whether the files could be read and there was a listing of every server of theirs."""
        return not any(finding.code in UNMEASURED or finding.code == FILES for finding in self.findings)

    @property
    def spelled(self) -> bool:
        """Whether the plugin's own files could be read."""
        return not any(finding.code == FILES for finding in self.findings)

    @property
    def exit(self) -> Exit:
        """What was found decides first; nothing found without a listing is not clean."""
        found = any(self.fails(finding) and finding.code not in UNMEASURED for finding in self.findings)
        if found:
            return Exit.FOUND
        return Exit.CLEAN if self.measured else Exit.NOT_MEASURED

    def fails(self, finding: Finding) -> bool:
        """Whether a finding counts as an error."""
        return self.strict or finding.severity is Severity.ERROR


def as_json(report: Report) -> dict[str, Any]:
    """One object with every finding."""
    return {
        "plugin": report.plugin,
        "measured": report.measured,
        "strict": report.strict,
        "errors": report.errors,
        "warnings": report.warnings,
        "exit": int(report.exit),
        "findings": [finding.as_json() for finding in report.findings],
    }


def as_sarif(report: Report) -> dict[str, Any]:
    """A SARIF 2.1.0 log of one run. Files are named from the plugin's folder."""
    codes = list(CHECKS)
    driver: dict[str, Any] = {
        "name": report.name,
        "rules": [
            {
                "id": code,
                "shortDescription": {"text": says},
                "defaultConfiguration": {"level": severity.value},
            }
            for code, (severity, says) in CHECKS.items()
        ],
        **({"semanticVersion": report.version} if report.version else {}),
    }
    invocation: dict[str, Any] = {"executionSuccessful": report.exit is not Exit.NOT_MEASURED, "exitCode": report.exit}
    run: dict[str, Any] = {
        "tool": {"driver": driver},
        "invocations": [invocation],
        "columnKind": "unicodeCodePoints",
        "results": [_result(report, finding, codes.index(finding.code)) for finding in report.findings],
        **({"originalUriBaseIds": {ROOT: {"uri": report.base}}} if report.base else {}),
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(report: Report, finding: Finding, index: int) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": quote(finding.file), "uriBaseId": ROOT}}
    if finding.line:
        place["region"] = {"startLine": finding.line}
    return {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": "error" if report.fails(finding) else "warning",
        "message": {"text": _said(finding)},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"finding/v1": f"{finding.code} {finding.file} {finding.key}"},
    }


def as_junit(report: Report, *more: Xml.Element) -> str:
    """JUnit XML: a test case for each finding and for each check that found nothing.

    A check that could not be made is skipped, never passed; a warning is a passed case that says it. `more` are test
    suites that belong into the same report.
    """
    suite = Xml.Element("testsuite", name=_xml(f"{report.name} {report.plugin}".strip()))
    cases = [_case(report, code) for code in CHECKS]
    for case in (one for of_check in cases for one in of_check):
        suite.append(case)
    counted = {
        "tests": len(suite),
        "failures": len(suite.findall("testcase/failure")),
        "errors": len(suite.findall("testcase/error")),
        "skipped": len(suite.findall("testcase/skipped")),
    }
    for name, count in counted.items():
        suite.set(name, str(count))
    suites = [suite, *more]
    summed = {name: sum(int(one.get(name, 0)) for one in suites) for name in counted if name != "skipped"}
    whole = Xml.Element("testsuites", {name: str(count) for name, count in summed.items()})
    whole.extend(suites)
    Xml.indent(whole)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(whole, encoding="unicode") + "\n"


def as_suite(bearings: Sequence[Bearing]) -> Xml.Element:
    """A JUnit test suite: a case for each line that no client should send and each server that it was sent to."""
    whole = Xml.Element("testsuite", name="malformed lines")
    for one in bearings:
        for borne in one.borne:
            case = Xml.SubElement(whole, "testcase", classname=_xml(one.tool), name=_xml(borne.frame))
            if borne.why:
                Xml.SubElement(case, "failure", type=BORNE, message=_xml(borne.why))
        if one.trouble:
            case = Xml.SubElement(whole, "testcase", classname=_xml(one.tool), name="all of them")
            Xml.SubElement(case, "error", type=BORNE, message=_xml(one.trouble))
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        whole.set(name, str(len(whole.findall(f"testcase/{tag}"))))
    whole.set("tests", str(len(whole)))
    return whole


def _case(report: Report, code: str) -> Sequence[Xml.Element]:
    found = [finding for finding in report.findings if finding.code == code]
    if not found:
        case = Xml.Element("testcase", classname=code, name=code)
        if code in STARTED and report.name != TEST:
            Xml.SubElement(case, "skipped", message=f"lint starts no server: {TEST} checks it")
        elif not report.measured and code != FILES:
            Xml.SubElement(case, "skipped", message="there was not everything to check it by")
        return [case]
    cases = []
    for finding in found:
        where = f"{finding.file}:{finding.line}" if finding.line else finding.file
        case = Xml.Element("testcase", classname=code, name=_xml(f"{where} {finding.key}".strip()))
        if code in UNMEASURED:
            kind = "error"
        elif report.fails(finding):
            kind = "failure"
        else:
            Xml.SubElement(case, "system-out").text = _xml(str(finding))
            cases.append(case)
            continue
        Xml.SubElement(case, kind, type=code, message=_xml(finding.message)).text = _xml(str(finding))
        cases.append(case)
    return cases


def _said(finding: Finding) -> str:
    key = f"{finding.key}: " if finding.key else ""
    return f"{key}{finding.message}\nfix: {finding.fix}"


def _xml(text: str) -> str:
    """Text without what XML 1.0 cannot hold, not even escaped."""
    return _NOT_XML.sub(lambda found: f"⟨U+{ord(found.group()):04X}⟩", text)
