"""Hypotheses of several terms: pairs in closed form, then term by term until statistical shrinkage.

See docs/explanation/modeling.md, 'The classic method'.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, Int8Array, IntArray
from callpath_modeler.modeling.classic_search import (
    CONSTANT,
    WITH_CONSTANT,
    WITHOUT_CONSTANT,
    Basis,
    OneTerm,
    PureError,
    Solution,
    WeightedRows,
    fit_one_term,
    floored,
    more_terms_probability,
    one_term_probability,
    path_length,
    selection_score,
    solve,
)
from callpath_modeler.modeling.constants.noise import EXACT
from callpath_modeler.modeling.constants.several import (
    CLASSIC_SECOND_CLASS,
    COLLINEAR,
    HINT_LEVEL,
    HINTS,
    LEVEL,
    MORE_LEVEL,
    SIGN_TOLERANCE,
    VALIDATED,
)


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


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen hypothesis of each of n rows, and the hypotheses that it was compared with.

    Attributes
    ----------
    terms : ndarray [n, T]
        Positions in the basis, ascending, then -1.
    form : ndarray [n]
        One of the forms of `search`.
    rss, cv : ndarray [n]
        Weighted sums of squares, of residuals and cross-validated.
    constant_rss, constant_cv : ndarray [n]
        The same for the constant.
    constant : ndarray [n]
        Coefficient of the constant.
    one : OneTerm
        All one-term hypotheses.
    """

    terms: IntArray
    form: Int8Array
    rss: FloatArray
    cv: FloatArray
    constant_rss: FloatArray
    constant_cv: FloatArray
    constant: FloatArray
    one: OneTerm


def choose(
    rows: WeightedRows, basis: Basis, pure: PureError, exact: BoolArray, max_terms: int
) -> Choice:
    """Return a hypothesis for every row.

    A term is added if it raises the adjusted R^2, lowers the cross-validated error, and passes a
    test that takes the number of hypotheses into account. The first term is compared with the
    constant in the same way.

    Parameters
    ----------
    rows : WeightedRows
        n rows with 4 points or more.
    basis : Basis
        Terms in order of growth.
    pure : PureError
        Noise from repetitions.
    exact : ndarray [n]
        Rows without noise, in which every change is real: the constant needs no test.
    max_terms : int
        Largest number of terms of a model.

    Returns
    -------
    Choice
        One hypothesis per row.
    """
    constant, constant_rss, constant_cv = _fit_constant(rows)
    one = fit_one_term(rows, basis)
    width = max(1, min(max_terms, rows.y.shape[1] - 3, int(basis.first_class.sum())))
    state = Choice(
        np.full((len(constant), width), -1, dtype=np.intp),
        np.full(len(constant), CONSTANT, dtype=np.int8),
        constant_rss.copy(),
        constant_cv.copy(),
        constant_rss,
        constant_cv,
        constant,
        one,
    )
    _take_one(state, rows, basis, pure, exact)
    for size in range(2, width + 1):
        if not _take_more(state, rows, basis, pure, exact, size):
            break
    if width >= 2:
        _take_fine_pairs(state, rows, basis, pure, exact)
    return state


def coefficient_count(form: Int8Array, terms: IntArray) -> FloatArray:
    """Return the number of coefficients of hypotheses, [n]."""
    used = (terms >= 0).sum(axis=1)
    return np.asarray(used + ((form == CONSTANT) | (form == WITH_CONSTANT)), dtype=np.float64)


def _fit_constant(rows: WeightedRows) -> tuple[FloatArray, FloatArray, FloatArray]:
    total = rows.w.sum(axis=1)
    constant = (rows.w * rows.y).sum(axis=1) / total
    residual = rows.y - constant[:, None]
    rss = (rows.w * residual**2).sum(axis=1)
    cv = np.zeros_like(rss)
    for fold in range(int(rows.fold.max()) + 1):
        out = np.where(rows.fold == fold, rows.w, 0.0)
        # The kept points are summed, as differences of sums lose digits if weights span many
        # orders.
        kept = rows.w - out
        held = (kept * rows.y).sum(axis=1) / np.maximum(kept.sum(axis=1), np.finfo(float).tiny)
        cv += (out * (rows.y - held[:, None]) ** 2).sum(axis=1)
    return constant, rss, cv


def _take_one(
    state: Choice, rows: WeightedRows, basis: Basis, pure: PureError, exact: BoolArray
) -> None:
    """Replace the constant by the best one-term hypothesis where that pays, in place."""
    one = state.one
    best = _best_one(one, rows, basis)
    row = np.arange(len(best))
    rss, cv, form = one.rss[row, best], one.cv[row, best], one.form[row, best]
    freedom = rows.points - 1.0 - (form == WITH_CONSTANT)
    pooled = ~pure.unexplained(np.where(np.isfinite(rss), rss, 0.0), freedom)
    probability = one_term_probability(
        state.constant_rss, rss, rows.points, pure, pooled, path_length(basis)
    )
    better = (
        ((probability <= LEVEL) | exact)
        & (cv < state.constant_cv)
        & (rss / freedom < state.constant_rss / (rows.points - 1))
        # Numbers that agree except for their last digits are constant.
        & (state.constant_rss > rows.points * (10 * EXACT) ** 2)
    )
    likely = np.flatnonzero(better & ~exact)
    better[likely] = _is_seen_before_the_end(rows.take(likely), basis, pure.take(likely))
    taken = np.flatnonzero(better)
    state.terms[taken, 0] = best[taken]
    state.form[taken] = form[taken]
    state.rss[taken], state.cv[taken] = rss[taken], cv[taken]


