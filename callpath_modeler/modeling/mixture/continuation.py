"""Wider bands for single runs, by the last two points continued with a power law.

Without repetitions the noise is unknown, and a law may fit closely by chance. The last two points,
continued with a power law, give a second opinion about the next scale. In programs that were
measured once, predictions were off by more where the two opinions differed more. See
docs/explanation/noise-and-bands.md, 'Prediction and band'.
"""

from __future__ import annotations

import numpy as np

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.constants.bands import DEVIATES
from callpath_modeler.modeling.constants.outcome import (
    LAST_DIGIT,
    MOST_DRIFT,
)
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
from callpath_modeler.modeling.mixture.outcome import Columns
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows
from callpath_modeler.modeling.shapes import evaluate


def widen(
    columns: Columns, rows: IntArray, data: ScaledRows, unit: FloatArray, hypotheses: Hypotheses
) -> None:
    """Increase the drift of single runs until bands reach the continuation of the last two points.

    Parameters
    ----------
    columns : columns of the models of all rows; `drift` grows
    rows : [n] numbers of the rows of `data`
    data : the rows that were fitted
    unit : [n] unit of each of them
    hypotheses : hypotheses with the shapes of the models
    """
    single = np.isnan(columns["noise"][rows]) & (columns["spread"][rows] > LAST_DIGIT)
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
    beyond_noise = distance**2 - columns["spread"][some] ** 2
    beyond_noise = np.where(np.isfinite(beyond_noise), np.maximum(beyond_noise, 0.0), 0.0)
    more = (1 / DEVIATES) ** 2 * beyond_noise / np.log2(step)
    columns["drift"][some] = np.minimum(columns["drift"][some] + more, MOST_DRIFT)
