"""Columns of values of nodes, for rankings and views: text by name of the column."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from callpath_modeler.analysis.trust import marks_text
from callpath_modeler.arrays import FloatArray
from callpath_modeler.report.columns import (
    band_text,
    band_title,
    has_maxima,
    max_title,
    ratio_text,
    share_texts,
    value_titles,
)
from callpath_modeler.report.headline import off_by
from callpath_modeler.report.layout import TextColumn, TextStyle
from callpath_modeler.report.measured_only import excess_styles, excess_symbol, excess_texts
from callpath_modeler.units import percent, signed_percent

if TYPE_CHECKING:
    from callpath_modeler.analysis.answer import Answer
    from callpath_modeler.analysis.node_values import NodeValues


def value_columns(
    answer: Answer, own: NodeValues, whole: NodeValues, *, inclusive: bool, style: TextStyle
) -> dict[str, TextColumn]:
    """Return the values of nodes as text, by name of the column.

    Parameters
    ----------
    answer : the answer
    own, whole : exclusive and inclusive values of the nodes
    inclusive : whether inclusive values lead
    style : characters of text

    Returns
    -------
    dict
        ``measured`` (at the largest scale), ``value``, ``band``, ``model`` (error of the model),
        ``other`` (the value that does not lead), ``share``, ``excess``, ``trust``. In a comparison,
        ``base`` (at the smaller scale), ``loss`` and ``own_loss`` (excess work).
    """
    unit = answer.fitted.metric.unit
    main, other = (whole, own) if inclusive else (own, whole)

    def texts(values: FloatArray) -> list[str]:
        return [style.amount(value, unit) for value in values.tolist()]

    ends = zip(main.low.tolist(), main.high.tolist(), strict=True)
    bands = [band_text(low, high, unit, style=style) for low, high in ends]
    errors = [signed_percent(error) for error in main.deviation.tolist()]
    largest, target = value_titles(answer)
    columns = {
        "measured": TextColumn(largest, texts(main.at_largest), droppable=-1),
        "value": TextColumn(target, texts(main.value)),
        "band": TextColumn(band_title(answer), bands, droppable=-2),
        "model": TextColumn("model", errors, droppable=2),
        "other": TextColumn("own" if inclusive else "inclusive", texts(other.value), droppable=7),
        "trust": TextColumn("trust", [*map(marks_text, main.trust)], droppable=-3),
    }
    if answer.fitted.metric.additive:
        before, after = np.nan_to_num(main.share_at_largest).tolist(), main.share.tolist()
        excess = [percent(value) for value in main.excess.tolist()]
        kept = -1 if answer.fitted.ideal else 6
        columns["share"] = TextColumn("share", share_texts(answer, before, after), droppable=5)
        columns["excess"] = TextColumn("excess", excess, droppable=kept)
    if answer.is_comparison:
        columns["base"] = TextColumn(largest, texts(main.at_base), droppable=-1)
        columns |= loss_columns(answer, own, whole)
    return columns


def loss_columns(answer: Answer, own: NodeValues, whole: NodeValues) -> dict[str, TextColumn]:
    """Return inclusive and exclusive excess work of nodes; a narrow table keeps both."""
    name = excess_symbol(answer.fitted)
    return {
        key: TextColumn(
            title,
            excess_texts(values.excess, values.doubted),
            droppable=-1,
            styles=excess_styles(values.excess),
        )
        for key, title, values in (("loss", name, whole), ("own_loss", f"own {name}", own))
    }


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
