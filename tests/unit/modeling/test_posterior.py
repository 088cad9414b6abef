"""Equal rows have equal posteriors."""

from __future__ import annotations

import numpy as np

from callpath_modeler.modeling.mixture.one_parameter import hypotheses
from callpath_modeler.modeling.mixture.posterior import Posterior, evidence_of_best
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows, deviations
from callpath_modeler.modeling.terms import SearchSpace


def test_what_is_believed_of_rows_is_repeated_in_any_order() -> None:
    found = Posterior(
        row=np.array([0, 0, 2, 2, 2]),
        chosen=np.array([5, 6, 7, 8, 9]),
        weight=np.array([0.4, 0.6, 0.2, 0.3, 0.5]),
        coefficients=np.arange(15.0).reshape(3, 5),
        covariance=np.arange(30.0).reshape(6, 5),
        variance=np.array([1.0, 2, 3]),
        drift=np.array([4.0, 5, 6]),
    )
    again = found.repeated(np.array([2, 0, 1, 2]))
    assert again.row.tolist() == [0, 0, 0, 1, 1, 3, 3, 3]
    assert again.chosen.tolist() == [7, 8, 9, 5, 6, 7, 8, 9]
    assert again.weight.tolist() == [0.2, 0.3, 0.5, 0.4, 0.6, 0.2, 0.3, 0.5]
    assert again.coefficients[1].tolist() == [7, 8, 9, 5, 6, 7, 8, 9]
    assert again.variance.tolist() == [3, 1, 2, 3]
    assert again.drift.tolist() == [6, 4, 5, 6]


def test_rows_are_alike_where_all_that_is_known_of_them_is() -> None:
    values = np.array([[0.5, 1.0], [0.25, 1.0], [0.5, 1.0], [0.5, 1.0], [0.5, 1.0]])
    weight, variance, dof = np.ones((5, 2)), np.ones(5), np.ones(5)
    weight[3, 1], variance[4] = 2.0, 3.0
    data = ScaledRows(np.array([1.0, 2.0]), values, weight, variance, dof, np.zeros(len(dof)))
    first, like = data.distinct()
    assert first[like].tolist() == [0, 1, 0, 3, 4]
    assert len(first) == 4
    for count in (2, 3):
        first, like = data.take(np.arange(count)).distinct()
        assert first[like].tolist() == [0, 1, 0][:count]


def test_a_less_probable_hypothesis_stands_in_for_one_that_is_impossible() -> None:
    """The most probable one had evidence zero in rows of several parameters, and learning NaN."""
    points = np.array([2.0, 4.0, 8.0, 16.0, 32.0])
    known = hypotheses(SearchSpace.of([1, 2], [0], max_terms=2), points)
    rising = np.flatnonzero(
        (known.table >= 0).all(axis=1) & (np.diff(known.table) >= 0).all(axis=1)
    )
    both = np.isin(known.codes(np.arange(len(known.log_prior))), rising).all(axis=1)
    pair = int(np.flatnonzero(both)[0])
    values = np.array([1 / points, (points + points**2 / 32) / 64, 1 / points])
    rows, ones = len(values), np.ones(len(values))
    data = ScaledRows(points, values, np.ones_like(values), 1e-4 * ones, 9 * ones, np.zeros(rows))
    one = Posterior(
        row=np.array([0, 0, 1, 1, 2]),
        chosen=np.array([0, pair, 0, pair, pair]),
        weight=np.array([0.1, 0.9, 0.1, 0.9, 1.0]),
        coefficients=np.zeros((3, 5)),
        covariance=np.zeros((6, 5)),
        variance=ones,
        drift=0 * ones,
    )
    ways = deviations(points, noise_known=True)
    best, evidence = evidence_of_best(one, data, values, 1e-4 * ones, known, ways)
    assert best.tolist() == [0, 3, 4]
    assert np.isfinite(evidence[:, :2]).any(axis=0).all()
    assert np.isneginf(evidence[:, 2]).all()
