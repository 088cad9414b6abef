"""Results of expectations on the page."""

from __future__ import annotations

from callpath_modeler.analysis.expectations.check import Check
from callpath_modeler.analysis.expectations.outcome_text import details, sentence
from callpath_modeler.analysis.expectations.verdicts import Outcome
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.report.check import last_line, worst_names
from callpath_modeler.report.page.markup import Html, cell, head, joined, table, tag
from callpath_modeler.report.page.names import shortened


def expectations_section(check: Check) -> Html:
    """Return every expectation with its status, in the order of the file."""
    heads = [head(text) for text in ("status", "expectation", "result", "line")]
    body = [_row(check, outcome) for outcome in check.outcomes]
    style = "passed" if check.passed else "failed"
    return joined(
        tag("p", tag("strong", last_line(check), class_=style)),
        table(heads, body, caption="Expectations"),
        tag("p", f"of {check.path}", class_="aside"),
    )


def _row(check: Check, outcome: Outcome) -> Html:
    status = str(outcome.status)
    names = [short_name(name) for name in worst_names(outcome)]
    place = [shortened(names)] if names else []
    more = [*place, *details(outcome, check.control_of(outcome))]
    said = joined(sentence(outcome), *(tag("div", line, class_="aside") for line in more))
    return tag(
        "tr",
        cell(tag("span", status.upper(), class_=f"status {status}")),
        tag("th", outcome.name, scope="row"),
        cell(said),
        cell(str(outcome.line), right=True),
    )
