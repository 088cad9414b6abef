"""Hypotheses of several terms: all pairs in closed form, then one more term at a time.

See docs/explanation/modeling.md, 'The classic method'.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, Int8Array, IntArray
from callpath_modeler.modeling.classic.search import (
    WITH_CONSTANT,
    WITHOUT_CONSTANT,
    Basis,
    Solution,
    WeightedRows,
    selection_score,
    solve,
)
from callpath_modeler.modeling.constants.classic import COLLINEAR, SIGN_TOLERANCE, VALIDATED


@dataclass(frozen=True, slots=True)
class Candidate:
    """One hypothesis of several terms per row.

    Attributes
    ----------
    terms : ndarray [n, t]
        Positions in the basis, ascending.
    form : ndarray [n]
        WITH_CONSTANT or WITHOUT_CONSTANT.
    rss, cv : ndarray [n]
        Weighted sums of squares; infinite where no coefficients satisfy the constraints.
    """

    terms: IntArray
    form: Int8Array
    rss: FloatArray
    cv: FloatArray


def solve_terms(
    rows: WeightedRows, terms: IntArray, basis: Basis
) -> tuple[Int8Array, FloatArray, FloatArray]:
    """Return fits of several given terms per row, with a constant if one is allowed.

    Parameters
    ----------
    rows : WeightedRows
        n rows.
    terms : ndarray [n, t]
        Positions in the basis.
    basis : Basis
        The terms.

    Returns
    -------
    form : ndarray [n]
        WITH_CONSTANT or WITHOUT_CONSTANT.
    rss, cv : ndarray [n]
        Infinite where a coefficient has the wrong sign.
    """
    columns = np.swapaxes(basis.values[terms], 1, 2)
    ones = np.ones((*columns.shape[:2], 1))
    full = solve(np.concatenate([ones, columns], axis=2), rows)
    signs = (full.coefficients[:, 1:] > 0).all(axis=1)
    stands = signs & constant_stands(full.coefficients, terms, basis)
    form = np.where(stands, WITH_CONSTANT, WITHOUT_CONSTANT).astype(np.int8)
    rss, cv = np.where(stands, full.rss, np.inf), np.where(stands, full.cv, np.inf)
    again = np.flatnonzero(~stands)
    if again.size:
        bare: Solution = solve(columns[again], rows.take(again))
        good = (bare.coefficients > 0).all(axis=1)
        rss[again] = np.where(good, bare.rss, np.inf)
        cv[again] = np.where(good, bare.cv, np.inf)
    return form, rss, cv


def constant_stands(coefficients: FloatArray, terms: IntArray, basis: Basis) -> BoolArray:
    """Return whether constants keep predictions from becoming negative.

    Parameters
    ----------
    coefficients : ndarray [n, t + 1]
        Constant first, in units of the basis.
    terms : ndarray [n, t]
        Positions in the basis.
    basis : Basis
        The terms.

    Returns
    -------
    ndarray [n]
        True for constants of zero or more, and for negative ones if the model rises from a
        value of zero or more at the reference point.
    """
    start = coefficients[:, 0] + (coefficients[:, 1:] * basis.reference[terms]).sum(axis=1)
    rising = ~basis.decreasing[terms].any(axis=1)
    return np.asarray((coefficients[:, 0] >= 0) | (rising & (start >= -SIGN_TOLERANCE)))


def best_pair(rows: WeightedRows, basis: Basis, allowed: IntArray) -> Candidate:
    """Return the best two-term hypothesis of some terms for each row.

    All pairs are solved in closed form from sums. The few with the smallest residuals are solved
    again and compared by cross-validation.

    Parameters
    ----------
    rows : WeightedRows
        n rows.
    basis : Basis
        The terms.
    allowed : ndarray [a]
        Positions of the terms that may be paired, ascending.

    Returns
    -------
    Candidate
        Candidate with terms [n, 2].
    """
    first, second = (allowed[index] for index in np.triu_indices(len(allowed), 1))
    rss = _pair_residuals(rows, basis, first, second)
    count = min(VALIDATED, rss.shape[1])
    top = np.argpartition(rss, count - 1, axis=1)[:, :count]
    return _validated(rows, basis, np.stack([first[top], second[top]], axis=2))


def _validated(rows: WeightedRows, basis: Basis, terms: IntArray) -> Candidate:
    """Return the one of a few hypotheses [n, s, t] per row with the best cross-validation."""
    count, several, width = terms.shape
    spread = np.repeat(np.arange(count), several)
    repeated = rows.take(spread)
    form, rss, cv = solve_terms(repeated, terms.reshape(-1, width), basis)
    size = width + (form == WITH_CONSTANT)
    score = selection_score(rss, cv, size.astype(np.float64), repeated)
    best = score.reshape(count, several).argmin(axis=1)
    pick = np.arange(count) * several + best
    return Candidate(terms[np.arange(count), best], form[pick], rss[pick], cv[pick])


def _pair_residuals(
    rows: WeightedRows, basis: Basis, first: IntArray, second: IntArray
) -> FloatArray:
    """Return weighted residual sums of squares of all pairs, [n, pairs]; infinite = excluded."""
    x, w = basis.values, rows.w
    wy = w * rows.y
    total = w.sum(axis=1)[:, None]
    mean, mean_y = w @ x.T / total, wy.sum(axis=1)[:, None] / total
    square, cross = w @ (x**2).T, w @ (x[first] * x[second]).T
    right = wy @ x.T
    whole = (wy * rows.y).sum(axis=1)[:, None]
    centred_square = square - total * mean**2
    centred_right = right - total * mean * mean_y
    one, two, free = _two_by_two(
        (centred_square[:, first], centred_square[:, second]),
        cross - total * mean[:, first] * mean[:, second],
        (centred_right[:, first], centred_right[:, second]),
        whole - total * mean_y**2,
    )
    constant = mean_y - one * mean[:, first] - two * mean[:, second]
    start = constant + one * basis.reference[first] + two * basis.reference[second]
    rising = ~(basis.decreasing[first] | basis.decreasing[second])
    stands = (constant >= 0) | (rising & (start >= 0))
    _, _, bare = _two_by_two(
        (square[:, first], square[:, second]), cross, (right[:, first], right[:, second]), whole
    )
    return np.where(stands & np.isfinite(free), free, bare)


def _two_by_two(
    square: tuple[FloatArray, FloatArray],
    cross: FloatArray,
    right: tuple[FloatArray, FloatArray],
    whole: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the solutions of many 2x2 systems: two coefficients, the residual sum or infinity."""
    area = square[0] * square[1]
    determinant = area - cross**2
    usable = determinant > COLLINEAR * area
    safe = np.where(usable, determinant, 1.0)
    one = (square[1] * right[0] - cross * right[1]) / safe
    two = (square[0] * right[1] - cross * right[0]) / safe
    rss = np.maximum(whole - one * right[0] - two * right[1], 0.0)
    return one, two, np.where(usable & (one > 0) & (two > 0), rss, np.inf)


