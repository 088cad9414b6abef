"""Coefficients, covariances and alternatives of chosen hypotheses.

See docs/explanation/modeling.md, 'The classic method'.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, Int8Array, IntArray
from callpath_modeler.modeling.classic.pairs import constant_stands
from callpath_modeler.modeling.classic.refine import Choice, coefficient_count
from callpath_modeler.modeling.classic.search import (
    CONSTANT,
    EDGE,
    WITH_CONSTANT,
    WITHOUT_CONSTANT,
    Basis,
    Solution,
    WeightedRows,
    solve,
)
from callpath_modeler.modeling.classic.significance import PureError, floored
from callpath_modeler.modeling.constants.classic import EXCLUDED, KEEP_CONSTANT


@dataclass(frozen=True, slots=True)
class Estimate:
    """Final coefficients of n rows, in the units of `WeightedRows` and `Basis`.

    Attributes
    ----------
    terms : ndarray [n, T]
        Positions in the basis, then -1.
    form : ndarray [n]
        One of the forms of `search`.
    coefficients : ndarray [n, T + 1]
        Constant first; 0 = unused.
    inverse : ndarray [n, T + 1, T + 1]
        The covariance is this matrix times the relative variance.
    rss, cv : ndarray [n]
        Relative sums of squares.
    """

    terms: IntArray
    form: Int8Array
    coefficients: FloatArray
    inverse: FloatArray
    rss: FloatArray
    cv: FloatArray


@dataclass(frozen=True, slots=True)
class RunnersUp:
    """Alternatives of n rows, best first.

    Attributes
    ----------
    terms : ndarray [n, A]
        Position of the only term in the basis; -1 for the constant.
    coefficients : ndarray [n, A, 2]
        Constant and slope, in the units of `WeightedRows` and `Basis`.
    weight : ndarray [n, A + 1]
        Akaike weights of the chosen model and then of the alternatives.
    """

    terms: IntArray
    coefficients: FloatArray
    weight: FloatArray


def estimate(rows: WeightedRows, basis: Basis, choice: Choice) -> Estimate:
    """Return the coefficients of chosen hypotheses, with weights from the fit.

    Parameters
    ----------
    rows : WeightedRows
        n rows.
    basis : Basis
        The terms.
    choice : Choice
        A hypothesis per row.

    Returns
    -------
    Estimate
        Coefficients that satisfy the sign constraints.
    """
    count, width = choice.terms.shape
    result = Estimate(
        choice.terms,
        choice.form.copy(),
        np.zeros((count, width + 1)),
        np.zeros((count, width + 1, width + 1)),
        np.zeros(count),
        np.zeros(count),
    )
    used = (choice.terms >= 0).sum(axis=1)
    _drop_constants(result, rows, basis, used)
    for form in (CONSTANT, WITH_CONSTANT, WITHOUT_CONSTANT, EDGE):
        for size in range(width + 1):
            row = np.flatnonzero((result.form == form) & (used == size))
            if row.size:
                _solve_group(result, row, rows.take(row), basis, (form, size))
    return result


def _drop_constants(result: Estimate, rows: WeightedRows, basis: Basis, used: IntArray) -> None:
    """Remove the constants that do not pay from models, in place."""
    for size in range(1, result.terms.shape[1] + 1):
        row = np.flatnonzero((result.form == WITH_CONSTANT) & (used == size))
        if not row.size:
            continue
        some = rows.take(row)
        full = solve(_design(result.terms[row, :size], WITH_CONSTANT, basis), some)
        bare = solve(_design(result.terms[row, :size], WITHOUT_CONSTANT, basis), some)
        left = floored(full.rss, some.points)
        ratio = (floored(bare.rss, some.points) - left) / left * (some.points - size - 1)
        drop = (ratio < KEEP_CONSTANT) & (bare.coefficients > 0).all(axis=1)
        result.form[row[drop]] = WITHOUT_CONSTANT


def _design(terms: IntArray, form: int, basis: Basis) -> FloatArray:
    """Return the columns of the models of one form, [n, K, q]."""
    count, points = len(terms), basis.values.shape[1]
    ones = np.ones((count, points, 1))
    if form == CONSTANT:
        return ones
    columns = np.swapaxes(basis.values[terms], 1, 2)
    if form == EDGE:
        return np.asarray(basis.reference[terms][:, None, :] - columns)
    return np.concatenate([ones, columns], axis=2) if form == WITH_CONSTANT else columns


def _solve_group(
    result: Estimate, row: IntArray, rows: WeightedRows, basis: Basis, kind: tuple[int, int]
) -> None:
    """Estimate, in place, the rows of one form and one number of terms."""
    form, size = kind
    terms = result.terms[row, :size]
    design = _design(terms, form, basis)
    first = solve(design, rows)
    again = solve(design, rows.reweighted(_weights(first.fitted, rows)))
    fine = _feasible(again, terms, form, basis)
    start = 0 if form in (CONSTANT, WITH_CONSTANT) else 1
    coefficients = np.where(fine[:, None], again.coefficients, first.coefficients)
    inverse = np.where(fine[:, None, None], again.inverse, first.inverse)
    if form == EDGE:
        # c (x_ref - x) is one coefficient; written out it is a constant and a negative slope.
        spread = np.concatenate([basis.reference[terms], -np.ones_like(coefficients)], axis=1)
        coefficients = coefficients * spread
        inverse = inverse * spread[:, :, None] * spread[:, None, :]
        start = 0
    end = start + coefficients.shape[1]
    result.coefficients[row, start:end] = coefficients
    result.inverse[row, start:end, start:end] = inverse
    result.rss[row] = np.where(fine, again.rss, first.rss)
    result.cv[row] = np.where(fine, again.cv, first.cv)


def _weights(fitted: FloatArray, rows: WeightedRows) -> FloatArray:
    """Return relative weights from the fit, within a factor of 3 of those from the values."""
    floor = 1 / np.sqrt(np.where(rows.w > 0, rows.w, 1.0))
    return np.asarray(1 / np.clip(fitted, floor / 3, floor * 3) ** 2)


def _feasible(solution: Solution, terms: IntArray, form: int, basis: Basis) -> BoolArray:
    """Return which solutions still satisfy the sign constraints."""
    numbers = solution.coefficients
    if form == CONSTANT:
        return np.ones(len(numbers), dtype=np.bool_)
    if form in (WITHOUT_CONSTANT, EDGE):
        return np.asarray((numbers > 0).all(axis=1))
    saturating = basis.decreasing[terms[:, 0]] & (numbers[:, 1] < 0) & (terms.shape[1] == 1)
    start = numbers[:, 0] + (numbers[:, 1:] * basis.reference[terms]).sum(axis=1)
    signs = (numbers[:, 1:] > 0).all(axis=1)
    return np.where(saturating, start >= 0, signs & constant_stands(numbers, terms, basis))


def runners_up(
    rows: WeightedRows, choice: Choice, final: Estimate, pure: PureError, count: int
) -> RunnersUp:
    """Return the other hypotheses, ranked by the corrected Akaike criterion.

    Parameters
    ----------
    rows : WeightedRows
        n rows.
    choice : Choice
        Choice with all one-term hypotheses.
    final : Estimate
        The chosen models.
    pure : PureError
        Noise from repetitions; used where the chosen model leaves nothing unexplained.
    count : int
        Number of alternatives to keep.

    Returns
    -------
    RunnersUp
        Weight 0 where a row has fewer.
    """
    one = choice.one
    size = coefficient_count(final.form, final.terms)
    extra = np.where(pure.unexplained(final.rss, rows.points - size), 0.0, pure.dof)
    own = _criterion(choice.rss, size, rows.points, extra, pure.variance)
    forms = 1.0 + (one.form == WITH_CONSTANT)
    rest = _criterion(one.rss.T, forms.T, rows.points, extra, pure.variance).T
    none = _criterion(choice.constant_rss, 1.0, rows.points, extra, pure.variance)
    everything = np.concatenate([rest, none[:, None]], axis=1)
    single = (final.terms >= 0).sum(axis=1) <= 1
    taken = np.where(final.form == CONSTANT, rest.shape[1], final.terms[:, 0])
    row = np.arange(len(own))
    everything[row[single], taken[single]] = np.inf
    count = min(count, everything.shape[1])
    top = _kept(everything, own, final.form == CONSTANT, count)
    order = np.argsort(np.take_along_axis(everything, top, axis=1), axis=1, kind="stable")
    top = np.take_along_axis(top, order, axis=1)
    criterion = np.concatenate([own[:, None], np.take_along_axis(everything, top, axis=1)], axis=1)
    weight = np.exp(-0.5 * (criterion - criterion.min(axis=1, keepdims=True)))
    weight /= weight.sum(axis=1, keepdims=True)
    inside = np.minimum(top, rest.shape[1] - 1)
    is_constant = (top == rest.shape[1])[..., None]
    numbers = np.stack(
        [one.constant[row[:, None], inside], one.slope[row[:, None], inside]], axis=2
    )
    # A hypothesis without feasible coefficients must not contribute to a prediction.
    absent = ~np.isfinite(np.take_along_axis(everything, top, axis=1))
    numbers[absent] = 0.0
    flat = np.stack([np.tile(choice.constant[:, None], count), np.zeros(top.shape)], axis=2)
    return RunnersUp(
        np.where(is_constant[..., 0] | absent, -1, top),
        np.where(is_constant, flat, numbers),
        weight,
    )


def _kept(everything: FloatArray, own: FloatArray, flat: BoolArray, count: int) -> IntArray:
    """Return the alternatives to keep: the best, and the slowest and fastest that are not excluded.

    Many neighbours in growth often fit equally well; the extremes show their range. A constant is
    not among the extremes, because the test against growth has decided already.
    """
    best = np.minimum(own, everything.min(axis=1))
    likely = (everything <= best[:, None] + EXCLUDED) & ~flat[:, None]
    row = np.flatnonzero(likely.any(axis=1))
    sort = everything.copy()
    if count >= 3:
        # The position of a term is its growth; the constant, last, is never an extreme here.
        inside = likely[row, :-1]
        some = inside.any(axis=1)
        row, inside = row[some], inside[some]
        sort[row, inside.argmax(axis=1)] = -np.inf
        sort[row, inside.shape[1] - 1 - inside[:, ::-1].argmax(axis=1)] = -np.inf
        sort[row, everything[row].argmin(axis=1)] = -np.inf
    return np.argpartition(sort, count - 1, axis=1)[:, :count]


def _criterion(
    rss: FloatArray,
    size: FloatArray | float,
    points: FloatArray,
    extra: FloatArray,
    variance: FloatArray,
) -> FloatArray:
    """Return Akaike's criterion, corrected for few observations, repetitions included."""
    seen = points + extra
    total = floored(rss, points) + extra * variance
    parameters = np.asarray(size) + 1.0
    correction = 2 * parameters * (parameters + 1) / np.maximum(seen - parameters - 1, 1.0)
    return np.asarray(seen * np.log(total / seen) + 2 * parameters + correction)
