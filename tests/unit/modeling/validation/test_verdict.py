from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from callpath_modeler.modeling import (
    FitStatus,
    Growth,
    Models,
    SearchSpace,
    fit,
    learn,
    parse_growth,
)
from callpath_modeler.modeling.expected_growth import (
    DeviationLimits,
    ExpectedGrowth,
    deciding_run,
    deciding_run_of_value,
    growth_probabilities,
    judge,
)

P = np.array([8.0, 16, 32, 64, 128, 256])


def growth(text: str) -> Growth:
    return parse_growth(text).growth


def fitted(laws: list[np.ndarray], noise: float, seed: int = 0, method: str = "mixture") -> Models:
    rng = np.random.default_rng(seed)
    scatter = 1 + noise * rng.standard_normal((len(laws), len(P), 5))
    return fit(P, np.array(laws)[:, :, None] * scatter, method=method)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def clear() -> Models:
    """Constant, p, p^2, a step, zero, and no values."""
    step = np.where(P > 64, 100.0, 10.0)
    laws = [10 + 0 * P, 2 * P, 3 + 0.1 * P**2, step, 0 * P, np.nan * P]
    return fitted([np.asarray(law) for law in laws], 0.01)


def test_clear_growth_is_kept_or_broken(clear: Models) -> None:
    verdicts = judge(clear, DeviationLimits(None, growth("p")))
    assert verdicts.kept.tolist() == [True, True, False, False, True, False]
    assert verdicts.broken.tolist() == [False, False, True, False, False, False]
    total = verdicts.below + verdicts.within + verdicts.above
    np.testing.assert_allclose(total[:5], 1.0)
    assert np.isnan(total[5])


def test_an_expectation_has_two_sides(clear: Models) -> None:
    verdicts = judge(clear, ExpectedGrowth.of(growth("p"), growth("log^2 p")).limits)
    assert verdicts.kept.tolist() == [False, True, False, False, False, False]
    assert verdicts.broken.tolist() == [True, False, True, False, True, False]
    assert verdicts.below[0] > 0.95
    assert verdicts.above[2] > 0.95


def test_a_switch_of_the_algorithm_is_no_proof_of_good_growth(clear: Models) -> None:
    assert clear.status[3] == FitStatus.OUTSIDE
    for limits in (DeviationLimits(None, growth("p")), DeviationLimits(growth("p"), None)):
        verdicts = judge(clear, limits)
        assert verdicts.outside[3]
        assert not verdicts.kept[3]
        assert not verdicts.broken[3]
        assert np.isnan(deciding_run(clear, limits)[3])


def test_growth_beyond_a_bend_breaks_a_limit_all_the_same() -> None:
    bend = np.where(P > 64, (P / 64) ** 2, 1.0)
    models = fitted([bend] + [10 + 0 * P] * 20, 0.005)
    assert models.status[0] == FitStatus.OUTSIDE
    assert judge(models, DeviationLimits(None, growth("1"))).broken[0]


def test_doubtful_growth_is_unsure_and_the_run_that_is_named_tells() -> None:
    limits = DeviationLimits(None, growth("log p"))

    def measured(p: np.ndarray) -> np.ndarray:
        laws = np.concatenate([np.tile(5 + 0.3 * p**0.25, (40, 1)), np.tile(0.1 * p, (40, 1))])
        scatter = np.random.default_rng(1).standard_normal((*laws.shape, 5))
        return np.asarray(laws[:, :, None] * (1 + 0.02 * scatter))

    before = measured(P)
    models = fit(P, before)
    verdicts = judge(models, limits)
    unsure = np.flatnonzero(~(verdicts.kept | verdicts.broken | verdicts.outside))
    assert 5 < len(unsure) <= 40
    run = deciding_run(models.take(unsure), limits)
    assert (run > P[-1]).all()
    scale = np.median(run)
    more = np.concatenate([before, measured(np.array([scale]))], axis=1)
    after = judge(fit(np.append(P, scale), more), limits)
    assert (after.kept | after.broken)[unsure].mean() > 0.9


def test_where_nothing_is_contested_no_run_is_named(clear: Models) -> None:
    run = deciding_run(clear, DeviationLimits(None, growth("p")))
    assert np.isinf(run[[0, 1, 2]]).all()
    assert np.isnan(run[5])


def test_more_confidence_makes_more_rows_unsure() -> None:
    models = fitted([np.asarray(5 + 0.12 * P**0.5)] * 40, 0.03)
    limits = DeviationLimits(None, growth("log p"))
    kinds = [judge(models, limits, sure) for sure in (0.6, 0.95, 0.999)]
    decided = [int((kind.kept | kind.broken).sum()) for kind in kinds]
    assert decided == sorted(decided, reverse=True)
    assert decided[0] > decided[-1]


