"""Results of expectations as JUnit XML for continuous integration servers."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from callpath_modeler.analysis.expectations.check import Check
from callpath_modeler.analysis.expectations.outcome_text import details, sentence
from callpath_modeler.analysis.expectations.verdicts import Outcome, Status
from callpath_modeler.printable import xml_text
from callpath_modeler.report.check import worst_names


def to_junit(check: Check) -> str:
    """Return XML with one test case per expectation.

    A failed expectation holds ``failure``. One that the data do not decide, or that fails as
    expected, holds ``skipped``. ``time`` is 0, because expectations have no run time.
    """
    skipped = [o for o in check.outcomes if not o.failed and _is_skipped(o)]
    counts = {
        "tests": str(len(check.outcomes)),
        "failures": str(sum(outcome.failed for outcome in check.outcomes)),
        "errors": "0",
        "skipped": str(len(skipped)),
        "time": "0.000",
    }
    suites = ET.Element("testsuites", {"name": "cpmodel check", **counts})
    suite = ET.SubElement(suites, "testsuite", {"name": xml_text(check.path), **counts})
    for outcome in check.outcomes:
        _add(suite, check, outcome)
    ET.indent(suites)
    text = ET.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _is_skipped(outcome: Outcome) -> bool:
    return outcome.status in {Status.UNSURE, Status.XFAIL}


def _add(suite: ET.Element, check: Check, outcome: Outcome) -> None:
    case = ET.SubElement(
        suite,
        "testcase",
        {
            "name": xml_text(outcome.expectation.name),
            "classname": xml_text(outcome.fitted.experiment.name),
            "file": xml_text(check.path),
            "line": str(outcome.line),
            "time": "0.000",
        },
    )
    message = xml_text(f"{outcome.status.upper()}: {sentence(outcome)}")
    lines = [
        f"{check.path}:{outcome.line}",
        *["/".join(worst_names(outcome))],
        *details(outcome, check.control_of(outcome)),
    ]
    text = xml_text("\n".join(line for line in lines if line))
    if outcome.failed:
        failure = ET.SubElement(case, "failure", {"message": message, "type": "expectation"})
        failure.text = text
    elif _is_skipped(outcome):
        ET.SubElement(case, "skipped", {"message": message}).text = text
    else:
        ET.SubElement(case, "system-out").text = message
