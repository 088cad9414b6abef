"""Closed forms, compared with numerical integration and plain least squares."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.mixture.regressions import (
    InterceptPenalty,
    OneTermFits,
    constant_evidence,
    positive_evidence,
)
from oracle.regressions import all_pairs, moments

POINTS = 2.0 ** np.arange(3, 9)
TABLE = np.stack([POINTS.min() / POINTS, np.log2(POINTS) / 8, POINTS / 256, (POINTS / 256) ** 2])
FIRST, SECOND = np.array([0, 0, 1, 2]), np.array([1, 2, 3, 3])
PRODUCTS = TABLE[FIRST] * TABLE[SECOND]
FREE = InterceptPenalty(np.ones(1), np.ones(1), np.zeros((1, 1), dtype=np.bool_))
"""No penalty for constants."""


def rows() -> tuple[FloatArray, FloatArray]:
    random = np.random.default_rng(51)
    laws = [0.3 + 0.1 * TABLE[0] + 0.5 * TABLE[2], TABLE[0] + TABLE[2], 0.2 + 0 * POINTS, TABLE[3]]
    values = np.stack(laws) * (1 + 0.05 * random.standard_normal((4, 6)))
    weights = random.uniform(0.5, 2, (4, 6)) / values**2
    weights[0, 2] = 0
    return values, weights


def test_moments_are_weighted_sums_about_weighted_means() -> None:
    values, weights = rows()
    sums = moments(values.T, weights.T, TABLE)
    for row in range(4):
        w, y = weights[row], values[row]
        mean = np.average(y, weights=w)
        assert sums.mean[row] == pytest.approx(mean)
        assert sums.total[row] == pytest.approx((w * (y - mean) ** 2).sum())
        for shape, x in enumerate(TABLE):
            about = x - np.average(x, weights=w)
            assert sums.square[shape, row] == pytest.approx((w * about**2).sum())
            assert sums.product[shape, row] == pytest.approx((w * about * (y - mean)).sum())


def test_pairs_of_shapes_are_least_squares_with_a_constant_only_where_it_is_positive() -> None:
    values, weights = rows()
    sums = moments(values.T, weights.T, TABLE)
    pairs = all_pairs(sums, weights.T, PRODUCTS, FIRST, SECOND)
    found = pairs.regressions(FREE)
    covariance = np.array(pairs.covariance(found.free))
    seen = set()
    for row in range(4):
        root = np.sqrt(weights[row])
        for pair in range(4):
            full = np.stack([np.ones(6), TABLE[FIRST[pair]], TABLE[SECOND[pair]]], axis=1)
            best = np.linalg.lstsq(full * root[:, None], values[row] * root, rcond=None)[0]
            free = best[0] > 0
            used = full if free else full[:, 1:]
            design = used * root[:, None]
            if not free:
                best = np.linalg.lstsq(design, values[row] * root, rcond=None)[0]
            seen.add(bool(free))
            assert found.free[pair, row] == free
            numbers = np.array([best[0] if free else 0.0, *best[-2:]])
            mine = np.array([found.constant, found.first, found.second])[:, pair, row]
            assert mine == pytest.approx(numbers, rel=1e-6, abs=1e-9)
            left = ((design @ best - values[row] * root) ** 2).sum()
            assert found.residual[pair, row] == pytest.approx(left, rel=1e-6, abs=1e-12)
            normal = design.T @ design
            assert found.determinant[pair, row] == pytest.approx(np.linalg.det(normal), rel=1e-6)
            inverse = np.zeros((3, 3))
            inverse[3 - len(best) :, 3 - len(best) :] = np.linalg.inv(normal)
            assert covariance[:, pair, row] == pytest.approx(
                inverse[np.triu_indices(3)], rel=1e-5, abs=1e-9
            )
    assert seen == {True, False}


def test_the_evidence_of_a_constant_is_likelihood_times_prior_over_all_constants() -> None:
    values, weights = rows()
    sums = moments(values.T, weights.T, TABLE)
    variance = 0.05**2
    for row in range(4):
        w, y = weights[row], values[row]

        def density(constant: float, w: FloatArray = w, y: FloatArray = y, row: int = row) -> float:
            worse = (w * (y - constant) ** 2).sum() - sums.total[row]
            return float(np.exp(-worse / (2 * variance)) / constant)

        reach = 12 * np.sqrt(variance / sums.weight[row])
        around = max(sums.mean[row] - reach, 1e-9), sums.mean[row] + reach
        area = integrate.quad(density, *around)[0]
        closed = constant_evidence(sums.weight, sums.mean)[row] + 0.5 * np.log(variance)
        assert closed == pytest.approx(np.log(area), abs=0.01)


def test_what_pairs_leave_is_the_same_with_and_without_their_coefficients() -> None:
    values, weights = rows()
    pairs = all_pairs(moments(values.T, weights.T, TABLE), weights.T, PRODUCTS, FIRST, SECOND)
    found = pairs.regressions(FREE)
    assert not found.free.all()
    assert found.free.any()
    assert pairs.residual(np.True_) == pytest.approx(found.residual, rel=1e-6, abs=1e-12)


def test_a_constant_that_has_its_price_is_there_only_where_the_evidence_is_for_it() -> None:
    random, variance, used = np.random.default_rng(52), 0.05**2, 6
    constants = np.linspace(0, 0.5, 60)[:, None]
    values = (constants + TABLE[0] + TABLE[2]) * (1 + 0.05 * random.standard_normal((60, used)))
    weights = 1 / values**2
    pairs = all_pairs(moments(values.T, weights.T, TABLE), weights.T, PRODUCTS, FIRST, SECOND)
    free = pairs.regressions(FREE)
    asked = np.array([True, True, True, False])[:, None]
    found = pairs.regressions(
        InterceptPenalty(np.full(60, variance), np.full(60, float(used)), asked)
    )
    assert (found.free == free.free)[3].all()
    seen = set()
    for row, pair in zip(*np.nonzero((free.free & free.positive & asked).T), strict=True):
        root = np.sqrt(weights[row])
        shapes = [np.ones(used), TABLE[FIRST[pair]], TABLE[SECOND[pair]]]
        design = np.stack(shapes, axis=1) * root[:, None]
        of_point = max(variance, free.residual[pair, row] / (used - 3))
        logs = []
        for some in (design, design[:, 1:]):
            _, left, *_ = np.linalg.lstsq(some, values[row] * root, rcond=None)
            normal, size = np.linalg.det(some.T @ some), some.shape[1]
            # All with the level of the first: a constant that hardly pays hardly changes it.
            level = free.constant[pair, row] + free.first[pair, row] + free.second[pair, row]
            volume = size / 2 * np.log(2 * np.pi * of_point) - np.log(normal) / 2
            logs.append(volume - size * np.log(level) - left[0] / (2 * of_point))
        assert found.free[pair, row] == (logs[0] > logs[1])
        assert (found.constant[pair, row] > 0) == found.free[pair, row]
        seen.add(bool(found.free[pair, row]))
    assert seen == {True, False}
    assert pairs.residual(found.free | ~asked) == pytest.approx(found.residual, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("constant", [0.02, 0.1, 0.5])
def test_what_is_not_shared_is_as_probable_in_any_order_of_magnitude(constant: float) -> None:
    x, variance = TABLE[0], 1e-6
    values = constant + (1 - constant) * x
    weights = 1 / values**2
    sums = moments(values[:, None], weights[:, None], x[None])
    slope = sums.product / sums.square
    found = OneTermFits(sums.weight, sums.mean, sums.at[0], sums.square[0], slope[0])
    closed, bounded = positive_evidence(found, np.array([True]), np.array([variance]))
    assert bounded == pytest.approx(1 - constant)

    def density(logarithm: float, slope: float) -> float:
        rest = np.exp(logarithm)
        level = rest + slope
        left = (weights * (values - rest - slope * x) ** 2).sum()
        # Of level and share, uniform in the logarithms of both, as of coefficients.
        prior = 1 / (6 * rest / level) / level**2
        return float(np.exp(-left / (2 * variance)) * prior * rest)

    around, spread = np.log(constant), np.sqrt(variance * found.covariance()[0][0]) / constant
    reach = 8 * np.sqrt(variance * found.covariance()[2][0])
    area = integrate.dblquad(
        density,
        *(1 - constant - reach, 1 - constant + reach),
        *(around - 8 * spread, around + 8 * spread),
        epsrel=1e-4,
    )[0]
    assert closed[0] + np.log(variance) == pytest.approx(np.log(area), abs=0.02)
