"""Logarithmic residuals: much too small is as bad as much too large."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling import fit
from callpath_modeler.modeling.mixture.residuals import large_misfits, log_residuals

POINTS = np.array([4.0, 16, 64, 256])
VALUES = np.array([[1.0], [2], [4], [8]])


def left(values: FloatArray, model: FloatArray) -> FloatArray:
    """Return logarithmic residuals of a model, with weights that make errors relative."""
    weights = 1 / values**2
    plain = (weights * (values - model) ** 2).sum(axis=0)
    return plain * log_residuals(values, model, weights, values)


def test_only_what_misses_by_more_than_a_hundredth_is_looked_at() -> None:
    assert large_misfits(np.array([3.9e-4, 4.1e-4, 0, 7]), np.full(4, 4.0)).tolist() == [1, 3]


@pytest.mark.parametrize("factor", [1.5, 3, 900])
def test_a_model_misses_by_as_much_below_as_above(factor: float) -> None:
    below, above = left(VALUES, VALUES / factor), left(VALUES, VALUES * factor)
    assert below == pytest.approx(above)
    assert below == pytest.approx(4 * np.log(factor) ** 2)


def test_where_a_model_fits_logarithms_say_the_same() -> None:
    model = VALUES * np.array([[1.01], [0.99], [1.01], [0.99]])
    assert log_residuals(VALUES, model, 1 / VALUES**2, VALUES) == pytest.approx(1, rel=1e-3)


def test_a_model_that_touches_zero_misses_alike_on_both_sides_of_it() -> None:
    below, at, above = (left(VALUES, np.full((4, 1), model)) for model in (-1e-16, 0, 1e-16))
    assert below == at == above
    assert at == pytest.approx(4 * np.log(1000) ** 2)


def test_of_a_value_of_zero_there_is_no_logarithm() -> None:
    weights, unit = np.full((4, 1), 0.25), np.full((4, 1), 2.0)
    nothing = np.zeros((4, 1))
    assert log_residuals(nothing, np.full((4, 1), 4.0), weights, unit) == pytest.approx(1)


def test_a_missing_point_says_nothing() -> None:
    weights = np.array([[1.0], [1], [0], [1]])
    model = np.full((4, 1), 2.5)
    other = np.where(weights > 0, VALUES, 1e9)
    one, two = (log_residuals(y, model, weights, np.ones((4, 1))) for y in (VALUES, other))
    assert one == two


@pytest.mark.parametrize(
    "values", [[0.01, 0.012, 0.3, 0.9], [0.01, 0.5, 0.4, 20], [0.01, 0.02, 0.01, 0.9]]
)
def test_values_that_rise_a_hundredfold_are_not_constant(values: list[float]) -> None:
    steady = [[0.02, 0.0201, 0.0199, 0.02], [1.2, 1.21, 1.19, 1.2]]
    y = np.array([values, *steady, *steady, *steady])[..., None]
    assert fit(POINTS, y).values([1024.0])[0, 0] > values[-1] / 2
