"""The closed forms, compared with plain least squares of one row and one hypothesis at a time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling import DEFAULT_SPACE
from callpath_modeler.modeling.classic_fit import _basis
from callpath_modeler.modeling.classic_search import (
    EDGE,
    WITH_CONSTANT,
    WITHOUT_CONSTANT,
    Basis,
    WeightedRows,
    fit_one_term,
    solve,
)
from callpath_modeler.modeling.term_refinement import best_pair, one_more, solve_terms

POINTS = np.array([4, 8, 16, 32, 64, 128, 256.0])


def example(folds: int | None, count: int = 12, missing: bool = True) -> tuple[WeightedRows, Basis]:
    random = np.random.default_rng(5)
    basis, _ = _basis(DEFAULT_SPACE, POINTS)
    power = random.choice([-1, -0.5, 0, 0.5, 1, 2], (count, 1))
    y = (1 + POINTS**power) * (1 + random.normal(0, 0.05, (count, len(POINTS))))
    present = np.ones(y.shape, dtype=bool)
    if missing:
        present[::3, 2] = False
        present[::4, 0] = False
    y = np.where(present, y, 0.0)
    return WeightedRows.relative(y / y.max(axis=1, keepdims=True), present, folds), basis


def columns(form: int, x: FloatArray, reference: float) -> FloatArray:
    if form == WITH_CONSTANT:
        return np.stack([np.ones_like(x), x], axis=1)
    return (x if form == WITHOUT_CONSTANT else reference - x)[:, None]


def by_hand(
    design: FloatArray, y: FloatArray, w: FloatArray, fold: npt.NDArray[np.intp]
) -> tuple[float, float]:
    def solved(keep: npt.NDArray[np.bool_]) -> FloatArray:
        root = np.sqrt(w[keep])[:, None]
        return np.linalg.lstsq(design[keep] * root, y[keep] * root[:, 0], rcond=None)[0]

    whole = (w * (y - design @ solved(w > 0)) ** 2).sum()
    held = 0.0
    for number in range(fold.max() + 1):
        out = fold == number
        rest = design[out] @ solved((w > 0) & ~out)
        held += float((w[out] * (y[out] - rest) ** 2).sum())
    return float(whole), held


@pytest.mark.parametrize("folds", [None, 2, 3])
def test_every_one_term_hypothesis_agrees_with_least_squares(folds: int | None) -> None:
    rows, basis = example(folds)
    fit = fit_one_term(rows, basis)
    seen = set()
    for row in range(len(rows.y)):
        for term in np.flatnonzero(np.isfinite(fit.rss[row])):
            form = int(fit.form[row, term])
            design = columns(form, basis.values[term], basis.reference[term])
            rss, cv = by_hand(design, rows.y[row], rows.w[row], rows.fold[row])
            assert fit.rss[row, term] == pytest.approx(rss, rel=1e-6, abs=1e-12)
            assert fit.cv[row, term] == pytest.approx(cv, rel=1e-5, abs=1e-12)
            seen.add(form)
    assert seen == {WITH_CONSTANT, WITHOUT_CONSTANT, EDGE}


@pytest.mark.parametrize("folds", [None, 2])
def test_a_design_of_several_terms_agrees_with_least_squares(folds: int | None) -> None:
    rows, basis = example(folds)
    design = np.stack([np.ones(len(POINTS)), basis.values[0], basis.values[19]], axis=1)
    solution = solve(np.broadcast_to(design, (len(rows.y), *design.shape)), rows)
    for row in range(len(rows.y)):
        rss, cv = by_hand(design, rows.y[row], rows.w[row], rows.fold[row])
        assert solution.rss[row] == pytest.approx(rss, rel=1e-6)
        if folds is None or rows.points[row] >= 6:
            assert solution.cv[row] == pytest.approx(cv, rel=1e-5)
        else:  # 3 coefficients, and 2 points left to train on
            assert np.isinf(solution.cv[row])


def test_no_pair_of_terms_fits_better_than_the_best_pair() -> None:
    rows, basis = example(None)
    allowed = np.flatnonzero(basis.first_class)
    best = best_pair(rows, basis, allowed)
    for first in allowed:
        for second in allowed[allowed > first]:
            terms = np.broadcast_to(np.array([first, second]), (len(rows.y), 2))
            _, rss, _ = solve_terms(rows, terms, basis)
            # The best few by residuals are compared by cross-validation, hence the slack.
            sized = np.isfinite(rss) & np.isfinite(best.rss)
            assert (rss[sized] * 1.8 >= best.rss[sized]).all()


def test_one_more_term_keeps_those_before() -> None:
    rows, basis = example(None, missing=False)
    allowed = np.flatnonzero(basis.first_class)
    terms = np.broadcast_to(allowed[[1, 6]], (len(rows.y), 2))
    more = one_more(rows, terms, basis)
    for row in np.flatnonzero(np.isfinite(more.rss)):
        assert set(terms[row]) < set(more.terms[row])
        assert len(set(more.terms[row])) == 3
