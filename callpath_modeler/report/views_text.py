"""Costs of nodes at a target in one of the three views, as text and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import structs

from callpath_modeler.analysis.answer import Answer
from callpath_modeler.analysis.node_values import NodeValues
from callpath_modeler.analysis.uncertain import is_unknown
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.groups import Costs
from callpath_modeler.profile.tree_views import ViewKind
from callpath_modeler.profile.view_request import ViewRequest
from callpath_modeler.report.columns import MODEL_NOTE
from callpath_modeler.report.headline import (
    at_text,
    cost_text,
    known_notes,
    left_out,
    model_notes,
    sum_notes,
    turning_notes,
)
from callpath_modeler.report.layout import TextColumn, TextStyle
from callpath_modeler.report.losses_text import (
    OVERLAP_NOTE,
    comparison_note,
    comparison_sentence,
    pair_cells,
    pair_note,
    pair_text_columns,
    scales_note,
)
from callpath_modeler.report.outlined_view import (
    OutlineColumns,
    ViewOfForecast,
    sum_check_text,
    view_header,
)
from callpath_modeler.report.ranking_columns import (
    AT_BASE,
    AT_LARGEST,
    AT_TARGET,
    EXCESS,
    LOSS,
    LOW,
    OTHER,
    OWN_LOSS,
    PREDICTED,
    SHARE,
    TRUST,
    VALUES,
    Nodes,
    has_models,
    program_cells,
    with_lines_below,
)
from callpath_modeler.report.ranking_table import answer_header
from callpath_modeler.report.ranking_text import points_text, scaling_text
from callpath_modeler.report.table_formats import (
    Cell,
    Column,
    RowColumns,
    Table,
    applying,
    file_cells,
    file_units,
    text_columns,
)
from callpath_modeler.units import counted, percent


def growths(nodes: Nodes, *, pretty: bool = False) -> list[str | None]:
    """Return the growth of the fastest growing part of each node."""
    codes, known = nodes.main.growth.tolist(), nodes.answer.inputs
    # Of 10^6 nodes, few have different growths.
    texts = {code: known.growth_text(code, pretty=pretty) for code in {*codes}}
    return [texts[code] for code in codes]


_GROWTH: Column[Nodes] = Column(
    key="growth",
    help="leading term without coefficient, e.g. `O(p^(1/2) log p)`",
    cells=growths,
    title="growth",
    text=lambda nodes, style: [text or "" for text in growths(nodes, pretty=not style.ascii_only)],
    right=False,
    droppable=1,
    place=13,
    applies=lambda nodes: has_models(nodes) and nodes.answer.fitted.metric.additive,
)
_TRUST = structs.replace(
    TRUST, applies=lambda nodes: has_models(nodes) and np.isfinite(nodes.answer.target)
)
_TEXT = (
    *(AT_BASE, AT_LARGEST, AT_TARGET, LOW, PREDICTED, OTHER, SHARE, EXCESS, _GROWTH, _TRUST),
    *(LOSS, OWN_LOSS),
)
"""Columns of a view in text."""


@dataclass(frozen=True, eq=False)
class ForecastView(ViewOfForecast[NodeValues]):
    """A forecast in one of the three views.

    Attributes
    ----------
    forecast : the predictions
    request : view, depth, filter and zoom
    """

    forecast: Answer
    request: ViewRequest
    command = "views"

    @property
    def has_imbalance(self) -> bool:
        """Whether the imbalance of the program has a line."""
        return self.forecast.has_imbalance

    def columns(self, style: TextStyle) -> list[TextColumn]:
        """Return the columns of values, those of pairs of scales, and the hot path."""
        forecast, below, is_whole = self.forecast, self.names_below, self.outline.start == ROOT
        cells = value_cells(forecast, *self.values, inclusive=self.inclusive, style=style)
        cells_below = program_cells(forecast, style=style) if is_whole else ({}, {})
        kind = 1 if self.inclusive else 0

        def pairs_below(costs: Costs, whole: FloatArray) -> list[FloatArray]:
            total = whole if is_whole else np.full_like(whole, np.nan)
            return [*[whole - costs.total] * (len(below) - 1), total]

        pairs = pair_text_columns(
            forecast,
            lambda costs: self.outline.values(costs)[kind],
            pairs_below,
            without_last=forecast.is_comparison,
        )
        made = with_lines_below(cells, cells_below[-len(below) :])
        return [*made.values(), *pairs.values(), self.flags]

    def sentences(self, style: TextStyle) -> list[str]:
        """Return the cost, its uncertainty, and its place; then the fastest scale."""
        return [_verdict(self, style=style), *turning_notes(self.forecast, style=style)]

    def context(self, _style: TextStyle) -> list[str]:
        """Return a description of the measurements and models."""
        fitted, experiment = self.forecast.fitted, self.forecast.fitted.experiment
        measured = f"{points_text(fitted)}{scaling_text(fitted)}{left_out(experiment)}"
        what = f"{fitted.metric.name}, {experiment.reduction.words}"
        return [f"{experiment.name} · {what} · {measured}"]

    def notes(self, _shown: Sequence[TextColumn], header: str, style: TextStyle) -> list[str]:
        """Return the notes below the table."""
        return _footer(self, header, style=style)

    def table(self, findings: Sequence[Finding] = ()) -> Table:
        """Return a table with one row per line of the view."""
        fitted, names = self.forecast.fitted, OutlineColumns(self.outline)

        def nodes(lines: IntArray) -> dict[str, Nodes]:
            own, whole = self.forecast.of_outline(self.outline, lines)
            return {
                kind: Nodes(self.forecast, own, whole, inclusive=is_inclusive, has_total=False)
                for kind, is_inclusive in (("inclusive", True), ("exclusive", False))
            }

        def cells(lines: IntArray) -> dict[str, list[Cell]]:
            both = nodes(lines)
            columns = names.cells(lines)
            columns["metric"] = [fitted.metric.name] * len(lines)
            columns |= {f"growth_{kind}": [*growths(of)] for kind, of in both.items()}
            for kind, of in both.items():
                columns |= {f"{key}_{kind}": its for key, its in file_cells(VALUES, of).items()}
            columns |= pair_cells(self.forecast, lambda costs: self.outline.values_of(lines, costs))
            columns["is_hot"] = self.is_hot[lines].tolist()
            has_value = (~np.isnan(both["inclusive"].main.value)).tolist()
            columns["basis"] = [self.forecast.basis if known else None for known in has_value]
            return columns

        units = {
            f"{key}_{kind}": its
            for kind, of in nodes(np.arange(0)).items()
            for key, its in file_units(VALUES, of).items()
        }
        header = answer_header(
            self.forecast,
            findings,
            first={},
            kind={"view": str(self.request.kind)},
            last=view_header(self),
        )
        return Table(RowColumns(np.arange(len(self.outline)), cells), units, header)


def _verdict(shown: ForecastView, *, style: TextStyle) -> str:
    """Return the sentence that answers: the cost, its uncertainty, and its place."""
    forecast, fitted = shown.forecast, shown.forecast.fitted
    is_finite = np.isfinite(forecast.target)
    at = at_text(fitted, forecast.target)
    if not forecast.repetitions and not forecast.inputs.modelled.any():
        return f"At {at}: nothing could be predicted."
    if forecast.total[0] == 0:
        zero = "zero" if forecast.repetitions else "predicted to be zero"
        return f"At {at}: {fitted.metric.name} is {zero}."
    if not shown.hot or fitted.formula is not None:
        return f"{cost_text(forecast, style=style)}."
    answer = f"As {fitted.parameter} grows without end, "
    if is_finite:
        answer = f"{cost_text(forecast, style=style)}. "
    if forecast.is_comparison:
        answer += f"{comparison_sentence(forecast, style=style)} "
    node, name = shown.culprit
    own, whole = forecast.of_nodes(shown.view, np.array([node]))
    main = whole if shown.inclusive else own
    part = main.excess if forecast.is_comparison else main.share
    growth = forecast.inputs.growth_text(int(main.growth[0]), pretty=not style.ascii_only)
    is_predicted = is_finite and forecast.has_models and not forecast.repetitions
    if is_predicted and is_unknown(int(main.trust[0])):
        growth = "growth not known"
    share = f"{percent(float(part[0]))}{'' if shown.inclusive else ' exclusive'}"
    told = [] if is_predicted and forecast.is_unknown else [share]
    told += [growth] if growth else []
    verb = "lost " * forecast.is_comparison
    top_down = shown.request.kind is ViewKind.TOP_DOWN
    where = f"the hot path leads to {name}" if top_down else f"most is {verb}in {name}"
    where = where[0].upper() + where[1:] if is_finite else where
    answer += f"{where}: {', '.join(told)}." if told else f"{where}."
    return " ".join([answer, *known_notes(forecast), *model_notes(forecast, style=style)])


def value_cells(
    forecast: Answer,
    own: NodeValues,
    whole: NodeValues,
    *,
    inclusive: bool,
    style: TextStyle,
) -> dict[str, TextColumn]:
    """Return the values of lines as text, by name of the column.

    Parameters
    ----------
    forecast : the predictions
    own, whole : exclusive and inclusive values of the lines
    inclusive : whether inclusive values lead
    style : width, length of names, and characters of text

    Returns
    -------
    dict
        The columns of `_TEXT` that apply.
    """
    nodes = Nodes(forecast, own, whole, inclusive=inclusive, has_total=False)
    return text_columns(applying(_TEXT, nodes), nodes, style=style)


def _footer(shown: ForecastView, header: str, *, style: TextStyle) -> list[str]:
    known, unit = shown.forecast.inputs, shown.forecast.fitted.metric.unit
    lines, of = [], ""
    kind = "inclusive" if shown.inclusive else "exclusive"
    fitted, has_models = known.fitted, not known.fitted.is_measured_only
    grows = "growth: of the fastest growing part; " * has_models
    hot = f"the hot path{' of the loss' * shown.forecast.is_comparison}"
    if fitted.formula is not None:
        operand = shown.forecast.size_metric
        grows, of, unit = "the formula of the sums of each line; ", operand.name, operand.unit
        hot = f"the hot path of {of}, which also decides which lines are shown"
    lines.append(f"values: {kind}; {grows}> is {hot}")
    lines += sum_notes(shown.forecast)
    lines += [MODEL_NOTE] if shown.forecast.repetitions and has_models else []
    if shown.forecast.is_comparison:
        lines.append(comparison_note(fitted))
        lines += [OVERLAP_NOTE] if any(each.doubted.any() for each in shown.values) else []
    lines += pair_note(shown.forecast, inclusive=shown.inclusive, header=header)
    lines += [] if has_models else [scales_note(fitted)]
    if len(known.unmodelled) and has_models:
        part = f", {percent(known.unmodelled_share)} of the total at the largest scale"
        lines.append(
            f"not modelled: {counted(len(known.unmodelled), 'call path')}"
            f"{part * fitted.metric.additive}"
        )
    column = 1 if np.isfinite(shown.forecast.target) else 0
    sums = [
        style.amount(float(values[column]), unit)
        for values in (shown.check.counted, shown.check.total)
    ]
    whole = "the sum" if "imbalance" in shown.names_below else f"the total{f' of {of}' * bool(of)}"
    return [*lines, sum_check_text(shown.outline, shown.check, sums, whole)]
