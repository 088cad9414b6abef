"""Columns that rankings and views share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.report.layout import TextStyle
from callpath_modeler.units import parameter_value, percent

if TYPE_CHECKING:
    from callpath_modeler.analysis.answer import Answer
    from callpath_modeler.fitted import Fitted

MODEL_NOTE = "model: error of the models' prediction against the measurement at the target"
"""Definition of the column ``model``."""


def value_titles(answer: Answer) -> tuple[str, str]:
    """Return the titles of values at the largest scale and at the target: ``p=125``, ``p=1000``.

    In a comparison, the first title is that of the smaller scale.
    """
    fitted, target = answer.fitted, answer.target
    if fitted.has_unknown_scale:
        return fitted.metric.name, fitted.metric.name
    before = answer.base if answer.is_comparison else fitted.points[-1]
    largest, there = (f"{fitted.parameter}={parameter_value(at)}" for at in (before, target))
    # The prediction for the largest scale is next to the measurement there.
    return largest, "predicted" if there == largest and not answer.repetitions else there


def band_title(answer: Answer) -> str:
    """Return the title of the column of prediction bands, or of confidence intervals."""
    confidence = answer.fitted.models.confidence
    return f"{confidence:.0%} {'interval' if answer.repetitions else 'band'}"


def band_text(low: float, high: float, unit: str, *, style: TextStyle) -> str:
    """Return a band or an interval as text; ``-`` without one."""
    return "-" if math.isnan(low) else style.interval(low, high, unit)


def amount_text(value: float, low: float, high: float, unit: str, *, style: TextStyle) -> str:
    """Return a value with its band or interval, if it has one: ``2.03 s (1.99 … 2.06 s)``."""
    amount = style.amount(value, unit)
    if math.isnan(low):
        return amount
    return f"{amount} ({style.interval(low, high, unit)})"


def share_texts(answer: Answer, before: Sequence[float], after: Sequence[float]) -> list[str]:
    """Return shares at the largest scale and at the target; only one if the scales are the same."""
    if repeats_the_largest(answer) or answer.fitted.is_measured_only:
        return [percent(share) for share in after]
    pairs = zip(before, after, strict=True)
    return [f"{percent(first)} → {percent(then)}" for first, then in pairs]


def repeats_the_largest(answer: Answer) -> bool:
    """Return whether the values at the target are the values at the largest scale."""
    return answer.repetitions > 0 and answer.target == answer.fitted.points[-1]


def has_maxima(fitted: Fitted, maximum: FloatArray) -> bool:
    """Return whether maxima over processes differ from the exclusive values (means or sums)."""
    several = any(run.extent.processes > 1 for run in fitted.experiment.runs)
    reduced = fitted.experiment.reduction in {Reduction.MEAN, Reduction.SUM}
    return several and reduced and not bool(np.isnan(maximum).all())


def max_title(fitted: Fitted) -> str:
    """Return the title of maxima over processes, which are of the largest scale."""
    if fitted.has_unknown_scale:
        return "max"
    return f"max {fitted.parameter}={parameter_value(fitted.points[-1])}"


def ratio_text(ratio: float) -> str:
    """Return an imbalance as text; ``-`` if it is not known."""
    return "-" if math.isnan(ratio) else f"{ratio:.2f}"
