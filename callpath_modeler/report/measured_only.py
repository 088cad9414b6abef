"""Texts of measured values without models: the losses between two scales, and missing scales."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from callpath_modeler.analysis.excess import NOTICEABLE
from callpath_modeler.analysis.ideals import ideal_of
from callpath_modeler.analysis.measured_only import LEAST_SCALES
from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.profile.schema import Metric
from callpath_modeler.report.layout import TextStyle
from callpath_modeler.units import parameter_value, percent, setting_text

if TYPE_CHECKING:
    from callpath_modeler.analysis.answer import Answer

LOSS, GAIN = "red", "green"
"""Colours of excess work."""

_NUMBERS = ("no", "one", "two", "three")


def excess_symbol(fitted: Fitted) -> str:
    """Return the symbol of excess work: ``X_s`` of strong scaling, ``X_w`` of weak scaling.

    It is ``X`` for other expected costs.
    """
    symbols: dict[Scaling | None, str] = {Scaling.STRONG: "X_s", Scaling.WEAK: "X_w"}
    return symbols.get(ideal_of(fitted).scaling, "X")


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
    ideal, name, experiment = ideal_of(fitted), excess_symbol(fitted), fitted.experiment
    scaling = ideal.scaling
    if scaling is None:
        told = "; ".join([f"{name}: inclusive excess work = {ideal.formula}", ideal.meaning])
        return "; ".join([told, "own: exclusive; negative: less than expected", *ideal.notes])
    why = f" ({experiment.scaling_reason})" if scaling is experiment.scaling else ""
    other = Scaling.WEAK if scaling is Scaling.STRONG else Scaling.STRONG
    switch = f"; --scaling {other} for the other" if scaling is experiment.scaling else ""
    return (
        f"{name}: inclusive excess work = {ideal.formula}, {scaling} scaling{why}"
        f"{switch}; own: exclusive; negative: superlinear"
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
