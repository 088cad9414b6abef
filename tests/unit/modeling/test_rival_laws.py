"""Laws that fit as well as a model with two growing terms: bands hold what they predict."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from callpath_modeler.analysis.uncertain import marks_of_trust
from callpath_modeler.modeling import fit
from callpath_modeler.modeling.terms import DEFAULT_SPACE

P = np.array([600, 1176, 4056, 7776, 13824, 14406, 15000.0])
FAR = 130_000.0
CHEAP = 1e9
"""Cost of others beside which a call path has no share of half a percent."""


def law(p):
    return 0.026 + 2.53e-6 * p**1.5 + 1.24e-12 * p**3


def measured(noise=0.05, seed=91, others=10.0):
    """Return values of a call path that grows, and of ten constant ones."""
    random = np.random.default_rng(seed)
    rows = np.vstack([law(P), *np.tile(others, (10, len(P)))])
    return rows[..., None] * (1 + random.normal(0, noise, (*rows.shape, 5)))


def band_of(models, row=0):
    band = models.predict([FAR])
    return band.value[row, 0], band.low[row, 0], band.high[row, 0]


def fitted(seed=91, others=10.0):
    return fit(P, measured(seed=seed, others=others))


@cache
def undecided():
    """Return the first seed with a narrow band below the law, as a cheap call path."""
    return next(s for s in range(99) if band_of(fitted(s, CHEAP))[2] < law(FAR) / 3)


def test_the_band_holds_a_steeper_law_that_fits_as_well() -> None:
    models = fitted(undecided())
    value, _, high = band_of(models)
    assert high > 2.5 * value
    assert marks_of_trust(*map(np.atleast_1d, band_of(models)))[0] <= 1


def test_the_law_is_named_with_its_probability_and_fits_the_values() -> None:
    values = measured(seed=undecided())
    models = fit(P, values)
    steepest = max(models.alternatives(0), key=lambda each: each.growth.order)
    assert steepest.growth.text() == "O(p^3)"
    assert steepest.weight == pytest.approx(0.05, rel=1e-3)
    constant, *numbers = steepest.coefficients
    exponents = [float(shape.exponent) for shape in steepest.terms]
    fitted = constant + sum(c * P**e for c, e in zip(numbers, exponents, strict=True))
    assert fitted == pytest.approx(values[0].mean(axis=1), rel=0.1)


def test_the_probabilities_of_a_row_still_add_up_to_one() -> None:
    models = fitted(undecided())
    assert models.weight + models.alternative_weight.sum(axis=1) == pytest.approx(1, abs=1e-6)


def test_the_model_itself_stays() -> None:
    costly, cheap = fitted(undecided()), fitted(undecided(), CHEAP)
    assert costly.formula(0) == cheap.formula(0)
    assert band_of(costly)[1:] != pytest.approx(band_of(cheap)[1:])


def test_a_call_path_that_becomes_costly_is_compared_as_well() -> None:
    # It has 0.1 % of the cost at 15,000 processes, and 94 % at 16 times as many.
    models = fitted(undecided(), 900.0)
    assert band_of(models)[2] > 2.5 * band_of(models)[0]


@pytest.mark.parametrize(
    "steady",
    [
        lambda p: 20 + 2e-7 * p**2,
        lambda p: 4 * p**0.5,
        lambda p: 5 + np.log2(p),
        lambda p: 7 + 0 * p,
    ],
    ids=["square", "root", "logarithm", "constant"],
)
def test_models_with_fewer_growing_terms_stay_as_they_are(steady) -> None:
    points = 2.0 ** np.arange(6, 14)
    random = np.random.default_rng(1)
    values = steady(points)[None, :, None] * (1 + random.normal(0, 0.02, (20, len(points), 5)))
    models = fit(points, values)
    band = models.predict([4 * points[-1]])
    truth = steady(4 * points[-1])
    assert (band.high[:, 0] < 2 * truth).all()
    assert (marks_of_trust(band.value[:, 0], band.low[:, 0], band.high[:, 0]) >= 2).all()


def test_exact_values_keep_their_band() -> None:
    counts = (3 * P**0.5 + 2 * P**2)[None, :, None]
    value, low, high = band_of(fit(P, counts))
    assert low == pytest.approx(value)
    assert high == pytest.approx(value)


def test_a_space_without_powers_has_no_such_laws() -> None:
    space = replace(DEFAULT_SPACE, exponents=(Fraction(0),), secondary=(), alone=())
    models = fit(P, measured(), space=space)
    assert np.isfinite(band_of(models)).all()


def test_noise_that_decides_keeps_all_marks() -> None:
    models = fit(P, measured(noise=0.002))
    band = models.predict([FAR])
    assert band.value[0, 0] == pytest.approx(law(FAR), rel=0.05)
    assert marks_of_trust(band.value[:, 0], band.low[:, 0], band.high[:, 0])[0] >= 3


def three_scales(values, noise=0.003, seed=3):
    """Return models of a call path on three scales, beside ten constant call paths."""
    random = np.random.default_rng(seed)
    rows = np.vstack([values, *np.tile(100.0, (10, len(values)))])
    points = 32.0 * 2 ** np.arange(len(values))
    return fit(points, rows[..., None] * (1 + random.normal(0, noise, (*rows.shape, 2))))


def test_growth_on_three_scales_may_end_at_the_largest() -> None:
    # A real program, which took 1,881 s on 256 processes.
    models = three_scales(np.array([722.0, 1025.0, 1633.0]))
    band = models.predict([256.0])
    assert band.low[0, 0] <= 1881
    assert band.value[0, 0] > 2400
    flat = [each for each in models.alternatives(0) if each.growth.text() == "O(1)"]
    assert max(each.weight for each in flat) == pytest.approx(0.05, rel=1e-3)
    assert models.weight[0] + models.alternative_weight[0].sum() == pytest.approx(1, abs=1e-6)


def test_a_law_that_three_scales_decide_goes_on() -> None:
    band = three_scales(np.array([100.0, 200.0, 400.0])).predict([256.0])
    assert band.low[0, 0] > 700
    assert band.high[0, 0] < 900


def test_four_scales_are_enough_for_growth_to_go_on() -> None:
    band = three_scales(722.0 * np.array([0.8, 1.0, 1.42, 2.26])).predict([512.0])
    assert band.low[0, 0] > 1.05 * 722 * 2.26


def test_a_falling_call_path_keeps_its_band() -> None:
    models = three_scales(np.array([100.0, 52.0, 29.0]))
    assert models.predict([256.0]).high[0, 0] < 29.0
