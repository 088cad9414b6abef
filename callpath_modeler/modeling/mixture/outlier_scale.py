"""One scale whose values are off by the same factor in all rows.

Runs on another partition of a machine, or on a busy one, are slower by one factor in all call
paths. Repetitions do not show it, because all are slower. Models of few terms cannot follow such
a factor at most scales. At the largest scale they can, by steeper growth or by a break. In several
parameters, one configuration may be off, or all with the largest value of one parameter. See
docs/explanation/noise-and-bands.md, 'One scale unlike the others'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.constants.learning import (
    CLOSE,
    FACTORS,
    FEWEST_POINTS,
    FEWEST_ROWS,
    FOLLOWS,
    HOPELESS,
    LEAST_NATS,
    MOST_ERRING,
    MOST_OF_ALL,
    MOST_OF_SEVERAL,
    MOST_ROWS,
    MUCH_LESS,
    NEARLY_ALL,
    REACH,
    SUSPECT,
    TELLS,
)
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
from callpath_modeler.modeling.mixture.posterior import Posterior
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows, error_unit

_FACTORS = REACH * np.linspace(-1, 1, FACTORS)
"""Logarithms of the factors that are tried: 1/30 to 30, times a power of 30."""


class ScaleOutlier(Struct, frozen=True):
    """The factor by which rows are off at some points, judged by all other points.

    Attributes
    ----------
    points : numbers of these points
    factor : logarithm of the most likely factor of the values there
    nats : log likelihood that the factor adds
    agreed : whether nearly all decided rows agree on the factor
    own : median relative variance of rows about their models by the other points
    """

    points: tuple[int, ...]
    factor: float
    nats: float
    agreed: bool
    own: float


def suspects_outlier(found: Posterior, hypotheses: Hypotheses, correlation: float) -> bool:
    """Return whether first models give a reason to test points."""
    breaks = hypotheses.outside[found.chosen]
    if hypotheses.fans is not None:
        follow = np.append(_followed(hypotheses) >= 0, False)
        breaks = breaks | follow[hypotheses.codes(found.chosen)].any(axis=1)
    share = float((found.weight * breaks).sum()) / max(len(found.variance), 1)
    return correlation > SUSPECT[0] or share > SUSPECT[1]


def _followed(hypotheses: Hypotheses) -> IntArray:
    """Return the point that each shape could fit alone, [S]; -1 = none.

    For a steep shape, this is the largest point.
    """
    square = hypotheses.table**2
    most = square.argmax(axis=1)
    alone = square.max(axis=1) > FOLLOWS * square.sum(axis=1)
    return np.where(alone, most, -1)


def suspect_points(
    data: ScaledRows, fitted: FloatArray, hypotheses: Hypotheses
) -> list[tuple[int, ...]]:
    """Return the points to test, alone or in groups.

    In one parameter, each point is tested. In several, the test covers points that a shape could
    fit alone, points with the worst fit by models, `fitted` [n, K], and all points with the largest
    value of one parameter.
    """
    points = data.points
    if points.ndim == 1:
        return [(point,) for point in range(len(points))]
    error = (data.values - fitted) / error_unit(data, fitted) / np.sqrt(data.variance)[:, None]
    worst = np.argsort(-np.abs(np.median(error, axis=0)), kind="stable")[:MOST_ERRING]
    alone = {*_followed(hypotheses).tolist(), *worst.tolist()} - {-1}
    ends = [np.flatnonzero(column == column.max()).tolist() for column in points.T]
    together = [tuple(end) for end in ends if 1 < len(end) <= len(points) // 2]
    return [(point,) for point in sorted(alone)] + together


def complete_rows(data: ScaledRows) -> ScaledRows | None:
    """Return some rows with values at all points; None if there are too few rows or points."""
    whole = np.flatnonzero((data.weight > 0).all(axis=1) & (data.values > 0).all(axis=1))
    if len(data.points) < FEWEST_POINTS or len(whole) < FEWEST_ROWS:
        return None
    most = MOST_ROWS if data.points.ndim == 1 else MOST_OF_SEVERAL
    return data.take(whole[:: -(-len(whole) // most)])


def without_points(data: ScaledRows, points: Sequence[int]) -> ScaledRows:
    """Return the rows without the values at `points`."""
    weight = data.weight.copy()
    weight[:, points] = 0.0
    return replace(data, weight=weight)


def at_other_points(data: ScaledRows, points: Sequence[int]) -> ScaledRows:
    """Return the rows at all points except `points`."""
    values, weight = (np.delete(column, points, axis=1) for column in (data.values, data.weight))
    where = np.delete(data.points, points, axis=0)
    return replace(data, points=where, values=values, weight=weight)


def estimate_scale_factor(
    found: Posterior, data: ScaledRows, hypotheses: Hypotheses, points: tuple[int, ...]
) -> ScaleOutlier:
    """Return the factor at `points` that rows have in common.

    Every row has a likelihood of its values there for each factor. The common factor is one that
    nearly all decided rows prefer to no factor, and that each of them finds likely. Call paths that
    break independently break by different factors.

    Parameters
    ----------
    found : posterior of the rows [n] by all other points
    data : the rows, with their values at `points`
    hypotheses : all hypotheses
    points : numbers of the points
    """
    errors = [_errors(found, data, hypotheses, point) for point in points]
    away, spread = (np.array(column) for column in zip(*errors, strict=True))
    factors = _FACTORS + REACH * np.round(np.nanmedian(np.append(away, 0.0)) / REACH)
    said = _likelihoods(found, away, spread, np.append(factors, 0.0))
    most = said.max(axis=1, keepdims=True)
    # A row whose likely candidates predict nothing above zero is not decided.
    said = np.subtract(said, most, out=np.zeros_like(said), where=np.isfinite(most))
    *together, none = np.maximum(said, HOPELESS).sum(axis=0)
    best = int(np.argmax(together))
    prefers = said[:, best] - said[:, -1]
    tells = np.abs(prefers) > TELLS
    agrees = (prefers > 0) & (said[:, best] > CLOSE)
    enough = NEARLY_ALL if data.points.ndim == 1 else MOST_OF_ALL
    agreed = tells.sum() >= FEWEST_ROWS and agrees[tells].mean() >= enough
    nats, own = float(together[best] - none), float(np.median(found.variance))
    return ScaleOutlier(points, float(factors[best]), nats, bool(agreed), own)


def stands_alone(odd: ScaleOutlier, others: Sequence[ScaleOutlier]) -> bool:
    """Return whether the other points, judged by each other, are much less off than the outlier.

    If runs of all scales are off by something, one of them is off most.
    """
    return all(abs(each.factor) <= MUCH_LESS * abs(odd.factor) for each in others)


def are_largest(points: FloatArray, some: Sequence[int]) -> bool:
    """Return whether the points `some` are the largest scale.

    In several parameters, they are all points with the largest value of one parameter, or the only
    point with the largest values of all.
    """
    scales = points.reshape(len(points), -1)
    at_end = scales == scales.max(axis=0)
    rest = np.delete(at_end, list(some), axis=0)
    return bool(at_end[list(some)].all() or (~rest.any(axis=0)).any())


def _errors(
    found: Posterior, data: ScaledRows, hypotheses: Hypotheses, point: int
) -> tuple[FloatArray, FloatArray]:
    """Return the error of each candidate at a point, and its standard deviation, [c].

    Both are logarithms; NaN where a candidate predicts nothing above zero.
    """
    there = np.append(hypotheses.table[:, point], 0.0)
    design = np.stack([np.ones(len(found.row)), *there[hypotheses.codes(found.chosen)].T])
    model = (found.coefficients * design).sum(axis=0)
    first, second = np.triu_indices(3)
    twice = np.where(first == second, 1.0, 2.0)[:, None]
    square = (twice * found.covariance * design[first] * design[second]).sum(axis=0)
    model = np.where(model > 0, model, np.nan)
    with np.errstate(over="ignore"):  # tiny models
        away = np.log(data.values[found.row, point] / model)
        # The square of a tiny model would be zero, so the model divides the root.
        spread = np.sqrt(np.maximum(square, 0.0)) / model
    return away, np.hypot(spread, np.sqrt(found.variance[found.row]))


def _likelihoods(
    found: Posterior, away: FloatArray, spread: FloatArray, factors: FloatArray
) -> FloatArray:
    """Return the log likelihood of the values at the points under all factors, [n, F].

    Errors are [P, c], of candidates at each of the points; an error at all points counts once.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # A mean of normal log densities is a normal log density.
        precise = spread**-2
        sharp = precise.mean(axis=0)
        centre = (away * precise).mean(axis=0) / sharp
        level = np.log(found.weight) - np.log(spread).mean(axis=0)
        level -= 0.5 * ((away - centre) ** 2 * precise).mean(axis=0)
        lost = ~np.isfinite(level + sharp * centre)
        level[lost], centre[lost], sharp[lost] = -np.inf, 0.0, 0.0
        each = centre[:, None] - factors
        each *= each
        each *= -0.5 * sharp[:, None]
        each += level[:, None]
    # Candidates are ordered by row.
    start = np.searchsorted(found.row, np.arange(len(found.variance)))
    most = np.maximum.reduceat(each, start, axis=0)
    each -= np.where(most == -np.inf, 0.0, most)[found.row]
    # Exponentials of less are slow, and are no part of a sum that contains 1.
    np.maximum(each, LEAST_NATS, out=each)
    np.exp(each, out=each)
    return np.asarray(np.log(np.add.reduceat(each, start, axis=0)) + most)
