"""Hypotheses of one term for all rows at once, and significance tests for terms.

A row is one call path. A point that is missing in a row has a weight of zero.

See docs/explanation/modeling.md, 'The classic method'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, Int8Array, IntArray
from callpath_modeler.modeling.constants.noise import EXACT
from callpath_modeler.modeling.constants.several import (
    FULL_LEVERAGE,
    LACK_LEVEL,
    RIDGE,
    SIGN_TOLERANCE,
    SMALLEST,
    USUAL_DOF,
    USUAL_SPREAD,
)
from callpath_modeler.modeling.growth import CONSTANT_GROWTH, Growth

CONSTANT, WITH_CONSTANT, WITHOUT_CONSTANT, EDGE = range(4)
"""Forms of a hypothesis: c0; c0 + c x; c x; and c (x_ref - x), a saturation that starts at zero."""


@dataclass(frozen=True, slots=True)
class Basis:
    """The terms of a space at the points of an experiment.

    Attributes
    ----------
    values : ndarray [H, K]
        Each term at each point, divided by `scale`.
    scale : ndarray [H]
        Largest absolute value of each term at the points; keeps squares of p**3 in range.
    reference : ndarray [H]
        Each term, divided by `scale`, where predictions must not be negative: at min(1, smallest
        point).
    decreasing, first_class : ndarray [H]
        Kinds of the terms.
    """

    values: FloatArray
    scale: FloatArray
    reference: FloatArray
    decreasing: BoolArray
    first_class: BoolArray

    @classmethod
    def at(cls, points: FloatArray, growths: Sequence[Growth], first_class: BoolArray) -> Self:
        """Return the terms of `growths` at `points` [K]; the values have to be finite."""
        table = np.stack([growth(points) for growth in growths])
        scale = np.abs(table).max(axis=1)
        scale = np.where(scale > 0, scale, 1.0)
        start = min(1.0, float(points[0]))
        reference = np.array([float(growth(start)) for growth in growths])
        # A term that is divided by a logarithm is infinite at 1.
        reference = np.where(np.isfinite(reference), reference, table[:, 0])
        falling = np.array([growth < CONSTANT_GROWTH for growth in growths])
        return cls(table / scale[:, None], scale, reference / scale, falling, first_class)

    def take(self, terms: IntArray) -> Basis:
        """Return some of the terms."""
        return Basis(
            self.values[terms],
            self.scale[terms],
            self.reference[terms],
            self.decreasing[terms],
            self.first_class[terms],
        )


@dataclass(frozen=True, slots=True)
class WeightedRows:
    """Rows to be fitted, in relative units: each row is divided by its largest value.

    Attributes
    ----------
    y : ndarray [n, K]
        Values; 0 where missing.
    w : ndarray [n, K]
        Weights, 0 where missing; about 1/y**2, so that a weighted square is a relative square.
    fold : ndarray [n, K]
        Fold of each point; -1 where missing. With one fold per point: leave-one-out.
    points : ndarray [n]
        How many points a row has.
    """

    y: FloatArray
    w: FloatArray
    fold: IntArray
    points: FloatArray

    @classmethod
    def relative(cls, y: FloatArray, present: BoolArray, folds: int | None) -> Self:
        """Return rows with weights for relative errors; zeros weigh like the smallest other value.

        Parameters
        ----------
        y : ndarray [n, K]
            Values, at most 1 in each row; 0 where missing.
        present : ndarray [n, K]
            Whether there is a value.
        folds : int, optional
            Number of folds; None = one for each point.
        """
        positive = np.where(y > 0, y, np.inf).min(axis=1)
        floor = np.maximum(positive, 0.01)[:, None]
        w = np.where(present, 1 / np.where(y > 0, np.maximum(y, SMALLEST), floor) ** 2, 0.0)
        position = np.cumsum(present, axis=1) - 1
        fold = np.where(present, position if folds is None else position % folds, -1)
        return cls(y, w, fold, present.sum(axis=1).astype(np.float64))

    def take(self, rows: IntArray) -> WeightedRows:
        """Return some of the rows."""
        return WeightedRows(self.y[rows], self.w[rows], self.fold[rows], self.points[rows])

    def without(self, point: IntArray) -> WeightedRows:
        """Return the same rows, each without one of its points, [n], one fold per point."""
        w = self.w.copy()
        np.put_along_axis(w, point[:, None], 0.0, axis=1)
        present = w > 0
        fold = np.where(present, np.cumsum(present, axis=1) - 1, -1)
        return WeightedRows(np.where(present, self.y, 0.0), w, fold, self.points - 1)

    def reweighted(self, w: FloatArray) -> WeightedRows:
        """Return the same rows under other weights."""
        return WeightedRows(self.y, np.where(self.w > 0, w, 0.0), self.fold, self.points)


@dataclass(frozen=True, slots=True)
class OneTerm:
    """Every one-term hypothesis of every row, under its sign constraints.

    Attributes
    ----------
    form : ndarray [n, H]
        WITH_CONSTANT, WITHOUT_CONSTANT or EDGE.
    constant, slope : ndarray [n, H]
        Coefficients in the units of `WeightedRows` and `Basis`.
    rss, cv : ndarray [n, H]
        Weighted sum of squares of residuals, and of cross-validated residuals; infinite if no
        coefficients satisfy the constraints.
    score : ndarray [n, H]
        Criterion of the comparison; see `selection_score`.
    """

    form: Int8Array
    constant: FloatArray
    slope: FloatArray
    rss: FloatArray
    cv: FloatArray
    score: FloatArray


def fit_one_term(rows: WeightedRows, basis: Basis) -> OneTerm:
    """Return fits of ``c0 + c x_h`` for every row and every term h.

    A growing term has a coefficient of zero or more. A negative constant is kept only if the model
    is not negative at the reference point and rises from there; otherwise the term has no constant.
    A decreasing term may have a negative coefficient (a saturation) under the same condition. If
    that does not hold, the saturation that starts at zero is fitted.

    Parameters
    ----------
    rows : WeightedRows
        n rows of K points.
    basis : Basis
        H terms at the same points.

    Returns
    -------
    OneTerm
        [n, H] columns.
    """
    y, w, x = rows.y, rows.w, basis.values
    total = w.sum(axis=1)
    y_mean = (w * y).sum(axis=1) / total
    x_mean = (w @ x.T) / total[:, None]
    centred_y = y - y_mean[:, None]
    centred_x = x[None] - x_mean[..., None]
    weighted_x = centred_x * w[:, None, :]
    sxx = np.einsum("nhk,nhk->nh", weighted_x, centred_x)
    sxy = np.einsum("nhk,nk->nh", weighted_x, centred_y)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.where(sxx > 0, sxy / sxx, 0.0)
        leverage = weighted_x * centred_x
        leverage /= np.where(sxx > 0, sxx, 1.0)[..., None]
    constant = y_mean[:, None] - slope * x_mean
    leverage += (w / total[:, None])[:, None, :]
    residual = centred_y[:, None, :] - slope[..., None] * centred_x
    rss = np.einsum("nhk,nhk,nk->nh", residual, residual, w)
    kept = np.where(leverage < 1 - FULL_LEVERAGE, 1 - leverage, FULL_LEVERAGE)
    residual /= kept
    cv = np.einsum("nhk,nhk,nk->nh", residual, residual, w)
    form = _forms(constant, slope, basis)
    impossible = ((slope <= 0) & ~basis.decreasing) | (slope == 0)
    rss[impossible] = cv[impossible] = np.inf
    result = OneTerm(form, constant, slope, rss, cv, np.empty_like(cv))
    _refit_bound(result, rows, basis)
    if _has_wide_folds(rows):
        _cross_validate_folds(result, rows, basis)
    size = np.where(form == WITH_CONSTANT, 2.0, 1.0)
    result.score[...] = selection_score(rss.T, cv.T, size.T, rows).T
    return result


def selection_score(
    rss: FloatArray, cv: FloatArray, size: FloatArray, rows: WeightedRows
) -> FloatArray:
    """Return the cross-validation criterion by which hypotheses are compared.

    With folds of several points it is the cross-validated sum of squares. Instead of leave-one-out
    it is generalised cross-validation (Craven and Wahba 1979), which gives all points the mean
    leverage. Ordinary leave-one-out depends on the one point with the largest leverage, and chooses
    the wrong growth more often.

    Parameters
    ----------
    rss, cv : ndarray [..., n]
        Weighted sums of squares, of residuals and cross-validated.
    size : ndarray [..., n]
        Numbers of coefficients.
    rows : WeightedRows
        The n rows.

    Returns
    -------
    ndarray [..., n]
        Smaller is better; infinite where `rss` is.
    """
    if _has_wide_folds(rows):
        return cv
    return rss * (rows.points / np.maximum(rows.points - size, 0.5)) ** 2


def _forms(constant: FloatArray, slope: FloatArray, basis: Basis) -> Int8Array:
    """Return the constraint, if any, that binds each hypothesis."""
    start = constant + slope * basis.reference
    falls = basis.decreasing & (slope > 0)
    saturates = basis.decreasing & (slope < 0)
    bad = np.where(falls, constant < -SIGN_TOLERANCE, start < -SIGN_TOLERANCE)
    return np.where(bad, np.where(saturates, EDGE, WITHOUT_CONSTANT), WITH_CONSTANT).astype(np.int8)


def _refit_bound(fit: OneTerm, rows: WeightedRows, basis: Basis) -> None:
    """Refit the hypotheses whose constraint binds, in place: they have one coefficient."""
    row, term = np.nonzero((fit.form != WITH_CONSTANT) & np.isfinite(fit.rss))
    if not row.size:
        return
    edge = fit.form[row, term] == EDGE
    shape = _bound_shape(edge, term, basis)
    y, w = rows.y[row], rows.w[row]
    coefficient, square = _through_origin(shape, y, w)
    residual = y - coefficient[:, None] * shape
    leverage = w * shape**2 / square[:, None]
    fit.rss[row, term] = (w * residual**2).sum(axis=1)
    residual /= np.where(leverage < 1 - FULL_LEVERAGE, 1 - leverage, FULL_LEVERAGE)
    fit.cv[row, term] = (w * residual**2).sum(axis=1)
    fit.slope[row, term] = np.where(edge, -coefficient, coefficient)
    fit.constant[row, term] = np.where(edge, coefficient * basis.reference[term], 0.0)


def _bound_shape(edge: BoolArray, term: IntArray, basis: Basis) -> FloatArray:
    x = basis.values[term]
    return np.where(edge[:, None], basis.reference[term][:, None] - x, x)


def _through_origin(
    shape: FloatArray, y: FloatArray, w: FloatArray
) -> tuple[FloatArray, FloatArray]:
    square = (w * shape**2).sum(axis=1)
    square = np.where(square > 0, square, 1.0)
    return (w * shape * y).sum(axis=1) / square, square


def _has_wide_folds(rows: WeightedRows) -> bool:
    """Return whether some fold holds several points, for which leave-one-out has no closed form."""
    return bool((rows.fold.max(axis=1) + 1 < rows.points).any())


def _cross_validate_folds(fit: OneTerm, rows: WeightedRows, basis: Basis) -> None:
    """Replace the leave-one-out error by that of the folds, in place; forms stay."""
    finite = np.isfinite(fit.rss)
    error = np.zeros_like(fit.cv)
    for fold in range(int(rows.fold.max()) + 1):
        out = np.where(rows.fold == fold, rows.w, 0.0)
        w = rows.w - out
        total = np.maximum(w.sum(axis=1), np.finfo(float).tiny)[:, None]
        x_mean = (w @ basis.values.T) / total
        y_mean = (w * rows.y).sum(axis=1)[:, None] / total
        free = fit.form == WITH_CONSTANT
        # Bound forms go through the origin, so no mean is subtracted.
        x = np.where(
            (fit.form == EDGE)[..., None],
            (basis.reference[:, None] - basis.values)[None],
            basis.values[None],
        )
        x = x - np.where(free, x_mean, 0.0)[..., None]
        y = rows.y[:, None, :] - np.where(free, y_mean, 0.0)[..., None]
        sxx = np.einsum("nhk,nhk,nk->nh", x, x, w)
        slope = np.einsum("nhk,nhk,nk->nh", x, y, w) / np.where(sxx > 0, sxx, 1.0)
        error += np.einsum("nhk,nk->nh", (y - slope[..., None] * x) ** 2, out)
    fit.cv[...] = np.where(finite, error, np.inf)


@dataclass(frozen=True, slots=True)
class Solution:
    """Weighted least squares of one design per row.

    Attributes
    ----------
    coefficients : ndarray [n, q]
        One per column of the design.
    inverse : ndarray [n, q, q]
        Inverse of the normal matrix: times the relative variance, the covariance of the
        coefficients.
    fitted : ndarray [n, K]
        The model at the points.
    rss, cv : ndarray [n]
        Weighted sums of squares of residuals and of cross-validated residuals.
    """

    coefficients: FloatArray
    inverse: FloatArray
    fitted: FloatArray
    rss: FloatArray
    cv: FloatArray


def solve(design: FloatArray, rows: WeightedRows) -> Solution:
    """Return the solution of one small weighted least squares problem per row.

    Parameters
    ----------
    design : ndarray [n, K, q]
        Columns of the model.
    rows : WeightedRows
        n rows of K points.

    Returns
    -------
    Solution
        Coefficients without sign constraints.
    """
    coefficients, inverse = _normal_solve(design, rows.y, rows.w)
    fitted = np.einsum("nkq,nq->nk", design, coefficients)
    residual = rows.y - fitted
    rss = (rows.w * residual**2).sum(axis=1)
    if _has_wide_folds(rows):
        cv = np.zeros_like(rss)
        for fold in range(int(rows.fold.max()) + 1):
            out = np.where(rows.fold == fold, rows.w, 0.0)
            held, _ = _normal_solve(design, rows.y, rows.w - out)
            error = (out * (rows.y - np.einsum("nkq,nq->nk", design, held)) ** 2).sum(axis=1)
            # There are fewer points to train on than coefficients, so nothing is validated.
            trained = ((rows.w - out) > 0).sum(axis=1) >= design.shape[2]
            cv += np.where(trained, error, np.inf)
    else:
        leverage = rows.w * np.einsum("nkq,nkq->nk", design @ inverse, design)
        kept = np.where(leverage < 1 - FULL_LEVERAGE, 1 - leverage, FULL_LEVERAGE)
        cv = (rows.w * (residual / kept) ** 2).sum(axis=1)
    return Solution(coefficients, inverse, fitted, rss, cv)


def _normal_solve(
    design: FloatArray, y: FloatArray, w: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the solution of scaled normal equations, refined on the residual; the inverse."""
    root = np.sqrt(w)
    z = design * root[..., None]
    norm = np.sqrt((z**2).sum(axis=1))
    norm = np.where(norm > 0, norm, 1.0)
    z = z / norm[:, None, :]
    normal = np.einsum("nkq,nkr->nqr", z, z)
    size = normal.shape[-1]
    # A small ridge keeps collinear designs solvable; the refinement removes its bias.
    inverse = np.linalg.inv(normal + RIDGE * np.eye(size))
    target = root * y
    solution = np.zeros_like(norm)
    for _ in range(3):
        residual = target - np.einsum("nkq,nq->nk", z, solution)
        moment = np.einsum("nkr,nk->nr", z, residual)
        solution = solution + np.einsum("nqr,nr->nq", inverse, moment)
    return solution / norm, inverse / norm[:, :, None] / norm[:, None, :]