def one_more(rows: WeightedRows, terms: IntArray, basis: Basis) -> Candidate:
    """Return the best privileged term in addition to the terms of each row.

    Parameters
    ----------
    rows : WeightedRows
        n rows.
    terms : ndarray [n, t]
        Positions of the terms so far.
    basis : Basis
        The terms.

    Returns
    -------
    Candidate
        Candidate with terms [n, t + 1].
    """
    allowed = np.flatnonzero(basis.first_class)
    count, width = terms.shape
    added = np.broadcast_to(allowed, (count, len(allowed)))
    spread = np.repeat(np.arange(count), len(allowed))
    bigger = np.concatenate([terms[spread], added.reshape(-1, 1)], axis=1)
    bigger.sort(axis=1)
    form, rss, cv = solve_terms(rows.take(spread), bigger, basis)
    repeated = (bigger[:, 1:] == bigger[:, :-1]).any(axis=1)
    rss[repeated] = cv[repeated] = np.inf
    shape = (count, len(allowed))
    # The best one by residuals is then judged by cross-validation, as for pairs.
    best = rss.reshape(shape).argmin(axis=1)
    pick = np.arange(count) * len(allowed) + best
    return Candidate(
        bigger.reshape(*shape, width + 1)[np.arange(count), best], form[pick], rss[pick], cv[pick]
    )
