"""Two experiments in one of the three views: text and tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from rich.text import Text

from callpath_modeler.analysis.pair_forecast import NodeDifferences, PairForecast
from callpath_modeler.comparison import Compared, compared_in
from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.view_request import ViewRequest
from callpath_modeler.report.diff import NOISE_UNKNOWN, heading, sums_note
from callpath_modeler.report.diff_table import VERDICTS, comparison_header
from callpath_modeler.report.difference_columns import difference_cells, difference_text_of
from callpath_modeler.report.layout import TextColumn, TextStyle
from callpath_modeler.report.outlined_view import (
    ViewOfForecast,
    node_columns,
    sum_check_text,
    tree_lines,
    tree_table,
    view_header,
)
from callpath_modeler.report.table_formats import Cell, Table

_GREY = "dim"
_SHOWN = (
    *("base", "new", "difference", "ratio", "interval", "own_difference", "growth"),
    "at_common",
)
"""Columns from left to right, as in the browser."""


@dataclass(frozen=True, eq=False)
class DifferenceView(ViewOfForecast[NodeDifferences]):
    """Two experiments in one of the three views.

    Attributes
    ----------
    forecast : the values of both
    request : view, depth, filter and zoom
    """

    forecast: PairForecast
    request: ViewRequest

    @cached_property
    def compared(self) -> Compared:
        """The comparison of all call paths, with its findings."""
        return compared_in(self.forecast, inclusive=self.inclusive)


def difference_view_text(shown: DifferenceView, *, style: TextStyle) -> list[Text]:
    """Return a view of two experiments as text: the answer, the tree, and notes.

    Parameters
    ----------
    shown : the view
    style : width, length of names, and characters of text
    """
    forecast = shown.forecast
    found = forecast.found[1 if shown.inclusive else 0]
    body = tree_lines(shown.outline, _columns(shown, style=style), style=style)
    kind = "inclusive" if shown.inclusive else "exclusive"
    notes = [f"values: {kind}; difference: new minus base; > is the hot path of the loss"]
    notes.append("~: noise may explain the difference" if found.can_tell else NOISE_UNKNOWN)
    notes += sums_note(found, style)
    unit = forecast.inputs.pair.metric.unit
    sums = [
        " and ".join(style.amount(value, unit) for value in values[:2].tolist())
        for values in (shown.check.counted, shown.check.total)
    ]
    notes.append(sum_check_text(shown.outline, shown.check, sums))
    below = style.lines(notes, _GREY, "  ")
    return [*heading(found, style), Text(""), *body, Text(""), *below]


def difference_view_text_table(shown: DifferenceView, style: TextStyle) -> Table:
    """Return the table of `difference_view_text`."""
    return tree_table(shown.outline, _columns(shown, style=style))


def _columns(shown: DifferenceView, *, style: TextStyle) -> list[TextColumn]:
    """Return the columns, each with a last cell for the total."""
    forecast, (own, whole) = shown.forecast, shown.values
    cells = difference_cells(
        forecast, own, whole, shown.outline.single_rows(), inclusive=shown.inclusive, style=style
    )
    totals: dict[str, str] = {}
    if shown.outline.start == ROOT:
        unit = forecast.inputs.pair.metric.unit
        base, new, *others = forecast.costs.total.tolist()
        change = difference_text_of(new - base, unit, style=style)
        totals = {
            "base": style.amount(base, unit),
            "new": style.amount(new, unit),
            "difference": change,
            "own_difference": change,
            "at_common": " → ".join(style.amount(value, unit) for value in others),
        }
    columns = [
        replace(
            cells[name],
            cells=[*cells[name].cells, totals.get(name, "")],
            styles=[*cells[name].styles, ""] if cells[name].styles else (),
        )
        for name in _SHOWN
        if name in cells
    ]
    return [*columns, TextColumn("", [*(">" * is_hot for is_hot in shown.is_hot), ""])]


def difference_view_table(shown: DifferenceView) -> Table:
    """Return a table with one row per line of the view."""
    metric = shown.forecast.inputs.pair.metric
    columns = node_columns(shown.outline)
    columns["metric"] = [metric.name] * len(shown.outline)
    names = ("base", "new", "change", "ratio", "low", "high", "p")
    own, whole = shown.values
    for kind, values in (("inclusive", whole), ("exclusive", own)):
        columns |= {f"{name}_{kind}": getattr(values, name).tolist() for name in names}
        columns[f"verdict_{kind}"] = [
            None if np.isnan(p) else VERDICTS[mark]
            for p, mark in zip(values.p.tolist(), values.mark.tolist(), strict=True)
        ]
    hot: list[Cell] = [*shown.is_hot]
    columns["is_hot"] = hot
    units = dict.fromkeys(
        (name for name in columns if name.startswith(("base_", "new_", "change_"))), metric.unit
    )
    header = {
        **comparison_header(shown.compared),
        "view": str(shown.request.kind),
        **view_header(shown),
    }
    return Table(columns, units, header)