@dataclass(frozen=True, slots=True)
class PureError:
    """Noise of the centres of n rows, from repetitions.

    Attributes
    ----------
    variance : ndarray [n]
        Relative variance of a centre; not below that of exact numbers.
    dof : ndarray [n]
        Its degrees of freedom; 0 without repetitions.
    """

    variance: FloatArray
    dof: FloatArray

    def take(self, rows: IntArray) -> PureError:
        """Return some of the rows."""
        return PureError(self.variance[rows], self.dof[rows])

    def unexplained(self, rss: FloatArray, freedom: FloatArray) -> BoolArray:
        """Return where residuals exceed the noise of repetitions, or noise is unknown.

        Parameters
        ----------
        rss : ndarray [n]
            Weighted sums of squares of a model.
        freedom : ndarray [n]
            Their degrees of freedom.

        Returns
        -------
        ndarray [n]
            Lack of fit at the 5 % level; True without repetitions.
        """
        from scipy import special

        ratio = rss / np.maximum(freedom, 1.0) / self.variance
        lack = special.fdtrc(np.maximum(freedom, 1.0), np.maximum(self.dof, 1.0), ratio)
        return np.asarray((self.dof == 0) | (lack < LACK_LEVEL))


def floored(rss: FloatArray, points: FloatArray) -> FloatArray:
    """Return sums of squares, at least those of exact numbers, so that odds stay finite."""
    return np.maximum(rss, points * EXACT**2)


