"""Columns of excess work between chosen pairs of scales, and of its mean over all pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from callpath_modeler.analysis.excess import doubtful, overlap
from callpath_modeler.analysis.ideals import ideal_of
from callpath_modeler.arrays import FloatArray
from callpath_modeler.ideal import Ideal
from callpath_modeler.profile.groups import Costs
from callpath_modeler.report.layout import TextColumn
from callpath_modeler.report.measured_only import excess_styles, excess_texts
from callpath_modeler.report.table_formats import Cell, json_number
from callpath_modeler.units import parameter_value, percent

if TYPE_CHECKING:
    from callpath_modeler.analysis.answer import Answer
    from callpath_modeler.analysis.ensemble import EnsembleExcess

ENSEMBLE = "ensemble"
"""Title of the mean over all pairs of measured scales."""


def pair_title(pair: tuple[float, float]) -> str:
    """Return the title of a pair of scales: ``8→64``."""
    return "→".join(map(parameter_value, pair))


def pair_text_columns(
    answer: Answer,
    lines: Callable[[Costs], FloatArray],
    below: Callable[[Costs, FloatArray], Sequence[FloatArray]],
    *,
    without_last: bool,
) -> dict[str, TextColumn]:
    """Return the columns of a table as text, by name; empty if no pairs were chosen.

    Parameters
    ----------
    answer : the source of the excess work
    lines : function that returns the values of lines, [lines, columns]
    below : function that returns the values of further lines, each [columns], from the excess work
        of call paths and that of the program
    without_last : whether the last pair has other columns already
    """
    losses = answer.losses
    if losses is None:
        return {}
    ensemble = answer.ensemble
    values, last = lines(losses.excess), below(losses.excess, losses.total)
    columns = {}
    for k, pair in enumerate(losses.pairs[: len(losses.pairs) - without_last]):
        runs = losses.repetitions(k)
        overlaps = None if runs is None else overlap(lines(runs[0]), lines(runs[1]))
        cells = excess_texts(values[:, k], doubtful(values[:, k], overlaps))
        columns[f"pair{k}"] = TextColumn(
            pair_title(pair),
            [*cells, *(_total(float(row[k])) for row in last)],
            droppable=1,
            styles=[*excess_styles(values[:, k]), *[""] * len(last)],
        )
    if ensemble.count > 1:
        whole = lines(ensemble.costs)[:, 0]
        of_program = np.array([ensemble.total])
        totals = [_total(float(row[0])) for row in below(ensemble.costs, of_program)]
        cells = [percent(x) for x in whole.tolist()]
        columns[ENSEMBLE] = TextColumn(ENSEMBLE, [*cells, *totals], droppable=1)
    return columns


def _total(share: float) -> str:
    """Return the excess work of a further line as text; "" if it has none."""
    return "" if np.isnan(share) else percent(share)


def pair_note(answer: Answer, *, inclusive: bool, header: str | None = None) -> list[str]:
    """Return the meaning of these columns, if pairs were chosen.

    Parameters
    ----------
    answer : the source of the excess work
    inclusive : whether the values are inclusive
    header : header of a table that may lack columns; None = it has all
    """
    losses = answer.losses
    if losses is None:
        return []
    count = answer.ensemble.count
    kind = "inclusive" if inclusive else "exclusive"
    note = f"p→q: {kind} excess work between measured scales = {losses.ideal.formula}"
    mean = f"; {ENSEMBLE}: its mean over all {count} pairs of measured scales"
    titles = [pair_title(pair) for pair in losses.pairs]
    if header is not None and not any(each in header for each in (*titles, "->", ENSEMBLE)):
        return [f"not shown for lack of space: {', '.join(titles)}; use --wide or -f csv"]
    return [note + mean * (count > 1)]


def pair_cells(
    answer: Answer, lines: Callable[[Costs], tuple[FloatArray, FloatArray]]
) -> dict[str, list[Cell]]:
    """Return the columns of a table for programs: exclusive and inclusive, by name.

    Parameters
    ----------
    answer : the source of the excess work
    lines : function that returns exclusive and inclusive values of lines, each [lines, columns]
    """
    losses = answer.losses
    named = {f"excess_{ENSEMBLE}": (answer.ensemble.costs, 0)}
    if losses is not None:
        for k, pair in enumerate(losses.pairs):
            scales = "_".join(map(parameter_value, pair))
            named[f"excess_{scales}"] = (losses.excess, k)
    found: dict[str, list[Cell]] = {}
    for name, (costs, column) in named.items():
        own, whole = lines(costs)
        found[f"{name}_inclusive"] = whole[:, column].tolist()
        found[f"{name}_exclusive"] = own[:, column].tolist()
    return found


def expected_json(ideal: Ideal) -> dict[str, object]:
    """Return the JSON field of expected costs: meaning, formula of excess work, and notes."""
    return {"meaning": ideal.meaning, "formula": ideal.formula, "notes": list(ideal.notes)}


def pair_header(answer: Answer) -> dict[str, object]:
    """Return the JSON fields of the expected costs, of the pairs and of their ensemble."""
    losses = answer.losses
    pairs = [] if losses is None else losses.pairs
    totals = [] if losses is None else losses.total.tolist()
    return {
        "expected": expected_json(ideal_of(answer.fitted)),
        "pairs": [
            {"base": p, "scale": q, "excess": total}
            for (p, q), total in zip(pairs, totals, strict=True)
        ],
        ENSEMBLE: ensemble_json(answer.ensemble),
    }


def ensemble_json(ensemble: EnsembleExcess) -> dict[str, object]:
    """Return the JSON field of the mean over all pairs of measured scales."""
    return {"pairs": ensemble.count, "excess": json_number(ensemble.total)}
