"""Refinement term by term until statistical shrinkage (Calotoiu, Hoefler, Poke, Wolf, SC13).

See docs/explanation/modeling.md, 'The classic method'.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, Int8Array, IntArray
from callpath_modeler.modeling.classic.pairs import Candidate, best_pair, one_more
from callpath_modeler.modeling.classic.search import (
    CONSTANT,
    WITH_CONSTANT,
    Basis,
    OneTerm,
    WeightedRows,
    fit_one_term,
)
from callpath_modeler.modeling.classic.significance import (
    PureError,
    floored,
    more_terms_probability,
    one_term_probability,
    path_length,
)
from callpath_modeler.modeling.constants.classic import (
    HINT_LEVEL,
    HINTS,
    LEVEL,
    MORE_LEVEL,
    SECOND_CLASS,
)
from callpath_modeler.modeling.constants.noise import EXACT


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
    better = error[row, second] * SECOND_CLASS**2 <= error[row, first]
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
    halved = np.maximum(found.cv, some.points * EXACT**2) * SECOND_CLASS**2 <= state.cv[row]
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