def path_length(basis: Basis) -> tuple[float, int]:
    """Return the length of the curves that the one-term hypotheses form among all directions.

    The centred, normed terms lie on curves on the unit sphere: a rising curve from saturation over
    logarithms to the highest power, and a falling one of decreasing terms. Terms of second class
    do not count, because one is chosen only if a privileged one explains nearly as much.

    Parameters
    ----------
    basis : Basis
        Terms in order of growth.

    Returns
    -------
    length : float
        Total length of the curves, in radians.
    curves : int
        Number of curves.
    """
    values = basis.values[basis.first_class]
    centred = values - values.mean(axis=1, keepdims=True)
    norm = np.linalg.norm(centred, axis=1, keepdims=True)
    unit = centred / np.where(norm > 0, norm, 1.0)
    decreasing = basis.decreasing[basis.first_class]
    falling, growing = unit[decreasing], unit[~decreasing]
    rising = np.concatenate([-falling, growing])
    return _curve(rising) + _curve(falling), int(len(rising) > 0) + int(len(falling) > 0)


def _curve(unit: FloatArray) -> float:
    steps = (unit[1:] * unit[:-1]).sum(axis=1)
    return float(np.arccos(np.clip(steps, -1.0, 1.0)).sum())


def one_term_probability(
    none: FloatArray,
    one: FloatArray,
    points: FloatArray,
    pure: PureError,
    pooled: BoolArray,
    room: tuple[float, int],
) -> FloatArray:
    """Return the probability that the best one-term hypothesis fits a constant so well by chance.

    It is the volume of a tube around the curves of `path_length` (Hotelling 1939; Johansen and
    Johnstone 1990): exact for small probabilities, and always an upper bound. It replaces the
    F-test of one hypothesis, which does not take into account that the best of many was chosen.

    Parameters
    ----------
    none, one : ndarray [n]
        Weighted sums of squares without and with the term.
    points : ndarray [n]
        Points used.
    pure : PureError
        Noise from repetitions.
    pooled : ndarray [n]
        Whether its degrees of freedom are added to those of the residuals.
    room : tuple
        Result of `path_length`.

    Returns
    -------
    ndarray [n]
        Probabilities, up to 1.
    """
    extra = np.where(pooled, pure.dof, 0.0)
    probability = _tube(none, one, points, (extra, pure.variance), room)
    # Four or five single runs say almost nothing about noise, so growth by a factor would be taken
    # for noise. But few programs vary by more than a tenth from run to run.
    belief = _tube(none, one, points, (USUAL_DOF, USUAL_SPREAD**2), room)
    return np.where(pure.dof == 0, np.minimum(probability, belief), probability)


