"""Columns of values of nodes, which rankings and views share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from callpath_modeler.analysis.trust import marks_text
from callpath_modeler.arrays import FloatArray
from callpath_modeler.report.column import Column, applying, text_columns
from callpath_modeler.report.columns import (
    band_text,
    band_title,
    has_maxima,
    max_title,
    ratio_text,
    repeats_the_largest,
    share_texts,
    value_titles,
)
from callpath_modeler.report.headline import off_by
from callpath_modeler.report.layout import DEFAULT_STYLE, TextColumn, TextStyle
from callpath_modeler.report.measured_only import excess_styles, excess_symbol, excess_texts
from callpath_modeler.units import percent, signed_percent

if TYPE_CHECKING:
    from callpath_modeler.analysis.answer import Answer
    from callpath_modeler.analysis.node_values import NodeValues


@dataclass(frozen=True, eq=False)
class Nodes:
    """Nodes of an answer, which are the rows of a table.

    Attributes
    ----------
    answer : the answer
    own, whole : exclusive and inclusive values of the nodes
    inclusive : whether inclusive values lead
    has_total : whether a line below has the total with its band
    """

    answer: Answer
    own: NodeValues
    whole: NodeValues
    inclusive: bool
    has_total: bool

    @property
    def main(self) -> NodeValues:
        """The values that lead."""
        return self.whole if self.inclusive else self.own

    @property
    def other(self) -> NodeValues:
        """The values that do not lead."""
        return self.own if self.inclusive else self.whole


def unit(nodes: Nodes) -> str:
    """Return the unit of the metric."""
    return nodes.answer.fitted.metric.unit


def has_models(nodes: Nodes) -> bool:
    """Return whether models give growth and trust."""
    return not nodes.answer.fitted.is_measured_only


def _has_band(nodes: Nodes) -> bool:
    """Return whether a node or the total has a band; there is none at infinity."""
    answer = nodes.answer
    known = nodes.has_total and not np.isnan(answer.program_total[1])
    return bool(np.isfinite(answer.target)) and bool(known or not np.isnan(nodes.main.low).all())


def _bands(nodes: Nodes, style: TextStyle) -> list[str]:
    ends = zip(nodes.main.low.tolist(), nodes.main.high.tolist(), strict=True)
    return [band_text(low, high, unit(nodes), style=style) for low, high in ends]


def _shares(nodes: Nodes, _: TextStyle) -> list[str]:
    before, after = np.nan_to_num(nodes.main.share_at_largest), nodes.main.share
    return share_texts(nodes.answer, before.tolist(), after.tolist())


def _amounts(values: Callable[[Nodes], FloatArray]) -> Callable[[Nodes, TextStyle], list[str]]:
    """Return the function that formats values, which are NaN without a value, as amounts."""
    return lambda nodes, style: [
        style.amount(value, unit(nodes)) for value in values(nodes).tolist()
    ]


def _measured(nodes: Nodes) -> bool:
    """Return whether the largest scale is not the target, and has a column of its own."""
    return has_models(nodes) and not repeats_the_largest(nodes.answer)


def _loss(key: str, name: str, place: int, values: Callable[[Nodes], NodeValues]) -> Column[Nodes]:
    """Return a column of excess work between two scales, which a narrow table keeps."""
    before = "own " * (name == "own_loss")
    return Column(
        key=key,
        help="excess work between the smallest scale and the target",
        cells=lambda nodes: values(nodes).excess,
        title=lambda nodes: before + excess_symbol(nodes.answer.fitted),
        text=lambda nodes, _: excess_texts(values(nodes).excess, values(nodes).doubted),
        styles=lambda nodes: excess_styles(values(nodes).excess),
        droppable=-1,
        name=name,
        place=place,
        applies=lambda nodes: nodes.answer.is_comparison,
    )


AT_BASE: Column[Nodes] = Column(
    key="value_at_base",
    help="measured at the base of excess work, which is the smallest scale",
    cells=lambda nodes: nodes.main.at_base,
    unit=unit,
    title=lambda nodes: value_titles(nodes.answer)[0],
    text=_amounts(lambda nodes: nodes.main.at_base),
    droppable=-1,
    name="base",
    place=1,
    applies=lambda nodes: nodes.answer.is_comparison,
)
AT_LARGEST: Column[Nodes] = Column(
    key="value_at_largest",
    help="measured at the largest scale, over repetitions",
    cells=lambda nodes: nodes.main.at_largest,
    unit=unit,
    title=lambda nodes: value_titles(nodes.answer)[0],
    text=_amounts(lambda nodes: nodes.main.at_largest),
    droppable=-1,
    name="measured",
    place=2,
    applies=_measured,
)
AT_TARGET: Column[Nodes] = Column(
    key="value_at_target",
    help="measured or predicted value at the target: see `basis`",
    cells=lambda nodes: nodes.main.value,
    unit=unit,
    title=lambda nodes: value_titles(nodes.answer)[1],
    text=_amounts(lambda nodes: nodes.main.value),
    name="value",
    place=3,
)
LOW: Column[Nodes] = Column(
    key="low",
    help="confidence interval of the measurement, or band of the prediction",
    cells=lambda nodes: nodes.main.low,
    unit=unit,
    title=lambda nodes: band_title(nodes.answer),
    text=_bands,
    droppable=-2,
    name="band",
    place=4,
    applies=_has_band,
)
HIGH: Column[Nodes] = Column(
    key="high", help=LOW.help, cells=lambda nodes: nodes.main.high, unit=unit
)
OTHER: Column[Nodes] = Column(
    key="",
    help="the value that does not lead: exclusive or inclusive",
    cells=lambda nodes: nodes.other.value,
    title=lambda nodes: "own" if nodes.inclusive else "inclusive",
    text=_amounts(lambda nodes: nodes.other.value),
    droppable=7,
    name="other",
    place=8,
)
SHARE_AT_LARGEST: Column[Nodes] = Column(
    key="share_at_largest",
    help="fraction of the run time, or of the total without one",
    cells=lambda nodes: nodes.main.share_at_largest,
)
SHARE: Column[Nodes] = Column(
    key="share_at_target",
    help=SHARE_AT_LARGEST.help,
    cells=lambda nodes: nodes.main.share,
    title="share",
    text=_shares,
    droppable=5,
    name="share",
    place=11,
    applies=lambda nodes: nodes.answer.fitted.metric.additive,
)
EXCESS: Column[Nodes] = Column(
    key="excess",
    help="excess work between the smallest scale and the target",
    cells=lambda nodes: nodes.main.excess,
    title="excess",
    name="excess",
    text=lambda nodes, _: [percent(value) for value in nodes.main.excess.tolist()],
    droppable=lambda nodes: -1 if nodes.answer.fitted.ideal else 6,
    place=12,
    applies=lambda nodes: has_models(nodes) and nodes.answer.fitted.metric.additive,
)
EXCESS_LOW: Column[Nodes] = Column(
    key="excess_low",
    help="its band at a predicted target",
    cells=lambda nodes: nodes.main.excess_low,
)
EXCESS_HIGH: Column[Nodes] = Column(
    key="excess_high", help=EXCESS_LOW.help, cells=lambda nodes: nodes.main.excess_high
)
PREDICTED: Column[Nodes] = Column(
    key="predicted",
    help="prediction, even if the target was measured",
    cells=lambda nodes: nodes.main.predicted,
    unit=unit,
    title="model",
    text=lambda nodes, _: [signed_percent(error) for error in nodes.main.deviation.tolist()],
    droppable=2,
    name="model",
    place=7,
    applies=lambda nodes: has_models(nodes) and nodes.answer.repetitions > 0,
)
TRUST: Column[Nodes] = Column(
    key="trust",
    help="0 to 4 marks",
    cells=lambda nodes: [int(mark) if mark >= 0 else None for mark in nodes.main.trust],
    title="trust",
    text=lambda nodes, _: [*map(marks_text, nodes.main.trust)],
    droppable=-3,
    place=15,
    applies=has_models,
)
LOSS = _loss("", "loss", 16, lambda nodes: nodes.whole)
OWN_LOSS = _loss("", "own_loss", 17, lambda nodes: nodes.own)

VALUES = (
    *(AT_BASE, AT_LARGEST, AT_TARGET, LOW, HIGH, SHARE_AT_LARGEST, SHARE),
    *(EXCESS, EXCESS_LOW, EXCESS_HIGH, PREDICTED, TRUST),
)
"""Columns of exclusive values, and of inclusive ones, in files."""


def loss_columns(answer: Answer, own: NodeValues, whole: NodeValues) -> dict[str, TextColumn]:
    """Return inclusive and exclusive excess work of nodes between two scales as text."""
    nodes = Nodes(answer, own, whole, inclusive=True, has_total=False)
    return text_columns(applying((LOSS, OWN_LOSS), nodes), nodes, style=DEFAULT_STYLE)


def program_cells(answer: Answer, *, style: TextStyle) -> tuple[dict[str, str], dict[str, str]]:
    """Return the cells of the imbalance and of the total, by name of the column."""
    unit = answer.fitted.metric.unit
    imbalance = {
        "measured": style.amount(answer.imbalance_at_largest, unit),
        "base": style.amount(answer.imbalance_at_base, unit),
        "value": style.amount(answer.imbalance, unit),
        **dict.fromkeys(("excess", "loss", "own_loss"), percent(answer.imbalance_excess)),
    }
    total = {
        "measured": style.amount(answer.program_at_largest, unit),
        "base": style.amount(answer.program_at_base, unit),
        "value": style.amount(answer.program_total[0], unit),
        "band": band_text(*answer.program_total[1:], unit, style=style),
        "model": off_by(answer),
        **dict.fromkeys(("excess", "loss"), percent(answer.total_excess)),
    }
    return imbalance, total


def process_columns(
    answer: Answer, rows: Sequence[int | None], *, style: TextStyle
) -> dict[str, TextColumn]:
    """Return maxima over processes and the imbalance at the largest scale, by name of the column.

    They are next to exclusive means and sums. Lines with several call paths (None) have none,
    because their slowest processes may differ.
    """
    fitted, (maximum, imbalance) = answer.fitted, answer.maxima_at_largest
    if not has_maxima(fitted, maximum):
        return {}

    def texts(values: FloatArray, text: Callable[[float], str]) -> list[str]:
        return ["" if row is None else text(float(values[row])) for row in rows]

    maxima = texts(maximum, lambda value: style.amount(value, fitted.metric.unit))
    return {
        "maximum": TextColumn(max_title(fitted), maxima, droppable=7),
        "imbalance": TextColumn("imbalance", texts(imbalance, ratio_text), droppable=7),
    }


def with_lines_below(
    columns: Mapping[str, TextColumn], below: Sequence[Mapping[str, str]]
) -> dict[str, TextColumn]:
    """Return columns with further lines, each by name of the column; "" = an empty cell."""
    return {
        name: replace(
            column,
            cells=[*column.cells, *(line.get(name, "") for line in below)],
            styles=[*column.styles, *[""] * len(below)] if column.styles else (),
        )
        for name, column in columns.items()
    }
