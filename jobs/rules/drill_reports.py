"""What a drill found, for a person as a table and for programs as JUnit XML."""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Final
from xml.etree import ElementTree as Xml

from jobs.rules.drills import SAYS, Drilled, Finding, Verdict

NAME: Final = "oz0 plugin test --drill"
COLOURS: Final = {Verdict.PROVEN: "green", Verdict.FAILED: "red", Verdict.NOT_MEASURED: "yellow"}
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def table(drilled: Drilled) -> Iterator[tuple[Verdict | None, str]]:
    """Lines to print, and the verdict that each is about. What does not apply to a function is one line of it."""
    for label, found in groupby(drilled.findings, key=lambda finding: finding.label):
        yield None, label
        aside: dict[str, list[str]] = {}
        for finding in found:
            if finding.verdict is Verdict.NOT_APPLICABLE:
                aside.setdefault(finding.said, []).append(str(finding.fault))
                continue
            yield finding.verdict, f"  {finding.verdict:<13} {finding.fault:<23} {finding.said}"
            if finding.control:
                yield None, f"  {'':<37} control: {finding.control}"
            if finding.fix:
                yield None, f"  {'':<37} fix: {finding.fix}"
        for why, faults in aside.items():
            yield None, f"  {Verdict.NOT_APPLICABLE} ({why}): {', '.join(faults)}"
    yield None, summary(drilled)


def summary(drilled: Drilled) -> str:
    """The counts, in one line."""
    return ", ".join(f"{drilled.count(verdict)} {str(verdict).lower()}" for verdict in Verdict)


def suite(drilled: Drilled) -> Xml.Element:
    """A JUnit test suite: a case for each function and fault. Not applicable is skipped, never passed."""
    whole = Xml.Element("testsuite", name=_xml(f"{NAME} {drilled.plugin}".strip()))
    for finding in drilled.findings:
        case = Xml.SubElement(whole, "testcase", classname=_xml(finding.label), name=str(finding.fault))
        match finding.verdict:
            case Verdict.PROVEN:
                Xml.SubElement(case, "system-out").text = _xml(_told(finding))
            case Verdict.FAILED:
                kind = Xml.SubElement(case, "failure", type=str(finding.fault), message=_xml(finding.said))
                kind.text = _xml(_told(finding))
            case Verdict.NOT_MEASURED:
                kind = Xml.SubElement(case, "error", type=str(finding.fault), message=_xml(finding.said))
                kind.text = _xml(_told(finding))
            case Verdict.NOT_APPLICABLE:
                Xml.SubElement(case, "skipped", message=_xml(finding.said))
    counted = {
        "tests": len(drilled.findings),
        "failures": drilled.count(Verdict.FAILED),
        "errors": drilled.count(Verdict.NOT_MEASURED),
        "skipped": drilled.count(Verdict.NOT_APPLICABLE),
    }
    for name, count in counted.items():
        whole.set(name, str(count))
    return whole


def _told(finding: Finding) -> str:
    control = f"\ncontrol: {finding.control}" if finding.control else ""
    fix = f"\nfix: {finding.fix}" if finding.fix else ""
    return f"{SAYS[finding.fault]}: {finding.said}{control}{fix}"


def _xml(text: str) -> str:
    """Text without what XML 1.0 cannot hold, not even escaped."""
    return _NOT_XML.sub(lambda found: f"⟨U+{ord(found.group()):04X}⟩", text)