def _is_seen_before_the_end(rows: WeightedRows, basis: Basis, pure: PureError) -> BoolArray:
    """Return where the points before the largest hint at a change as well.

    A steep term fits a single outlier at the largest point as closely as growth. Only the other
    points can distinguish both.
    """
    if not len(rows.points):
        return np.zeros(0, dtype=np.bool_)
    last = rows.y.shape[1] - 1 - np.argmax(rows.w[:, ::-1] > 0, axis=1)
    short = rows.without(last)
    _, none, _ = _fit_constant(short)
    # A few shapes suffice for a hint.
    shapes = np.flatnonzero(basis.first_class)
    shapes = shapes[np.linspace(0, len(shapes) - 1, min(HINTS, len(shapes))).astype(np.intp)]
    one = fit_one_term(short, basis.take(shapes))
    rss = np.where(np.isfinite(one.rss), one.rss, none[:, None]).min(axis=1)
    pooled = ~pure.unexplained(rss, short.points - 2)
    room = path_length(basis)
    probability = one_term_probability(none, rss, short.points, pure, pooled, room)
    return np.asarray(probability <= HINT_LEVEL)


def _best_one(one: OneTerm, rows: WeightedRows, basis: Basis) -> IntArray:
    """Return the best privileged term of each row, or the best of second class if far better."""
    least = rows.points[:, None] * EXACT**2
    score = np.maximum(one.score, least)
    first = np.where(basis.first_class, score, np.inf).argmin(axis=1)
    second = np.where(basis.first_class, np.inf, score).argmin(axis=1)
    row = np.arange(len(first))
    error = np.maximum(one.cv, least)
    better = error[row, second] * CLASSIC_SECOND_CLASS**2 <= error[row, first]
    return np.asarray(np.where(better & ~basis.first_class[second], second, first))


def _take_more(
    state: Choice, rows: WeightedRows, basis: Basis, pure: PureError, exact: BoolArray, size: int
) -> bool:
    """Replace hypotheses of fewer terms by those of `size` terms where that pays, in place."""
    used = (state.terms >= 0).sum(axis=1)
    freedom = rows.points - coefficient_count(state.form, state.terms)
    ready = (used == size - 1) | ((size == 2) & (used == 0))
    # Without a known noise, the best of hundreds of pairs fits a few points by chance, and so well
    # that nothing warns. So one more point than the coefficients need has to support it.
    blind = (pure.dof == 0) & ~exact
    ready &= rows.points >= size + 3 + blind
    ready &= state.rss > rows.points * (10 * EXACT) ** 2
    ready &= pure.unexplained(state.rss, freedom)
    row = np.flatnonzero(ready)
    if not row.size or basis.first_class.sum() < size:
        return False
    some = rows.take(row)
    found = (
        best_pair(some, basis, np.flatnonzero(basis.first_class))
        if size == 2
        else one_more(some, state.terms[row, : size - 1], basis)
    )
    privileged = float(basis.first_class.sum())
    tried = np.where(used[row] == 0, privileged * (privileged - 1) / 2, privileged)
    taken = _paying(state, found, row, some, pure.take(row), tried)
    state.terms[row[taken], :size] = found.terms[taken]
    state.form[row[taken]] = found.form[taken]
    state.rss[row[taken]], state.cv[row[taken]] = found.rss[taken], found.cv[taken]
    return bool(taken.any())


def _take_fine_pairs(
    state: Choice, rows: WeightedRows, basis: Basis, pure: PureError, exact: BoolArray
) -> None:
    """Replace misfits of exact rows by pairs that may contain second-class terms, in place.

    Counts such as those of surfaces and edges of a cube, p^(2/3) and p^(1/3), are exact sums of
    finer fractions. In rows with noise such pairs would only imitate privileged terms.
    """
    row = np.flatnonzero(exact & (rows.points >= 5) & (state.rss > rows.points * (10 * EXACT) ** 2))
    if not row.size or basis.first_class.all():
        return
    some = rows.take(row)
    found = best_pair(some, basis, np.arange(len(basis.first_class)))
    usable = np.isfinite(found.rss)
    rss = np.where(usable, found.rss, state.rss[row])
    size = coefficient_count(found.form, found.terms)
    freedom = np.maximum(some.points - size, 1.0)
    tried = np.full(len(row), len(basis.first_class) * (len(basis.first_class) - 1) / 2)
    probability = more_terms_probability(
        state.constant_rss[row], rss, size - 1, freedom, some.points, pure.take(row), tried
    )
    halved = np.maximum(found.cv, some.points * EXACT**2) * CLASSIC_SECOND_CLASS**2 <= state.cv[row]
    taken = usable & halved & (probability <= MORE_LEVEL)
    state.terms[row[taken]] = -1
    state.terms[row[taken], :2] = found.terms[taken]
    state.form[row[taken]] = found.form[taken]
    state.rss[row[taken]], state.cv[row[taken]] = found.rss[taken], found.cv[taken]


def _paying(
    state: Choice,
    found: Candidate,
    row: IntArray,
    rows: WeightedRows,
    pure: PureError,
    tried: FloatArray,
) -> BoolArray:
    """Return which candidates pay for their terms."""
    before = coefficient_count(state.form[row], state.terms[row])
    after = coefficient_count(found.form, found.terms)
    usable = np.isfinite(found.rss) & (after >= before)
    rss = np.where(usable, found.rss, state.rss[row])
    freedom = np.maximum(rows.points - after, 1.0)
    probability = more_terms_probability(
        state.rss[row], rss, after - before, freedom, rows.points, pure, tried
    )
    adjusted = floored(rss, rows.points) / freedom < state.rss[row] / (rows.points - before)
    paying: BoolArray = usable & adjusted & (probability <= MORE_LEVEL) & (found.cv < state.cv[row])
    return paying
