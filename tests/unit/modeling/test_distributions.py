from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special

from callpath_modeler.modeling.distributions import (
    log_normal_share,
    normal_quantile,
    normal_share,
    polygammas,
    student_quantile,
    student_share,
)

pytestmark = pytest.mark.usefixtures("way")

DOF = np.concatenate([np.arange(1.0, 40), 10.0 ** np.linspace(-0.3, 4, 60), [198, 202, 999]])[
    :, None
]
PROBABILITY = np.array([1e-12, 1e-4, 0.01, 0.025, 0.3, 0.45, 0.6, 0.95, 0.975, 1 - 1e-9])


def test_the_normal_distribution_is_that_of_scipy() -> None:
    z = np.linspace(-37, 8, 1001)
    assert_allclose(normal_share(z), special.ndtr(z), rtol=1e-12)
    far = np.concatenate([z, [-1e6, -1e3, -60.0, 20.0]])
    assert_allclose(log_normal_share(far), special.log_ndtr(far), rtol=1e-11)
    probability = np.concatenate([10.0 ** np.linspace(-300, -1, 200), np.linspace(0.11, 0.99, 99)])
    assert_allclose(normal_quantile(probability), special.ndtri(probability), rtol=1e-12)


def test_the_distribution_of_student_is_that_of_scipy() -> None:
    size = 10.0 ** np.linspace(-2, 4, 60)
    t = np.concatenate([-size, [0.0], size])
    assert_allclose(student_share(DOF, t), special.stdtr(DOF, t), rtol=1e-9, atol=1e-290)
    assert_allclose(
        student_quantile(DOF, PROBABILITY), special.stdtrit(DOF, PROBABILITY), rtol=1e-9
    )


def test_with_very_many_degrees_of_freedom_that_becomes_the_normal_one() -> None:
    many = np.array([0.9e7, 1.1e7, 1e15, np.inf])[:, None]
    quantiles, shares = student_quantile(many, PROBABILITY), student_share(many, [-3.0, 1.0])
    assert_allclose(quantiles, np.tile(normal_quantile(PROBABILITY), (4, 1)), rtol=1e-5)
    assert_allclose(shares, np.tile(normal_share([-3.0, 1.0]), (4, 1)), rtol=1e-5)


def test_a_quantile_has_its_share_below() -> None:
    below = student_share(DOF, student_quantile(DOF, PROBABILITY))
    assert_allclose(below, np.tile(PROBABILITY, (len(DOF), 1)), rtol=1e-9)


def test_the_middle_is_zero_and_the_ends_are_infinite() -> None:
    # Of zero, scipy has the other end.
    assert np.abs(student_quantile(3.0, [0.0, 0.5, 1.0])).tolist() == [np.inf, 0.0, np.inf]
    assert student_share(3.0, [-np.inf, 0.0, np.inf]).tolist() == [0.0, 0.5, 1.0]


@pytest.mark.parametrize("dof", [0.0, -1.0, np.nan])
def test_without_degrees_of_freedom_there_is_no_answer(dof: float) -> None:
    assert np.isnan(student_share(dof, [-1.0, 2.0])).all()
    assert np.isnan(student_quantile(dof, [0.1, 0.5, 0.975])).all()


def test_polygamma_functions_are_those_of_scipy() -> None:
    x = np.concatenate([10.0 ** np.linspace(-6, 6, 500), np.arange(1, 60) / 2])
    for order, found in enumerate(polygammas(x)):
        assert_allclose(found, special.polygamma(order, x), rtol=1e-12, atol=1e-15)


def test_columns_broadcast_and_keep_their_shape() -> None:
    assert student_quantile(np.ones((2, 1)), [0.2, 0.5, 0.9]).shape == (2, 3)
    assert normal_share(0.3).shape == polygammas(0.3)[1].shape == ()
    assert normal_quantile(np.empty((0, 2))).shape == (0, 2)
    backwards = np.arange(1.0, 7.0).reshape(2, 3).T
    assert_allclose(polygammas(backwards)[0], special.digamma(backwards), rtol=1e-12)
