"""Staircases of small whole numbers, with hypotheses about their next step.

Levels of a tree, blocks of a process and iterations stay the same over several scales and then
change by a step. A law that fits such values exactly does so by chance, and does not predict the
next step. So there are two more hypotheses: the last value stays, or the last step is repeated at
each further scale. See docs/explanation/noise-and-bands.md, 'Whole numbers'.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.constants.outcome import NEXT_STEP_SHARE, REPEATED
from callpath_modeler.modeling.mixture.added_alternatives import add_alternatives
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
from callpath_modeler.modeling.mixture.outcome import Columns
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows
from callpath_modeler.modeling.terms import Term

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