def test_akaike_weights_serve_the_classic_method() -> None:
    models = fitted([10 + 0 * P, 2 * P, 3 + 0.1 * P**2], 0.01, method="classic")
    verdicts = judge(models, DeviationLimits(None, growth("p")))
    assert not verdicts.broken[0]
    assert not verdicts.broken[1]
    assert verdicts.broken[2]
    assert np.isnan(deciding_run(models, verdicts.limits)).all()


def test_probabilities_of_growths_sum_to_one_where_there_is_a_model(clear: Models) -> None:
    table = growth_probabilities(clear)
    np.testing.assert_allclose(table.sum(axis=1), [1, 1, 1, 1, 1, 0])
    best = [clear.shapes.growths[k] for k in table[:3].argmax(axis=1)]
    assert best == [growth("1"), growth("p"), growth("p^2")]


def test_exponential_laws_of_dimensions_are_kept_with_their_class() -> None:
    k = np.arange(3.0, 17.0)
    laws = [growth(text) for text in ("k^4 2^k", "k^4 2^k", "k 2^k", "k^2 2^k")]
    expected = [growth(text) for text in ("k^3 2^k", "k^4 2^k", "k 2^k", "k^3 2^k")]
    scatter = np.random.default_rng(2).standard_normal((4, len(k), 5))
    values = np.array([1 + 1e-6 * law(k) for law in laws])[..., None] * (1 + 0.01 * scatter)
    powers = tuple(Fraction(power) for power in range(5))
    space = SearchSpace(powers, (0,), 2, exponential=(Fraction(1, 2), Fraction(1)))
    models = fit(k, values, space=space)
    assert [models.growth(row) for row in range(4)] == laws
    for row, expectation in enumerate(map(ExpectedGrowth.of, expected)):
        verdicts = judge(models.take([row]), expectation.limits)
        assert verdicts.kept[0]
    assert judge(models, DeviationLimits(None, growth("k^9 2^(k/2)"))).broken.all()


def test_a_value_that_hypotheses_disagree_on_has_a_run_that_decides_up_to_the_target():
    points = np.array([2.0, 4.0, 8.0, 16.0, 32.0])
    random = np.random.default_rng(2)
    noise = 1 + 0.05 * random.standard_normal((1, 5, 3))
    models = fit(points, (10 + np.sqrt(points))[None, :, None] * noise)
    mixture = models.mixture([4096.0])
    value, weight = mixture.centre[0, :, 0], mixture.weight[0]
    order = np.argsort(value)
    below = weight[order].cumsum()[:-1]
    # The amount divides the probability most evenly, between values that a run can distinguish.
    apart = value[order][1:] > 1.5 * value[order][:-1]
    best = np.where(apart, np.minimum(below, 1 - below), 0).argmax()
    amount = float(np.sqrt(value[order][best] * value[order][best + 1]))
    found = deciding_run_of_value(models, 4096.0, amount, 0.9)[0]
    assert 32 < found <= 4096
    assert np.isinf(deciding_run_of_value(models, 4096.0, 2 * value.max(), 0.9)[0])
    assert np.isnan(deciding_run_of_value(models, 32.0, amount, 0.9)[0])


POINTS = 2.0 ** np.arange(6, 13)
ROWS = 40
FALLING = ExpectedGrowth.of(Growth(Fraction(-1), 0)).limits


def falling(law, noise):
    """Return the shares of rows that keep and that break the expectation O(1/p)."""
    random = np.random.default_rng(4)
    scatter = random.standard_normal((ROWS, len(POINTS), 5))
    values = law(POINTS)[None, :, None] * np.exp(noise * scatter)
    found = judge(fit(POINTS, values, priors=learn(POINTS, values)), FALLING)
    return found.kept.mean(), found.broken.mean()


@pytest.mark.parametrize(("noise", "least"), [(0.001, 0.95), (0.01, 0.8)])
def test_a_law_that_falls_as_expected_is_kept(noise, least):
    kept, broken = falling(lambda p: 1 / p, noise)
    assert kept >= least
    assert broken == 0


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_a_law_that_levels_off_is_never_kept(share):
    for noise in (0.001, 0.01):
        kept, broken = falling(lambda p: 1 / p + share / POINTS[-1], noise)
        assert kept == 0
        assert broken >= 0.9


def test_another_fall_breaks_the_expectation():
    for law in (lambda p: p ** (-1 / 3), lambda p: p**-2.0, np.ones_like):
        assert falling(law, 0.01) == (0, 1)
