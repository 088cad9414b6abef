"""Staircases of small whole numbers: the next step may come at the next scale, or later.

Levels of a tree, blocks of a process and iterations stay the same over several scales and then
change by a step. A law that meets such values exactly does so by chance, and knows nothing of the
next step. So two hypotheses stand beside the others: the last value stays, or the last step is
repeated at each further scale.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
from callpath_modeler.modeling.mixture.outcome import Columns
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows
from callpath_modeler.modeling.terms import Term

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

_LOGARITHM = Term(Fraction(0), 1)
_SHARE = 0.05
"""Probability of each of both: more than what a band of 95 % leaves out on either side."""
_REPEATED = 4
"""So many steps downwards have to leave something, or none is repeated."""


def with_next_steps(
    columns: Columns, rows: IntArray, data: ScaledRows, unit: FloatArray, hypotheses: Hypotheses
) -> None:
    """Put both hypotheses among the alternatives of staircases, in place of the least probable two.

    Parameters
    ----------
    columns : models of all rows; `weight` and the columns of alternatives change
    rows : [n] those of `data`, in one parameter
    unit : [n] of `data`
    hypotheses : the shapes of the models
    """
    logarithm = next((k for k, each in enumerate(hypotheses.shapes) if each == _LOGARITHM), None)
    its = _staircases(data)
    if logarithm is None or not its.size:
        return
    points, values = data.points, data.values[its] * unit[its, None]
    last, step = values[:, -1], _last_step(values)
    per_doubling = step / np.log2(points[-1] / points[-2])
    # Steps downwards end above zero: where they soon would not, one more in proportion counts.
    repeated = last + _REPEATED * step > 0
    next_one = np.zeros((len(its), 3))
    next_one[:, 0] = np.where(
        repeated, last - per_doubling * np.log2(points[-1]), last**2 / np.maximum(last - step, last)
    )
    next_one[:, 1] = np.where(repeated, per_doubling, 0.0)
    stays = np.zeros((len(its), 3))
    stays[:, 0] = last
    some = rows[its]
    weight = np.column_stack([columns["weight"][some], columns["alternative_weight"][some]])
    weight[:, -2:] = 0.0
    weight *= ((1 - 2 * _SHARE) / weight.sum(axis=1))[:, None]
    weight[:, -2:] = _SHARE
    columns["weight"][some] = weight[:, 0]
    terms, numbers = columns["alternative_terms"][some], columns["alternative_coefficients"][some]
    root = columns["root"][some]
    terms[:, -2:], numbers[:, -2:], root[:, -2:] = -1, 0.0, 0.0
    terms[:, -1, 0] = np.where(repeated, logarithm, -1)
    numbers[:, -2, :3], numbers[:, -1, :3] = stays, next_one
    order = np.argsort(-weight[:, 1:], axis=1, kind="stable")
    every = np.arange(len(its))[:, None]
    columns["alternative_weight"][some] = weight[:, 1:][every, order]
    columns["alternative_terms"][some] = terms[every, order]
    columns["alternative_coefficients"][some] = numbers[every, order]
    root[:, 1:] = root[:, 1:][every, order]
    columns["root"][some] = root


def _staircases(data: ScaledRows) -> IntArray:
    """Return rows of small whole numbers that change in one direction, and whose next step is due.

    It is due where the last value was measured as often as the one before, give or take one. How
    long the first value lasted is not known: smaller scales may have it as well.
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
