"""Losses between two scales: texts without models, and columns of chosen pairs of scales."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from callpath_modeler.analysis.excess_work import NOTICEABLE, doubtful, overlap
from callpath_modeler.analysis.ideals import ideal_of
from callpath_modeler.analysis.measured_only import LEAST_SCALES
from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.fitted import Fitted, Ideal
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.profile.groups import Costs
from callpath_modeler.profile.schema import Metric
from callpath_modeler.report.layout import TextColumn, TextStyle
from callpath_modeler.report.table_formats import Cell
from callpath_modeler.units import parameter_value, percent, setting_text

if TYPE_CHECKING:
    from callpath_modeler.analysis.answer import Answer
    from callpath_modeler.analysis.ensemble import EnsembleExcess


LOSS, GAIN = "red", "green"
"""Colours of excess work."""

_NUMBERS = ("no", "one", "two", "three")


def excess_styles(excess: FloatArray) -> list[str]:
    """Return the colour of each excess work: losses and gains differ, small ones have none."""
    return [
        LOSS if value >= NOTICEABLE else GAIN if value <= -NOTICEABLE else ""
        for value in np.nan_to_num(excess).tolist()
    ]


OVERLAP_NOTE = "~ the repetitions of both scales overlap, so noise may explain the difference"
"""Meaning of the sign before excess work."""


def excess_texts(excess: FloatArray, doubted: BoolArray) -> list[str]:
    """Return excess work as text, with ``~`` where noise of the repetitions could explain it."""
    pairs = zip(excess.tolist(), doubted.tolist(), strict=True)
    return ["~" * doubt + percent(share) for share, doubt in pairs]


def loss_sentence(
    metric: Metric,
    where: str,
    total: float,
    run_time: float,
    *,
    style: TextStyle,
    is_scaling: bool = True,
    band: str = "",
) -> str:
    """Return the sentence that tells the loss of the whole program, without a full stop.

    Parameters
    ----------
    metric : the metric
    where : the two scales, as ``From p = 8 to 64``
    total : excess work of the program
    run_time : cost of the program at the larger scale, per process
    style : characters of text
    is_scaling : perfect scaling is expected; otherwise, 1 - X is not an efficiency
    band : band of the excess work as text, if costs are predicted
    """
    kept = f"efficiency {percent(1 - total)}" if is_scaling else f"{percent(1 - total)} is expected"
    left = f"{kept}; {band}" if band else kept
    amounts = [style.amount(v, metric.unit) for v in (abs(total) * run_time, run_time)]
    if abs(total) < NOTICEABLE and is_scaling:
        return f"{where} nothing is lost: the {left.replace('efficiency', 'efficiency is', 1)}"
    if abs(total) < NOTICEABLE:
        return f"{where} the {metric.name} is as expected" + f" (excess work {band})" * bool(band)
    if total < 0:
        say = "scaling is superlinear" if is_scaling else f"the {metric.name} is below expectation"
        less = f"{amounts[0]} less than {'with perfect scaling' if is_scaling else 'expected'}"
        return f"{where} {say}: {less} (excess work {percent(total)}, {left})"
    what = "of the time is lost" if metric.can_be_run_time else f"of {metric.name} is excess"
    if not is_scaling:
        what = f"of the {metric.name} is beyond the expectation"
    return f"{where}, {percent(total)} {what}: {amounts[0]} of {amounts[1]} ({left})"


def comparison_sentence(answer: Answer, *, style: TextStyle) -> str:
    """Return the loss of the program between the two scales that are compared, and its formula."""
    fitted, total = answer.fitted, answer.total_excess
    ideal, target = ideal_of(fitted), parameter_value(answer.target)
    ends = f"At {fitted.parameter} = {target}"
    if ideal.is_relative:
        ends = f"From {fitted.parameter} = {parameter_value(answer.base)} to {target}"
    if fitted.held:
        ends += f" at {setting_text(fitted.held)}"
    told = loss_sentence(
        fitted.metric,
        ends,
        total,
        answer.cost_per_process,
        style=style,
        is_scaling=ideal.scaling is not None,
    )
    return f"{told}."


def comparison_note(fitted: Fitted) -> str:
    """Return the meaning of the columns of excess work, and how to change it."""
    ideal, experiment = ideal_of(fitted), fitted.experiment
    scaling = ideal.scaling
    if scaling is None:
        told = "; ".join([f"excess: inclusive excess work = {ideal.formula}", ideal.meaning])
        return "; ".join([told, "excl.: exclusive; negative: less than expected", *ideal.notes])
    why = f" ({experiment.scaling_reason})" if scaling is experiment.scaling else ""
    other = Scaling.WEAK if scaling is Scaling.STRONG else Scaling.STRONG
    switch = f"; --scaling {other} for the other" if scaling is experiment.scaling else ""
    return (
        f"excess: inclusive excess work = {ideal.formula}, {scaling} scaling{why}"
        f"{switch}; excl.: exclusive; negative: superlinear"
    )


def scales_note(fitted: Fitted) -> str:
    """Return why nothing is predicted, and what would allow it; "" with models."""
    if not fitted.is_measured_only:
        return ""
    unknown = "the scale of the runs is unknown: name it, e.g. --param p=name; "
    return f"{unknown * fitted.has_unknown_scale}measured values, no predictions: {wanted(fitted)}"


def wanted(fitted: Fitted, everything: str = "omit --pair") -> str:
    """Return what would allow models: more scales, or all the measured ones.

    Parameters
    ----------
    fitted : measured values without models
    everything : how to see all measured scales
    """
    known = len(fitted.line.points(fitted.parameter))
    if known > len(fitted.points):
        return f"two of {known} scales are compared, and all of them allow models: {everything}"
    missing = LEAST_SCALES - known
    return f"{_NUMBERS[missing]} more scale{'s' * (missing > 1)} would allow models"


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
    return {"pairs": ensemble.count, "excess": ensemble.total}
