"""Selection of rows for pairs: rows in which a pair could compete with the best hypothesis."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.modeling.compiled import library
from callpath_modeler.modeling.constants.evidence import LOG_2, LOG_2PI
from callpath_modeler.modeling.mixture.one_parameter import hypotheses
from callpath_modeler.modeling.mixture.residuals import promise_of_pairs, screen
from callpath_modeler.modeling.mixture.scaled_rows import error_unit, relative_weights
from callpath_modeler.modeling.products_of_factors import joint_hypotheses
from callpath_modeler.modeling.terms import DEFAULT_SPACE, JOINT_SPACE, SearchSpace
from many_rows import rows_to_fit
from oracle import bounds as module
from oracle.bounds import (
    bounds,
    regress,
    rough_fit,
    rows_for_pairs,
    typical_variance,
)

P = 8 * 2.0 ** np.arange(5)


def test_pairs_promise_what_the_best_of_them_comes_to_at_a_level_of_one():
    known = hypotheses(DEFAULT_SPACE, P)
    prior = known.log_prior[1 + 3 * len(known.shapes) :]
    columns = np.stack(
        [np.ones((len(prior), 5)), known.table[known.first], known.table[known.second]]
    )
    determinant = np.linalg.det(np.einsum("ipk,jpk->pij", columns, columns))
    expected = (prior - 0.5 * np.log(determinant)).max() + 1.5 * LOG_2PI + LOG_2
    assert promise_of_pairs(known, known.log_prior) == pytest.approx(expected, rel=1e-4)


def test_without_pairs_nothing_is_promised_and_with_fans_anything():
    none = hypotheses(SearchSpace.of([1], [0], 1), P)
    assert promise_of_pairs(none, none.log_prior) == -np.inf
    grid = np.array([(p, n) for p in P for n in (10.0, 20.0, 30.0)])
    fans = joint_hypotheses(JOINT_SPACE, grid)
    assert promise_of_pairs(fans, fans.log_prior) == np.inf


def rows_of(law, count=300):
    """Return rows with 2 % noise about a law."""
    noise = np.exp(0.02 * np.random.default_rng(5).standard_normal((count, len(P), 4)))
    return rows_to_fit(P, law(P)[:, None] * noise)


@pytest.mark.parametrize(
    ("law", "least", "most"),
    [
        (lambda p: 5 + 0 * p, 0.0, 0.2),
        (lambda p: 1 + 800 / p + p, 1.0, 1.0),
        (lambda p: 900 / p, 1.0, 1.0),
        (lambda p: 2 + np.log2(p) + p**2 / 2000, 1.0, 1.0),
    ],
    ids=["constant", "U-shaped", "shared", "two terms"],
)
def test_pairs_are_looked_at_where_they_may_be_near(law, least, most):
    known = hypotheses(DEFAULT_SPACE, P)
    data, ways = rows_of(law)
    fitted = rough_fit(data, known)
    unit = error_unit(data, fitted)
    looks = [regress(data, known, relative_weights(data, unit, drift).T) for drift in ways.extremes]
    variance = typical_variance(looks[0], data)
    best = bounds(looks, data, known, known.log_prior, variance).alone
    promise = promise_of_pairs(known, known.log_prior)
    rows = rows_for_pairs(looks[0], data, known, promise, fitted, best)
    assert least <= len(rows) / len(data.values) <= most


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    "law",
    [lambda p: 5 + 0 * p, lambda p: 100 + np.sqrt(p), lambda p: 50 + p],
    ids=["constant", "root", "linear"],
)
def test_of_what_is_passed_over_hardly_anything_would_have_been_near(law, monkeypatch):
    known = hypotheses(DEFAULT_SPACE, P)
    data, ways = rows_of(law, 1000)
    arguments = data, known, known.log_prior, ways.extremes
    found = np.bincount(screen(*arguments).pair_row, minlength=1000)
    for place in (module, library):
        monkeypatch.setattr(place, "promise_of_pairs", lambda *_: np.inf)
    every = np.bincount(screen(*arguments).pair_row, minlength=1000)
    assert (found <= every).all()
    assert (found < every).mean() <= 0.01
