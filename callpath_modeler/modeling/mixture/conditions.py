"""Whether one scale was measured under other conditions than the others.

Runs on another partition of a machine, or while it was busy, are slower in all call paths by one
factor. Repetitions do not tell, since they are slower alike. Models of few terms cannot follow at
most scales, but at the largest one they can: by steeper growth, or by a break there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.mixture.data import Data
from callpath_modeler.modeling.mixture.hypotheses import OUTSIDE, Hypotheses
from callpath_modeler.modeling.mixture.posterior import Posterior

FloatArray = npt.NDArray[np.float64]

_FEWEST_POINTS = 5
"""Below it the others say too little of one."""
_MOST_ROWS = 100
"""That are asked; more of them say the same."""

_SUSPECT = 0.02, 0.2
"""Correlation of errors, and share of rows that break, from which on rows are asked at all."""

_REACH = np.log(30.0)
_FACTORS = _REACH * np.linspace(-1, 1, 321)
"""Logarithms of factors, from a thirtieth to thirty, about the power of thirty next to errors."""

_TELLS = 1.0
"""Nats by which a row that says anything prefers one factor or none."""
_FEWEST_ROWS = 10
_NEARLY_ALL = 0.85
_MUCH_LESS = 0.25
_CLOSE, _HOPELESS = -4.5, -8.0
"""Nats against the factor that suits a row most: three deviations, and four."""


@dataclass(frozen=True, slots=True)
class Apart:
    """What rows say of one point by all the others.

    Attributes
    ----------
    point : which one
    factor : logarithm of what their values there are most likely multiplied by
    nats : how much more likely they are with it
    agreed : whether nearly all rows that have an opinion are of this one
    own : median relative variance of rows about their models by the other points
    """

    point: int
    factor: float
    nats: float
    agreed: bool
    own: float


def is_suspect(found: Posterior, known: Hypotheses, correlation: float) -> bool:
    """Tell whether first models give reason to ask rows about points.

    So they do where errors are correlated, or where many rows break.
    """
    breaks = np.isin(known.groups, OUTSIDE)[found.chosen]
    share = float((found.weight * breaks).sum()) / max(len(found.variance), 1)
    return correlation > _SUSPECT[0] or share > _SUSPECT[1]


def witnesses(data: Data) -> Data | None:
    """Return some rows that were measured at all points; None if too few rows or points tell."""
    whole = np.flatnonzero((data.weight > 0).all(axis=1) & (data.values > 0).all(axis=1))
    if len(data.points) < _FEWEST_POINTS or len(whole) < _FEWEST_ROWS:
        return None
    return data.take(whole[:: -(-len(whole) // _MOST_ROWS)])


def without(data: Data, *points: int) -> Data:
    """Return rows that have no value at some points."""
    weight = data.weight.copy()
    weight[:, points] = 0.0
    return Data(data.points, data.values, weight, data.variance, data.dof)


def at_others(data: Data, point: int) -> Data:
    """Return rows at all points but one."""
    values, weight = (np.delete(column, point, axis=1) for column in (data.values, data.weight))
    return Data(np.delete(data.points, point), values, weight, data.variance, data.dof)


def what_sets_apart(found: Posterior, data: Data, known: Hypotheses, point: int) -> Apart:
    """Tell what rows have in common at one point.

    Each row has an opinion of any factor: how probable its value would be there. One that nearly
    all rows with an opinion prefer to none, and find likely by itself, is theirs in common: laws
    that break by themselves do so by factors of their own.

    Parameters
    ----------
    found : of rows [n] by all other points
    data : these rows, with their values there
    """
    away, spread = _errors(found, data, known, point)
    factors = _FACTORS + _REACH * np.round(np.nanmedian(np.append(away, 0.0)) / _REACH)
    said = _likelihoods(found, away, spread, np.append(factors, 0.0))
    most = said.max(axis=1, keepdims=True)
    # Where all that is likely predicts nothing, there is no opinion.
    said = np.subtract(said, most, out=np.zeros_like(said), where=np.isfinite(most))
    *together, none = np.maximum(said, _HOPELESS).sum(axis=0)
    best = int(np.argmax(together))
    prefers = said[:, best] - said[:, -1]
    tells = np.abs(prefers) > _TELLS
    agrees = (prefers > 0) & (said[:, best] > _CLOSE)
    agreed = tells.sum() >= _FEWEST_ROWS and agrees[tells].mean() >= _NEARLY_ALL
    nats, own = float(together[best] - none), float(np.median(found.variance))
    return Apart(point, float(factors[best]), nats, bool(agreed), own)


def stands_alone(odd: Apart, others: Sequence[Apart]) -> bool:
    """Tell whether the other points, by each other, are nothing like the odd one.

    Where runs of all scales are off by something, one is off by most.
    """
    return all(abs(each.factor) <= _MUCH_LESS * abs(odd.factor) for each in others)


def _errors(
    found: Posterior, data: Data, known: Hypotheses, point: int
) -> tuple[FloatArray, FloatArray]:
    """Return by how much each candidate misses the value at a point, and its spread, [c].

    Both of logarithms; NaN where nothing above zero is predicted.
    """
    there = np.append(known.table[:, point], 0.0)
    design = np.stack([np.ones(len(found.row)), *there[known.codes(found.chosen)].T])
    model = (found.coefficients * design).sum(axis=0)
    first, second = np.triu_indices(3)
    twice = np.where(first == second, 1.0, 2.0)[:, None]
    square = (twice * found.covariance * design[first] * design[second]).sum(axis=0)
    model = np.where(model > 0, model, np.nan)
    away = np.log(data.values[found.row, point] / model)
    return away, np.sqrt(np.maximum(square, 0.0) / model**2 + found.variance[found.row])


def _likelihoods(
    found: Posterior, away: FloatArray, spread: FloatArray, factors: FloatArray
) -> FloatArray:
    """Return the log likelihood of the values at a point under all factors, [n, F]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        each = (away[:, None] - factors) / spread[:, None]
        each = np.log(found.weight / spread)[:, None] - 0.5 * each**2
    each = np.where(np.isfinite(each), each, -np.inf)
    # Candidates are in the order of rows.
    start = np.searchsorted(found.row, np.arange(len(found.variance)))
    return np.asarray(np.logaddexp.reduceat(each, start, axis=0))