def _tube(
    none: FloatArray,
    one: FloatArray,
    points: FloatArray,
    noise: tuple[FloatArray | float, FloatArray | float],
    room: tuple[float, int],
) -> FloatArray:
    """Return the probability of chance, given the degrees of freedom and variance of noise."""
    from scipy import special

    length, curves = room
    extra, variance = noise
    total = floored(none, points) + extra * variance
    left = floored(one, points) + extra * variance
    freedom = points - 1 + extra
    share = np.clip(1 - left / total, 0.0, 1.0)
    tube = length / (2 * np.pi) * (1 - share) ** (np.maximum(freedom - 2, 0.0) / 2)
    caps = curves * 0.5 * special.betainc((freedom - 1) / 2, 0.5, 1 - share)
    return np.asarray(np.minimum(tube + caps, 1.0))


def more_terms_probability(
    fewer: FloatArray,
    more: FloatArray,
    added: FloatArray,
    freedom: FloatArray,
    points: FloatArray,
    pure: PureError,
    tried: FloatArray,
) -> FloatArray:
    """Return the probability that further terms help by chance.

    It is the probability of an F-test times the number of hypotheses tried.

    Parameters
    ----------
    fewer, more : ndarray [n]
        Weighted sums of squares before and after.
    added : ndarray [n]
        Coefficients added.
    freedom : ndarray [n]
        Degrees of freedom after.
    points : ndarray [n]
        Points used.
    pure : PureError
        Noise from repetitions; used where the larger model leaves nothing unexplained.
    tried : ndarray [n]
        Number of hypotheses that were compared.

    Returns
    -------
    ndarray [n]
        Probabilities, up to 1.
    """
    from scipy import special

    left = floored(more, points)
    extra = np.where(pure.unexplained(left, freedom), 0.0, pure.dof)
    below = np.maximum(freedom + extra, 1.0)
    noise = (left + extra * pure.variance) / below
    step = np.maximum(added, 1.0)
    ratio = np.maximum(floored(fewer, points) - left, 0.0) / step / noise
    return np.asarray(np.minimum(special.fdtrc(step, below, ratio) * tried, 1.0))
