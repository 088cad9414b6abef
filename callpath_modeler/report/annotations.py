"""Outcomes as workflow commands of GitHub, which annotate lines of the expectation file."""

from __future__ import annotations

from collections.abc import Sequence

from callpath_modeler.analysis.expectations.check import Check
from callpath_modeler.analysis.expectations.outcome_text import details, sentence
from callpath_modeler.analysis.expectations.verdicts import Status
from callpath_modeler.printable import github_message, github_property
from callpath_modeler.profile.omissions import Omission, omissions_text
from callpath_modeler.report.check import worst_names


def to_annotations(check: Check) -> str:
    """Return an error, a warning or a notice for every expectation that did not simply pass."""
    lines = []
    for outcome in check.outcomes:
        if outcome.status is Status.PASS:
            continue
        notable = outcome.status is Status.UNSURE
        level = "error" if outcome.failed else "warning" if notable else "notice"
        said = [sentence(outcome), "/".join(worst_names(outcome))]
        said += details(outcome, check.control_of(outcome))
        title = f"{outcome.status.upper()} {outcome.name}"
        properties = (
            f"file={github_property(check.path)},line={outcome.line},title={github_property(title)}"
        )
        lines.append(f"::{level} {properties}::{github_message(chr(10).join(filter(None, said)))}")
    lines += omission_annotations(check.omissions)
    return "".join(f"{line}\n" for line in [*lines, check.summary()])


def omission_annotations(omissions: Sequence[Omission]) -> list[str]:
    """Return a warning about what a verdict leaves out; none if it leaves out nothing."""
    if not omissions:
        return []
    said = github_message(f"judged {omissions_text(omissions)}")
    return [f"::warning title=parts left out::{said}"]
