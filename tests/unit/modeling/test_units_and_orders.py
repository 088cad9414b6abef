"""Invariance of models in several parameters to units and to the order of measurements.

If each parameter varied while the others stayed at their smallest values, thousands of products are
equal, or zero, at all points. Rounding must not select one of them.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from callpath_modeler.modeling import SearchSpace, fit, slice_along

FEW = SearchSpace.of(["-1", "1/2", 1, 2], [0, 1], max_terms=2)
"""Enough terms for products that are equal at all points, and few enough for many models."""

AXES = (
    (1.0, 2.0, 4.0, 8.0),
    (10.0, 20.0, 30.0),
    (1.0, 3.0, 7.0, 12.0),
    (14.0, 21.0, 24.0, 41.0, 42.0),
    (8.0, 16.0, 32.0),
)


def cross(axes, corner):
    """Vary each parameter while the others stay at their smallest values."""
    least = [axis[0] for axis in axes]
    points = [least]
    for place, axis in enumerate(axes):
        points += [[*least[:place], value, *least[place + 1 :]] for value in axis[1:]]
    return np.array([*points, [axis[-1] for axis in axes]] if corner else points)


@st.composite
def measurements(draw, parameters):
    """Draw constants and products over a cross, noisy or not: values [n, K, R] at points [K, D]."""
    axes = draw(st.lists(st.sampled_from(AXES), min_size=parameters, max_size=parameters))
    points = cross(axes, draw(st.booleans()))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    powers = rng.choice([0, 0, 0.5, 1, 2], (3, 1, parameters))
    shapes = ((points / points.max(axis=0)) ** powers).prod(axis=2)
    exact = rng.uniform(1, 100, (3, 1)) * (1 + rng.choice([0, 3], (3, 1)) * shapes)
    noise = draw(st.sampled_from([0.0, 0.02, 0.1, 0.3, 1.0]))
    scatter = rng.uniform(-0.5, 0.5, (*exact.shape, draw(st.sampled_from([1, 3]))))
    return points, exact[..., None] * (1 + noise * scatter)


def bands(points, values):
    """Predict far along all parameters: both ends of bands and the values between, [D, 3, n]."""
    models, far = fit(points, values, space=FEW), 16 * points.max(axis=0)
    found = [slice_along(models, axis, far).predict(at) for axis, at in enumerate(far)]
    return np.array([[each.low, each.value, each.high] for each in found])[..., 0]


@pytest.mark.parametrize("parameters", [2, 3, 4])
@settings(max_examples=4, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(data=st.data())
def test_neither_units_nor_orders_move_a_band_where_parameters_varied_one_at_a_time(
    parameters, data
):
    points, values = data.draw(measurements(parameters))
    unit = data.draw(st.sampled_from([1e3, 1e-6, 1 / 3]))
    order = data.draw(st.permutations(range(len(points))))
    rows = data.draw(st.permutations(range(len(values))))
    found = bands(points[order], values[rows][:, order] * unit) / unit
    assert found == pytest.approx(bands(points, values)[..., rows], rel=1e-5)


@pytest.mark.parametrize("parameters", [2, 3])
@pytest.mark.parametrize("noise", [0.02, 0.1])
def test_call_paths_that_occur_only_where_a_parameter_is_smallest_upset_no_model(parameters, noise):
    points = np.array(list(product(*AXES[:parameters])))
    rng = np.random.default_rng(8)
    powers = rng.choice([0, 0.5, 1, 2], (12, 1, parameters))
    exact = rng.uniform(1, 100, (12, 1)) * (1 + 3 * (points**powers).prod(axis=2))
    values = exact[..., None] * (1 + noise * rng.uniform(-0.5, 0.5, (*exact.shape, 3)))
    for row in range(0, 12, 2):
        values[row, points[:, row % parameters] > AXES[row % parameters][row % 3 > 1]] = np.nan
    expected = bands(points, values)
    assert np.isfinite(expected).all()
    assert bands(points, values / 3) * 3 == pytest.approx(expected, rel=1e-4)
    others = expected[..., 1::2]
    assert np.median(others[:, 2] / others[:, 0]) < 10
