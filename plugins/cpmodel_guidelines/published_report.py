"""Violations of PGMPI's code as a table for programs, and as lines for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from callpath_modeler.report.layout import TextColumn, TextStyle
from callpath_modeler.report.table_formats import Cell, Table, findings_json
from callpath_modeler.units import counted
from cpmodel_guidelines.campaigns.campaign import Campaign
from cpmodel_guidelines.campaigns.conversion import PROCESSES
from cpmodel_guidelines.matrix import counts_of, published_matrices
from cpmodel_guidelines.published import PublishedCheck


def published_table(campaign: Campaign, checks: Sequence[PublishedCheck]) -> Table:
    """Return one row per violation, with the columns of PGMPI's table first."""
    found = [each for each in checks if each.significance]
    columns: dict[str, list[Cell]] = {
        "start": [_whole(each.start) for each in found],
        "end": [_whole(each.end) for each in found],
        "func": [each.function for each in found],
        "name": [str(each.kind) for each in found],
        "significance": [each.significance for each in found],
        "descr": [each.description for each in found],
        "library": [each.library for each in found],
        "p": [each.processes for each in found],
    }
    return Table(columns, {}, published_header(campaign, checks))


def published_header(campaign: Campaign, checks: Sequence[PublishedCheck]) -> dict[str, object]:
    """Return the JSON fields that describe the campaign, with the counts of each series."""
    findings = findings_json(campaign.findings)
    counts = {
        f"{''.join(each.group)}/{each.at[PROCESSES]:.0f}": {
            str(kind): str(count) for kind, count in counts_of(each).items()
        }
        for each in published_matrices(campaign, checks)
    }
    return {"campaign": campaign.name, "compat": "pgmpi", "findings": findings, "counts": counts}


def _whole(size: float) -> float:
    """Return a size without decimals if it has none."""
    return int(size) if size == int(size) else size


def published_headline(campaign: Campaign, checks: Sequence[PublishedCheck]) -> list[str]:
    """Return the number of violations, and the counts of each library and number of processes."""
    number = sum(bool(each.significance) for each in checks)
    lines = [f"{counted(number, 'violation')} by the rules of PGMPI's code."]
    runs = campaign.mpiruns()
    for each in published_matrices(campaign, checks):
        library, processes = "".join(each.group), int(each.at[PROCESSES])
        told = ", ".join(f"{kind} {count}" for kind, count in counts_of(each).items())
        name = f"{library}, p = {processes}" if library else f"p = {processes}"
        lines.append(f"{name}: {counted(runs[library, processes], 'mpirun')}; {told}")
    return lines


def published_text(
    campaign: Campaign, checks: Sequence[PublishedCheck], style: TextStyle
) -> list[Text]:
    """Return the counts of each library and number of processes, and all violations."""
    first, *others = published_headline(campaign, checks)
    lines = style.lines([first], "bold") + style.lines(others, "dim")
    found = [each for each in checks if each.significance]
    if not found:
        return lines
    columns = [
        TextColumn("", [each.significance for each in found], right=False),
        TextColumn("kind", [str(each.kind) for each in found], right=False),
        TextColumn("p", [str(each.processes) for each in found]),
        TextColumn("medians in s", [each.description for each in found], right=False, droppable=1),
    ]
    names = [[f"{each.library} {each.function}".strip()] for each in found]
    return [*lines, Text(""), *style.table(columns, names, title="guideline")]
