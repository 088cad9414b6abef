"""Exponentials that fit far better than the models of a search without them.

See docs/explanation/hypotheses.md, 'Hypotheses'.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.modeling.constants.hypotheses import (
    BETTER,
    FEWEST_FOR_THREE,
    MISSED,
    POWERS,
    RATES,
    VARIES,
)
from callpath_modeler.modeling.constants.limits import ROWS_TOGETHER
from callpath_modeler.modeling.models import Models
from callpath_modeler.modeling.status import FitStatus
from callpath_modeler.modeling.terms import Term


class Exponentials(Struct, frozen=True):
    """Exponentials that fit some rows far better than their models.

    Attributes
    ----------
    rows : [r] numbers of the rows
    terms : exponential of each row
    error, error_of_model : [r] relative errors (root mean square) of both
    """

    rows: IntArray
    terms: tuple[Term, ...]
    error: FloatArray
    error_of_model: FloatArray


def better_exponentials(models: Models, centres: FloatArray) -> Exponentials | None:
    """Return exponentials that fit far better than models without any, or None.

    Each exponential is tried alone and with a constant that is not negative, where values at three
    points in a row at least double. Errors are per degree of freedom, so that models with more
    coefficients have no advantage.

    Parameters
    ----------
    models : n models in one parameter
    centres : [n, K] measured values at `Models.points`; NaN = missing
    """
    if models.points.ndim > 1 or models.space.exponential:
        return None
    points, there = models.points, centres > 0
    used = there.sum(axis=1)
    # Done in place, because these columns of all rows are the largest memory of making models.
    relative = models.values(points)
    np.divide(relative, centres, out=relative, where=there)
    relative -= 1
    relative[~there] = 0.0
    of_model = _errors(relative, used, models)
    asked = (
        _doubles(centres)
        & (of_model > MISSED)
        & (used >= FEWEST_FOR_THREE)
        & (used == (~np.isnan(centres)).sum(axis=1))
    )
    rows = np.flatnonzero(asked & (models.status < FitStatus.TOO_FEW_POINTS))
    terms = [Term(Fraction(power), 0, rate) for rate in RATES for power in POWERS]
    with np.errstate(over="ignore"):
        table = np.array([term(points) for term in terms])
    finite = np.isfinite(table).all(axis=1)
    terms = [term for term, is_finite in zip(terms, finite.tolist(), strict=True) if is_finite]
    if not rows.size or not terms:
        return None
    best, least = np.empty(len(rows), np.intp), np.empty(len(rows))
    for start in range(0, len(rows), ROWS_TOGETHER):
        part = slice(start, start + ROWS_TOGETHER)
        error = _of_terms(centres[rows[part]], there[rows[part]], table[finite])
        best[part] = error.argmin(axis=1)
        least[part] = error.min(axis=1)
    far = np.flatnonzero(BETTER * least < of_model[rows])
    if not far.size:
        return None
    chosen = tuple(terms[k] for k in best[far].tolist())
    return Exponentials(rows[far], chosen, least[far], of_model[rows[far]])


def _doubles(centres: FloatArray) -> BoolArray:
    """Return whether values at least double at two steps in a row, [n]."""
    is_double = centres[:, 1:] >= 2 * centres[:, :-1]
    return np.asarray((is_double[:, 1:] & is_double[:, :-1]).any(axis=1))


def _errors(relative: FloatArray, used: npt.NDArray[np.integer], models: Models) -> FloatArray:
    """Return the error of each model per degree of freedom, [n]; `relative` is overwritten."""
    size = (models.coefficients != 0).sum(axis=1)
    np.nan_to_num(relative, copy=False)
    squares = np.square(relative, out=relative).sum(axis=1)
    return np.asarray(np.sqrt(squares / np.maximum(used - size, 1)))


def _of_terms(values: FloatArray, there: BoolArray, table: FloatArray) -> FloatArray:
    """Return the relative error of each term, alone or with a constant, [r, T]; the smaller one."""
    table = table / table.max(axis=1, keepdims=True)
    per_value = np.where(there, 1 / np.where(there, values, 1.0), 0.0)
    used = there.sum(axis=1)[:, None]
    # All columns are relative to the values, which become 1.
    one = there.astype(np.float64)
    x = per_value[:, None] * table
    xx, xy = (x * x).sum(axis=2), (x * one[:, None]).sum(axis=2)
    cc, cy = (per_value**2).sum(axis=1)[:, None], (per_value * one).sum(axis=1)[:, None]
    cx = (x * per_value[:, None]).sum(axis=2)
    alone = np.sqrt(np.maximum(used - xy**2 / xx, 0.0) / (used - 1))
    left = xx * cc - cx**2
    differs = left > VARIES * xx * cc
    left = np.where(differs, left, 1.0)
    slope, constant = (xy * cc - cy * cx) / left, (cy * xx - xy * cx) / left
    residual = np.maximum(used - slope * xy - constant * cy, 0.0)
    both = np.sqrt(residual / (used - 2))
    is_sum = differs & (slope > 0) & (constant > 0)
    return np.asarray(np.where(is_sum, np.minimum(both, alone), alone))
