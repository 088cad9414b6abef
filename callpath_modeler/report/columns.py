"""Columns that rankings and views share: what stands beside a value at a target."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.units import interval, parameter_value, percent, quantity

if TYPE_CHECKING:
    from callpath_modeler.analysis.forecast import Forecast
    from callpath_modeler.analysis.rank import Ranking
    from callpath_modeler.fitted import Fitted
    from callpath_modeler.report.layout import TextColumn

MODEL_NOTE = "model: how far what models say of the target is off what was measured there"
"""What the column of that name is."""


def value_titles(answer: Ranking | Forecast) -> tuple[str, str]:
    """Name the columns of values at the largest scale and at the target: ``p=125``, ``p=1000``."""
    fitted, target = answer.fitted, answer.target
    largest, there = (
        f"{fitted.parameter}={parameter_value(at)}" for at in (fitted.points[-1], target)
    )
    # What models say of the largest scale stands beside what was measured there.
    return largest, "predicted" if there == largest and not answer.repetitions else there


def band_title(answer: Ranking | Forecast) -> str:
    """Name the column of bands, or of intervals of what was measured."""
    confidence = answer.fitted.models.confidence
    return f"{confidence:.0%} {'interval' if answer.repetitions else 'band'}"


def band_text(low: float, high: float, unit: str, *, ascii_only: bool) -> str:
    """Write a band or an interval; ``-`` where there is none."""
    return "-" if math.isnan(low) else interval(low, high, unit, ascii_only=ascii_only)


def amount_text(value: float, low: float, high: float, unit: str, *, ascii_only: bool) -> str:
    """Write a value with its band or interval, if it has one: ``2.03 s (1.99 … 2.06 s)``."""
    amount = quantity(value, unit, ascii_only=ascii_only)
    if math.isnan(low):
        return amount
    return f"{amount} ({interval(low, high, unit, ascii_only=ascii_only)})"


def share_texts(
    answer: Ranking | Forecast, before: Sequence[float], after: Sequence[float]
) -> list[str]:
    """Write shares at the largest scale and at the target; one where that is the same."""
    if _repeats_the_largest(answer):
        return [percent(share) for share in after]
    pairs = zip(before, after, strict=True)
    return [f"{percent(first)} → {percent(then)}" for first, then in pairs]


def informative(
    answer: Ranking | Forecast, columns: Mapping[str, TextColumn]
) -> dict[str, TextColumn]:
    """Leave out columns that say nothing, or the same as others.

    That are ``band`` at infinity, ``model`` where models are what tells, and ``measured`` where the
    largest scale is the target, and its runs are what tells.
    """
    needless = set()
    if np.isinf(answer.target):
        needless.add("band")
    if not answer.repetitions:
        needless.add("model")
    if _repeats_the_largest(answer):
        needless.add("measured")
    return {name: column for name, column in columns.items() if name not in needless}


def _repeats_the_largest(answer: Ranking | Forecast) -> bool:
    """Tell whether values at the target are those at the largest scale."""
    return answer.repetitions > 0 and answer.target == answer.fitted.points[-1]


def has_maxima(fitted: Fitted, maximum: FloatArray) -> bool:
    """Tell whether maxima over processes say more than exclusive values do: means or sums."""
    several = any(run.extent.processes > 1 for run in fitted.experiment.runs)
    reduced = fitted.experiment.reduction in {Reduction.MEAN, Reduction.SUM}
    return several and reduced and not bool(np.isnan(maximum).all())


def ratio_text(ratio: float) -> str:
    """Write an imbalance; ``-`` where it is not known."""
    return "-" if math.isnan(ratio) else f"{ratio:.2f}"
