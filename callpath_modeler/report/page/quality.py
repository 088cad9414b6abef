"""Data quality on the page: findings, parameters, metrics with their noise, coverage."""

from __future__ import annotations

from collections.abc import Sequence

from callpath_modeler.diagnostics import KINDS, Finding, by_kind
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.report.info import coverage_rows, metric_rows, parameter_rows
from callpath_modeler.report.page.markup import Html, cell, head, joined, plain_table, table, tag
from callpath_modeler.report.page.names import cut

_MOST = 100
"""Largest number of findings that are listed, because a thousand profiles may have some."""
_POINTS = 200


def quality_section(experiment: Experiment, findings: Sequence[Finding]) -> Html:
    """Return one row per kind of finding with its remedy, and a description of the experiment."""
    coverage = coverage_rows(experiment)
    more = len(coverage) - 1 - _POINTS
    rest = [tag("p", f"… {more} more points", class_="aside")] if more > 0 else []
    return joined(
        *findings_table(findings),
        tag("h3", "Parameters"),
        plain_table(parameter_rows(experiment), "Parameters"),
        tag("h3", "Metrics"),
        plain_table(metric_rows(experiment), "Metrics"),
        tag("h3", "Points"),
        plain_table(coverage[: _POINTS + 1], "Points"),
        *rest,
    )


def findings_table(findings: Sequence[Finding]) -> list[Html]:
    """Return one row per kind of finding, with its remedy."""
    kinds = by_kind(findings)
    if not kinds:
        return [tag("p", "There are no findings.")]
    heads = [head("finding"), head("count", right=True), head("what"), head("what to do")]
    body = [
        tag(
            "tr",
            tag("th", tag("code", finding.code), f" {KINDS[finding.code].what}", scope="row"),
            cell(str(count), right=True),
            cell(cut(f"{finding.subject}: {finding.message}", 600)),
            cell(finding.remedy),
        )
        for finding, count in kinds[:_MOST]
    ]
    more = len(kinds) - len(body)
    rest = [tag("p", f"… {more} more: cpmodel info --diagnostics", class_="aside")] if more else []
    return [table(heads, body, caption="Findings"), *rest]
