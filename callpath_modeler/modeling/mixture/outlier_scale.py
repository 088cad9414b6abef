"""Whether one scale was measured under other conditions than the others.

Runs on another partition of a machine, or while it was busy, are slower in all call paths by one
factor. Repetitions do not tell, since they are slower alike. Models of few terms cannot follow at
most scales, but at the largest one they can: by steeper growth, or by a break there. Of several
parameters it may be one configuration, or all with the largest value of one parameter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.compiled import outlier_scale as in_c
from callpath_modeler.modeling.compiled.library import compiled
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
from callpath_modeler.modeling.mixture.posterior import Posterior
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows, error_unit

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

_FEWEST_POINTS = 5
"""Below it the others say too little of one."""
_MOST_ROWS, _MOST_OF_SEVERAL = 100, 40
"""That are asked, in one parameter and in several; more of them say the same."""

_SUSPECT = 0.02, 0.2
"""Correlation of errors, and share of rows that break, from which on rows are asked at all."""

_FOLLOWS = 0.6
"""Of the squares of a shape, what one point makes up that it can follow as it likes."""
_MOST_ERRING = 3
"""Points that models meet worst, of all rows together."""

_REACH = np.log(30.0)
_FACTORS = _REACH * np.linspace(-1, 1, 321)
"""Logarithms of factors, from a thirtieth to thirty, about the power of thirty next to errors."""

_TELLS = 1.0
"""Nats by which a row that says anything prefers one factor or none."""
_FEWEST_ROWS = 10
_NEARLY_ALL, _MOST_OF_ALL = 0.85, 0.8
"""Of the rows with an opinion, those that agree, in one parameter and in several, where more laws
are approximated."""
_MUCH_LESS = 0.25
_CLOSE, _HOPELESS = -4.5, -8.0
"""Nats against the factor that suits a row most: three deviations, and four."""


@dataclass(frozen=True, slots=True)
class ScaleOutlier:
    """What rows say of some points by all the others.

    Attributes
    ----------
    points : which ones
    factor : logarithm of what their values there are most likely multiplied by
    nats : how much more likely they are with it
    agreed : whether nearly all rows that have an opinion are of this one
    own : median relative variance of rows about their models by the other points
    """

    points: tuple[int, ...]
    factor: float
    nats: float
    agreed: bool
    own: float


def suspects_outlier(found: Posterior, hypotheses: Hypotheses, correlation: float) -> bool:
    """Tell whether first models give reason to ask rows about points.

    So they do where errors are correlated, or where many rows break or, of several parameters,
    follow one point.
    """
    breaks = hypotheses.outside[found.chosen]
    if hypotheses.fans is not None:
        follow = np.append(_followed(hypotheses) >= 0, False)
        breaks = breaks | follow[hypotheses.codes(found.chosen)].any(axis=1)
    share = float((found.weight * breaks).sum()) / max(len(found.variance), 1)
    return correlation > _SUSPECT[0] or share > _SUSPECT[1]


def _followed(hypotheses: Hypotheses) -> IntArray:
    """Return the point that each shape follows, as steep ones do the largest, [S]; -1 = none."""
    square = hypotheses.table**2
    most = square.argmax(axis=1)
    alone = square.max(axis=1) > _FOLLOWS * square.sum(axis=1)
    return np.where(alone, most, -1)


def suspect_points(
    data: ScaledRows, fitted: FloatArray, hypotheses: Hypotheses
) -> list[tuple[int, ...]]:
    """Return the points, alone or together, that may be unlike the others.

    In one parameter each. Of several those that shapes follow, those that models, `fitted`
    [n, K], meet worst, and all where one parameter is largest.
    """
    points = data.points
    if points.ndim == 1:
        return [(point,) for point in range(len(points))]
    error = (data.values - fitted) / error_unit(data, fitted) / np.sqrt(data.variance)[:, None]
    worst = np.argsort(-np.abs(np.median(error, axis=0)), kind="stable")[:_MOST_ERRING]
    alone = {*_followed(hypotheses).tolist(), *worst.tolist()} - {-1}
    ends = [np.flatnonzero(column == column.max()).tolist() for column in points.T]
    together = [tuple(end) for end in ends if 1 < len(end) <= len(points) // 2]
    return [(point,) for point in sorted(alone)] + together


def complete_rows(data: ScaledRows) -> ScaledRows | None:
    """Return some rows that were measured at all points; None if too few rows or points tell."""
    whole = np.flatnonzero((data.weight > 0).all(axis=1) & (data.values > 0).all(axis=1))
    if len(data.points) < _FEWEST_POINTS or len(whole) < _FEWEST_ROWS:
        return None
    most = _MOST_ROWS if data.points.ndim == 1 else _MOST_OF_SEVERAL
    return data.take(whole[:: -(-len(whole) // most)])


def without_points(data: ScaledRows, points: Sequence[int]) -> ScaledRows:
    """Return rows that have no value at some points."""
    weight = data.weight.copy()
    weight[:, points] = 0.0
    return replace(data, weight=weight)


def at_other_points(data: ScaledRows, points: Sequence[int]) -> ScaledRows:
    """Return rows at all points but some."""
    values, weight = (np.delete(column, points, axis=1) for column in (data.values, data.weight))
    where = np.delete(data.points, points, axis=0)
    return replace(data, points=where, values=values, weight=weight)


def estimate_scale_factor(
    found: Posterior, data: ScaledRows, hypotheses: Hypotheses, points: tuple[int, ...]
) -> ScaleOutlier:
    """Tell what rows have in common at some points.

    Each row has an opinion of any factor: how probable its values would be there. One that nearly
    all rows with an opinion prefer to none, and find likely by itself, is theirs in common: laws
    that break by themselves do so by factors of their own.

    Parameters
    ----------
    found : of rows [n] by all other points
    data : these rows, with their values there
    """
    errors = [_errors(found, data, hypotheses, point) for point in points]
    away, spread = (np.array(column) for column in zip(*errors, strict=True))
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
    enough = _NEARLY_ALL if data.points.ndim == 1 else _MOST_OF_ALL
    agreed = tells.sum() >= _FEWEST_ROWS and agrees[tells].mean() >= enough
    nats, own = float(together[best] - none), float(np.median(found.variance))
    return ScaleOutlier(points, float(factors[best]), nats, bool(agreed), own)


def stands_alone(odd: ScaleOutlier, others: Sequence[ScaleOutlier]) -> bool:
    """Tell whether the other points, by each other, are nothing like the odd ones.

    Where runs of all scales are off by something, one is off by most.
    """
    return all(abs(each.factor) <= _MUCH_LESS * abs(odd.factor) for each in others)


def are_largest(points: FloatArray, some: Sequence[int]) -> bool:
    """Tell whether some points are all that there are of the largest scale.

    Of several parameters, all with the largest value of one, or the only one with all of them.
    """
    scales = points.reshape(len(points), -1)
    at_end = scales == scales.max(axis=0)
    rest = np.delete(at_end, list(some), axis=0)
    return bool(at_end[list(some)].all() or (~rest.any(axis=0)).any())


def _errors(
    found: Posterior, data: ScaledRows, hypotheses: Hypotheses, point: int
) -> tuple[FloatArray, FloatArray]:
    """Return by how much each candidate misses the value at a point, and its spread, [c].

    Both of logarithms; NaN where nothing above zero is predicted.
    """
    there = np.append(hypotheses.table[:, point], 0.0)
    design = np.stack([np.ones(len(found.row)), *there[hypotheses.codes(found.chosen)].T])
    model = (found.coefficients * design).sum(axis=0)
    first, second = np.triu_indices(3)
    twice = np.where(first == second, 1.0, 2.0)[:, None]
    square = (twice * found.covariance * design[first] * design[second]).sum(axis=0)
    model = np.where(model > 0, model, np.nan)
    away = np.log(data.values[found.row, point] / model)
    # A model may be next to nothing, and its square nothing.
    spread = np.sqrt(np.maximum(square, 0.0)) / model
    return away, np.hypot(spread, np.sqrt(found.variance[found.row]))


def _likelihoods(
    found: Posterior, away: FloatArray, spread: FloatArray, factors: FloatArray
) -> FloatArray:
    """Return the log likelihood of the values at points under all factors, [n, F].

    Errors are [P, c], of candidates at each of the points; what is off at all of them is said
    once.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        # What is normal at each of the points is so in all.
        precise = spread**-2
        sharp = precise.mean(axis=0)
        centre = (away * precise).mean(axis=0) / sharp
        level = np.log(found.weight) - np.log(spread).mean(axis=0)
        level -= 0.5 * ((away - centre) ** 2 * precise).mean(axis=0)
    if compiled():
        return in_c.likelihoods(found, centre, sharp, level, factors)
    each = level[:, None] - 0.5 * sharp[:, None] * (centre[:, None] - factors) ** 2
    each[~np.isfinite(each)] = -np.inf
    # Candidates are in the order of rows.
    start = np.searchsorted(found.row, np.arange(len(found.variance)))
    most = np.maximum.reduceat(each, start, axis=0)
    most[most == -np.inf] = 0.0
    each -= most[found.row]
    np.exp(each, out=each)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.add.reduceat(each, start, axis=0)) + most)
