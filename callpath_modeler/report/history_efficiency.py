"""Factors of parallel efficiency of the newest record of a history, beside earlier ones."""

from __future__ import annotations

import math

from callpath_modeler.history.commits import CommitHistory
from callpath_modeler.history.store import FACTORS
from callpath_modeler.report.table_formats import json_number
from callpath_modeler.units import parameter_value, percent

_WORTH = 0.005
"""Least change of a factor that is shown."""


def efficiency_title(history: CommitHistory) -> str:
    """Return what the rows are; "" = the profiles of the newest record do not allow factors."""
    if not history.newest.efficiency.size:
        return ""
    title = f"Efficiency at commit {history.newest.commit}"
    changes = len(history.records) > 1
    return title + " (change from the median of earlier records, in points)" * changes


def efficiency_rows(history: CommitHistory) -> list[tuple[str, ...]]:
    """Return the rows of a table: scales, then one row for each factor; empty = not known."""
    newest = history.newest
    if not newest.efficiency.size:
        return []
    scales = (f"{newest.parameter} = {parameter_value(each)}" for each in newest.scales.tolist())
    before = history.efficiency_before().tolist()
    rows = [("factor", *scales)]
    for name, values, earlier in zip(FACTORS, newest.efficiency.tolist(), before, strict=True):
        rows.append((name, *map(_cell, values, earlier)))
    return rows


def _cell(value: float, before: float) -> str:
    if math.isnan(value):
        return "-"
    change = value - before
    if math.isnan(change) or abs(change) < _WORTH:
        return percent(value, 1)
    return f"{percent(value, 1)} ({100 * change:+.1f})"


def efficiency_json(history: CommitHistory) -> dict[str, list[float | str | None]]:
    """Return the factors of the newest record by name, at its scales."""
    values = history.newest.efficiency.tolist()
    return {
        name.replace(" ", "_"): [json_number(each) for each in row]
        for name, row in zip(FACTORS, values, strict=False)
    }
