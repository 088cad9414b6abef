"""Equal rows have equal posteriors."""

from __future__ import annotations

import numpy as np

from callpath_modeler.modeling.mixture.posterior import Posterior
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows


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
