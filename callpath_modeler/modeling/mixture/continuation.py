"""Models beyond the last point: bands of single runs, and the next step of staircases.

Without repetitions the noise is unknown, and a law may fit closely by chance. The last two points,
continued with a power law, give a second opinion about the next scale. In programs that were
measured once, predictions were off by more where the two opinions differed more. See
docs/explanation/noise-and-bands.md, 'Prediction and band'.

Levels of a tree, blocks of a process and iterations stay the same over several scales and then
change by a step. A law that fits such values exactly does so by chance, and does not predict the
next step. So there are two more hypotheses: the last value stays, or the last step is repeated at
each further scale. See docs/explanation/noise-and-bands.md, 'Whole numbers'.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.constants.evidence import DEVIATES
from callpath_modeler.modeling.constants.outcome import (
    LAST_DIGIT,
    MOST_DRIFT,
    NEXT_STEP_SHARE,
    REPEATED,
)
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
from callpath_modeler.modeling.mixture.outcome import Columns, add_alternatives
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows
from callpath_modeler.modeling.shapes import evaluate
from callpath_modeler.modeling.terms import Term


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


_LOGARITHM = Term(Fraction(0), 1)
"""Term of a step at each further scale."""


def with_next_steps(
    columns: Columns, rows: IntArray, data: ScaledRows, unit: FloatArray, hypotheses: Hypotheses
) -> None:
    """Replace the two least probable alternatives of staircases by the two hypotheses.

    Parameters
    ----------
    columns : columns of the models of all rows; `weight` and the columns of alternatives change
    rows : [n] numbers of the rows of `data`
    data : the rows that were fitted, in one parameter
    unit : [n] unit of each of them
    hypotheses : hypotheses with the shapes of the models
    """
    logarithm = next((k for k, each in enumerate(hypotheses.shapes) if each == _LOGARITHM), None)
    its = _staircases(data)
    if logarithm is None or not its.size:
        return
    points, values = data.points, data.values[its] * unit[its, None]
    last, step = values[:, -1], _last_step(values)
    per_doubling = step / np.log2(points[-1] / points[-2])
    # Repeated steps downwards must stay above zero; otherwise there is one more, in proportion.
    repeated = last + REPEATED * step > 0
    next_one, stays = np.zeros((2, len(its), 2))
    next_one[:, 0] = np.where(
        repeated, last - per_doubling * np.log2(points[-1]), last**2 / np.maximum(last - step, last)
    )
    next_one[:, 1] = np.where(repeated, per_doubling, 0.0)
    stays[:, 0] = last
    terms = np.full((len(its), 2, 1), -1)
    terms[:, 1, 0] = np.where(repeated, logarithm, -1)
    numbers = np.stack([stays, next_one], axis=1)
    add_alternatives(columns, rows[its], terms, numbers, NEXT_STEP_SHARE)


def _staircases(data: ScaledRows) -> IntArray:
    """Return the rows of small whole numbers that change in one direction and are due for a step.

    A step is due where the last value lasted as long as the one before, give or take one scale. The
    length of the first value is not known, since smaller scales may have it as well.
    """
    steps = np.diff(data.values, axis=1)
    tread = np.abs(steps) <= np.sqrt(data.rounding)[:, None]
    rises, falls = (steps > 0) & ~tread, (steps < 0) & ~tread
    one_way = rises.any(axis=1) != falls.any(axis=1)
    whole = (data.rounding > 0) & (data.weight > 0).all(axis=1) & (data.values > 0).all(axis=1)
    # Lengths from the last point on; a step before the first point ends the first value.
    backwards = np.column_stack([~tread[:, ::-1], np.ones(len(tread), dtype=np.bool_)])
    last = np.argmax(backwards, axis=1)
    backwards[np.arange(len(tread)), last] = False
    before = np.argmax(backwards, axis=1) - last
    is_first = last + before == tread.shape[1]
    is_due = (before <= last + 2) & (is_first | (last <= before))
    return np.flatnonzero(whole & one_way & tread.any(axis=1) & is_due)


def _last_step(values: FloatArray) -> FloatArray:
    """Return the last change of each row, [n]."""
    steps = np.diff(values, axis=1)
    last = steps.shape[1] - 1 - np.argmax(steps[:, ::-1] != 0, axis=1)
    return np.asarray(steps[np.arange(len(steps)), last])
