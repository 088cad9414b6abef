"""Exchanges with all other processes, and surfaces of volumes, in several parameters."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.modeling import FitStatus, fit, slice_along
from surfaces import EXCHANGES, N, P, grid, measured


@pytest.mark.parametrize("first", [1.0, 2.0, 8.0])
def test_exchanges_with_all_but_oneself_and_surfaces_of_volumes_are_found(first):
    points = grid(first * 2.0 ** np.arange(5), N)
    models = fit(points, measured(points, EXCHANGES.values(), noise=0.0, repetitions=1))
    found = [set(models.formula(row, ("p", "n")).split(" + ")) for row in range(len(models))]
    assert found == [set(formula.split(" + ")) for formula in EXCHANGES]
    assert (models.status == FitStatus.OK).all()
    at = np.array([16 * points[-1, 0], 200.0])
    truth = np.array([law(*at) for law in EXCHANGES.values()])
    for axis in range(2):
        band = slice_along(models, axis, at).predict([at[axis]])
        assert band.value[:, 0] == pytest.approx(truth)
        assert (band.low[:, 0] > 0.99 * truth).all()
        assert (band.high[:, 0] < 1.01 * truth).all()


@pytest.mark.parametrize(
    ("formula", "law"),
    [
        ("2 * (p - 1) * n * m", lambda p, n, m: 2 * (p - 1) * n * m),
        ("50 * n + 2 * (p - 1) * m", lambda p, n, m: 50 * n + 2 * (p - 1) * m),
        (
            "5 * p^(-2/3) * n^2 * m + 1 * p^-1 * n^3 * m",
            lambda p, n, m: m * (n**3 / p + 5 * n**2 / p ** (2 / 3)),
        ),
    ],
)
def test_of_three_parameters_exchanges_and_surfaces_have_further_factors(formula, law):
    points = grid(P[:4], N[:4], (2.0, 4.0, 8.0))
    models = fit(points, measured(points, [law], noise=0.0, repetitions=1))
    found = models.formula(0, ("p", "n", "m"))
    assert set(found.split(" + ")) == set(formula.split(" + "))


def transposed(share):
    """Return the time of a transposition: for the data that is shared, and for each message."""
    return lambda p, n: n**3 * (p - 1) / p**2 + share * (p - 1)


@pytest.mark.parametrize("share", [20.0, 200.0])
@pytest.mark.parametrize("corner", [True, False])
def test_what_messages_of_a_transposition_take_does_not_depend_on_a_size(corner, share):
    sizes, scales = np.array([32.0, 64.0, 96.0, 128.0, 192.0]), 8 * 2.0 ** np.arange(5)
    points = [(p, sizes[0]) for p in scales] + [(scales[0], n) for n in sizes[1:]]
    points = np.array([*points, (scales[-1], sizes[-1])]) if corner else grid(scales, sizes)
    models = fit(points, measured(points, [transposed(share)] * 10, noise=0.02))
    target = np.array([16 * scales[-1], sizes[-1]])
    truth = transposed(share)(*target)
    band = slice_along(models, 0, target).predict(target[:1])
    assert np.abs(np.log(np.median(band.value) / truth)) < np.log(1.2)
    assert ((band.low <= truth) & (truth <= band.high)).mean() >= 0.8
