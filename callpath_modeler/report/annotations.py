"""Outcomes as workflow commands of GitHub, which mark the lines of the expectation file."""

from __future__ import annotations

from callpath_modeler.analysis.expectations.check import Check
from callpath_modeler.analysis.expectations.verdicts import Status
from callpath_modeler.analysis.expectations.wording import details, sentence
from callpath_modeler.report.check import worst_names


def to_annotations(check: Check) -> str:
    """Write an error, a warning or a notice for every expectation that is no plain pass."""
    lines = []
    for outcome in check.outcomes:
        if outcome.status is Status.PASS:
            continue
        notable = outcome.status is Status.UNSURE
        level = "error" if outcome.failed else "warning" if notable else "notice"
        said = [sentence(outcome), "/".join(worst_names(outcome))]
        said += details(outcome, check.control_of(outcome))
        title = f"{outcome.status.upper()} {outcome.expectation.name}"
        properties = f"file={_value(check.path)},line={outcome.line},title={_value(title)}"
        lines.append(f"::{level} {properties}::{_data(chr(10).join(filter(None, said)))}")
    return "".join(f"{line}\n" for line in [*lines, check.summary()])


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _value(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
