"""Violations of PGMPI's code as a table for programs, and as lines for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from callpath_modeler.report.formats import Cell, Table
from callpath_modeler.report.layout import TextColumn, table, wrap
from callpath_modeler.report.text_style import TextStyle
from callpath_modeler.units import counted
from cpmodel_guidelines.campaigns.campaign import Campaign
from cpmodel_guidelines.published import PATTERNS, PublishedViolation

_FUNCTIONS = len({left for left, _ in PATTERNS})


def published_table(campaign: Campaign, found: Sequence[PublishedViolation]) -> Table:
    """Return one row per violation, with the columns of PGMPI's table first."""
    columns: dict[str, list[Cell]] = {
        "start": [_whole(each.start) for each in found],
        "end": [_whole(each.end) for each in found],
        "func": [each.function for each in found],
        "name": [each.kind for each in found],
        "significance": [each.significance for each in found],
        "descr": [each.description for each in found],
        "library": [each.library for each in found],
        "p": [each.processes for each in found],
    }
    findings = [
        {"code": f.code, "subject": f.subject, "message": f.message, "count": f.count}
        for f in campaign.findings
    ]
    counts = {"/".join(map(str, series)): _counts(found, series) for series in campaign.mpiruns()}
    header = {"campaign": campaign.name, "compat": "pgmpi", "findings": findings, "counts": counts}
    return Table(columns, {}, header)


def _whole(size: float) -> float:
    """Return a size without decimals if it has none."""
    return int(size) if size == int(size) else size


def _counts(found: Sequence[PublishedViolation], series: tuple[str, int]) -> dict[str, str]:
    """Return the number of violated guidelines of each kind, as Table II of the paper does."""
    names: dict[str, set[str]] = {"monotony": set(), "split": set(), "pattern": set()}
    for each in found:
        if (each.library, each.processes) == series:
            names[each.kind].add(each.function)
    least = {"monotony": _FUNCTIONS, "split": _FUNCTIONS, "pattern": len(PATTERNS)}
    return {kind: f"{len(names[kind])}/{least[kind]}" for kind in names}


def published_text(
    campaign: Campaign, found: Sequence[PublishedViolation], style: TextStyle
) -> list[Text]:
    """Return the counts of each library and number of processes, and all violations."""
    said = f"{counted(len(found), 'violation')} by the rules of PGMPI's code."
    lines = wrap(style.say(said), style.width, "bold")
    for (library, processes), runs in campaign.mpiruns().items():
        counts = _counts(found, (library, processes))
        told = ", ".join(f"{kind} {count}" for kind, count in counts.items())
        name = f"{library}, p = {processes}" if library else f"p = {processes}"
        lines += wrap(style.say(f"{name}: {counted(runs, 'mpirun')}; {told}"), style.width, "dim")
    if not found:
        return lines
    columns = [
        TextColumn("", [each.significance for each in found], right=False),
        TextColumn("kind", [each.kind for each in found], right=False),
        TextColumn("p", [str(each.processes) for each in found]),
        TextColumn("medians in s", [each.description for each in found], right=False, droppable=1),
    ]
    names = [[style.say(f"{each.library} {each.function}".strip())] for each in found]
    dots = style.say("…")
    return [*lines, Text(""), *table(columns, names, style.width, title="guideline", ellipsis=dots)]
