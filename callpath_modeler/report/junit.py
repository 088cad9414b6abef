"""Results as JUnit XML for continuous integration servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from xml.etree import ElementTree as ET

from callpath_modeler.analysis.expectations.check import Check
from callpath_modeler.analysis.expectations.outcome_text import details, sentence
from callpath_modeler.analysis.expectations.verdicts import Outcome, Status
from callpath_modeler.printable import xml_text
from callpath_modeler.profile.omissions import Omission, omissions_text
from callpath_modeler.report.check import worst_names


class CaseStatus(StrEnum):
    """Result of a test case; its value is the tag in XML."""

    PASSED = "system-out"
    FAILED = "failure"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class JUnitCase:
    """One test case.

    Attributes
    ----------
    name : name of the test case
    classname : name of its group
    status : result
    message : result in one sentence
    kind : kind of failure, for programs
    text : details of a case that did not pass
    place : file and line of what was tested; None = unknown
    """

    name: str
    classname: str
    status: CaseStatus
    message: str
    kind: str
    text: str = ""
    place: tuple[str, int] | None = None


def junit_xml(command: str, suite: str, cases: Sequence[JUnitCase]) -> str:
    """Return XML with one suite.

    ``time`` is 0, because these tests have no run time.

    Parameters
    ----------
    command : name of the command
    suite : name of the suite
    cases : its test cases
    """
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(each.status is CaseStatus.FAILED for each in cases)),
        "errors": "0",
        "skipped": str(sum(each.status is CaseStatus.SKIPPED for each in cases)),
        "time": "0.000",
    }
    suites = ET.Element("testsuites", {"name": command, **counts})
    element = ET.SubElement(suites, "testsuite", {"name": xml_text(suite), **counts})
    for case in cases:
        _add(element, case)
    ET.indent(suites)
    text = ET.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _add(suite: ET.Element, case: JUnitCase) -> None:
    about = {"name": xml_text(case.name), "classname": xml_text(case.classname)}
    if case.place is not None:
        file, line = case.place
        about |= {"file": xml_text(file), "line": str(line)}
    element = ET.SubElement(suite, "testcase", {**about, "time": "0.000"})
    message = xml_text(case.message)
    if case.status is CaseStatus.PASSED:
        ET.SubElement(element, case.status).text = message
        return
    kind = {"type": case.kind} if case.status is CaseStatus.FAILED else {}
    ET.SubElement(element, case.status, {"message": message, **kind}).text = xml_text(case.text)


def to_junit(check: Check) -> str:
    """Return XML with one test case per expectation.

    A failed expectation holds ``failure``. One that the data do not decide, or that fails as
    expected, holds ``skipped``. So does a last case that says what is left out.
    """
    cases = [_case(check, outcome) for outcome in check.outcomes]
    return junit_xml("cpmodel check", check.path, [*cases, *omission_cases(check.omissions)])


def omission_cases(omissions: Sequence[Omission]) -> list[JUnitCase]:
    """Return one skipped case for what a verdict leaves out; none if it leaves out nothing."""
    if not omissions:
        return []
    said = f"judged {omissions_text(omissions)}"
    return [JUnitCase("parts left out", "omissions", CaseStatus.SKIPPED, said, "omission")]


def _case(check: Check, outcome: Outcome) -> JUnitCase:
    lines = [
        f"{check.path}:{outcome.line}",
        *["/".join(worst_names(outcome))],
        *details(outcome, check.control_of(outcome)),
    ]
    return JUnitCase(
        outcome.name,
        outcome.fitted.experiment.name,
        _status(outcome),
        f"{outcome.status.upper()}: {sentence(outcome)}",
        "expectation",
        "\n".join(line for line in lines if line),
        (check.path, outcome.line),
    )


def _status(outcome: Outcome) -> CaseStatus:
    if outcome.failed:
        return CaseStatus.FAILED
    is_skipped = outcome.status in {Status.UNSURE, Status.XFAIL}
    return CaseStatus.SKIPPED if is_skipped else CaseStatus.PASSED
