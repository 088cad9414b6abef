"""What single runs leave open: models against the last two measurements, continued by a power law.

Without repetitions nobody knows the noise. A law that fits closely may do so by chance, and says
something else of the next scale than the last two measurements do. In programs that were measured
once, predictions were off the more, the further both were apart.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
from callpath_modeler.modeling.mixture.outcome import MOST_DRIFT, Columns
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows
from callpath_modeler.modeling.shapes import evaluate

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

_SHARE = 1.0
"""Of the distance, how far a band of 95 % reaches on either side at least. Of measured programs
that are predicted one scale ahead, left out one by one, all agree with 0.75 to 1."""
_OUTER = 1.959963984540054
_OF_NOISE = 1.0
"""Variance of the value that two points are continued to, 2 y - z in logarithms, against theirs."""
_EXACT = 1e-5
"""Relative deviation up to which a law is met to the last digit, and believed."""


def widen(
    columns: Columns, rows: IntArray, data: ScaledRows, unit: FloatArray, hypotheses: Hypotheses
) -> None:
    """Let deviations of single runs drift as far as their models leave the last two points.

    Parameters
    ----------
    columns : models of all rows; `drift` grows
    rows : [n] those of `data`
    unit : [n] of `data`
    hypotheses : the shapes of the models
    """
    single = np.isnan(columns["noise"][rows]) & (columns["spread"][rows] > _EXACT)
    its = np.flatnonzero(single)
    there = (data.weight[its] > 0) & (data.values[its] > 0)
    enough = there.sum(axis=1) >= 2
    its, there = its[enough], there[enough]
    before, last = np.argsort(there, axis=1, kind="stable")[:, -2:].T
    every, some = np.arange(len(its)), rows[its]
    with np.errstate(divide="ignore"):
        log = np.log(data.values[its] * unit[its, None])
    ahead = 2 * log[every, last] - log[every, before]
    step = data.points[last] / data.points[before]
    target = data.points[last] * step
    places, which = np.unique(target, return_inverse=True)
    terms, numbers = columns["terms"][some], columns["coefficients"][some]
    predicted = evaluate(hypotheses.shapes, terms, numbers, places)[every, which]
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.log(predicted) - ahead
    beyond_noise = distance**2 - _OF_NOISE * columns["spread"][some] ** 2
    beyond_noise = np.where(np.isfinite(beyond_noise), np.maximum(beyond_noise, 0.0), 0.0)
    more = (_SHARE / _OUTER) ** 2 * beyond_noise / np.log2(step)
    columns["drift"][some] = np.minimum(columns["drift"][some] + more, MOST_DRIFT)
