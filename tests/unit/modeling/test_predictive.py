"""Bands contain measurements beyond the points about as often as stated."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling import FitStatus, Models, Term, fit
from cells import cells

POINTS = 2.0 ** np.arange(3, 9)
TARGETS = np.array([512.0, 2048.0])
TERMS = [
    Term(Fraction(power), log)
    for power, log in [
        ("0", 1),
        ("1/3", 0),
        ("1/2", 0),
        ("2/3", 0),
        ("1", 0),
        ("1", 1),
        ("3/2", 0),
        ("2", 0),
        ("-1", 0),
    ]
]


def one_term_laws(rows: int) -> tuple[FloatArray, FloatArray]:
    random = np.random.default_rng(21)
    values, truth = [], []
    for row in range(rows):
        term = TERMS[row % len(TERMS)]
        share, unit = random.uniform(0.2, 0.95), 10 ** random.uniform(-6, 6)
        top = term(POINTS).max()
        values.append(unit * (1 - share + share / top * term(POINTS)))
        truth.append(unit * (1 - share + share / top * term(TARGETS)))
    return np.array(values), np.array(truth)


@pytest.mark.parametrize("repetitions", [1, 5])
@pytest.mark.parametrize("noise", [0.01, 0.05])
def test_bands_of_95_percent_hold_one_term_laws(noise: float, repetitions: int) -> None:
    law, truth = one_term_laws(108)
    random = np.random.default_rng(22)
    y = law[..., None] * (1 + noise * random.standard_normal((108, 6, repetitions)))
    band = fit(POINTS, y).predict(TARGETS)
    held = (band.low <= truth) & (truth <= band.high)
    assert (held.mean(axis=0) >= 0.9).all()
    # The bands are narrow: half of them distinguish a doubling from no growth at twice the scale.
    assert np.median(band.high[:, 0] / np.maximum(band.low[:, 0], 1e-300)) < 2.2


RESTS = {
    "a constant": (lambda p: 1 + 0 * p, 0.88),
    "a logarithm": (np.log2, 0.8),
    "a root": (np.sqrt, 0.8),
}


def test_bands_of_shared_work_hold_three_terms_that_two_others_resemble() -> None:
    points = 24 * 2.0 ** np.arange(6)
    random = np.random.default_rng(25)
    share = random.dirichlet(np.ones(3), 600)
    share = share[share.min(axis=1) > 0.1][:, :, None]

    def law(p: FloatArray) -> FloatArray:
        return np.asarray(share[:, 0] * points[-1] / p + share[:, 1] + share[:, 2] * p / points[-1])

    y = law(points)[..., None] * (1 + 0.02 * random.standard_normal((len(share), 6, 3)))
    far = 16 * points[-1:]
    held = []
    for program in np.array_split(np.arange(len(y)), len(y) // 12):
        band, truth = fit(points, y[program]).predict(far), law(far)[program]
        held += ((band.low <= truth) & (truth <= band.high)).ravel().tolist()
    assert np.mean(held) >= 0.85


@pytest.mark.parametrize("name", list(RESTS))
def test_bands_of_shared_work_hold_what_little_is_not_shared(name: str) -> None:
    rest, least = RESTS[name]
    random = np.random.default_rng(24)
    share = 10 ** random.uniform(-3, 0, (150, 1))

    def law(p: FloatArray) -> FloatArray:
        return (1 - share) * POINTS[-1] / p + share * rest(p) / rest(POINTS[-1:])

    y = law(POINTS)[..., None] * (1 + 0.02 * random.standard_normal((150, 6, 5)))
    models = fit(POINTS, y)
    far = np.array([4.0, 16]) * POINTS[-1]
    band, truth = models.predict(far), law(far)
    held = (band.low <= truth) & (truth <= band.high)
    assert (held.mean(axis=0) >= least).all()


BROKEN = {
    "step": lambda p: 5 + 5 * (p > 50),
    "bend": lambda p: 5 * np.maximum(1, p / 32) ** 2,
    "ceiling": lambda p: 10 * (1 - np.exp(-p / 40)),
    "nodes": lambda p: 3 + np.ceil(p / 24),
    "zigzag": lambda p: 5 * (1 + 0.4 * (-1) ** np.log2(p)),
    "dip": lambda p: 5 * (1 - 0.4 * (p == 64)),
}


@pytest.fixture(scope="module")
def among_others() -> tuple[Models, Models]:
    random = np.random.default_rng(23)
    laws = [law(POINTS) for law in BROKEN.values() for _ in range(12)]
    laws += [law(POINTS) for law in (np.sqrt, np.log2) for _ in range(12)]
    y = np.array(laws)[..., None] * (1 + 0.02 * random.standard_normal((96, 6, 5)))
    models = fit(POINTS, y)
    return models, replace(models, confidence=0.5)


@cells("name", list(BROKEN))
def test_laws_outside_the_class_are_said_to_be_and_held_by_their_bands(
    name: str, among_others: tuple[Models, Models]
) -> None:
    models, _ = among_others
    first = 12 * list(BROKEN).index(name)
    rows = slice(first, first + 12)
    assert (models.status[rows] == FitStatus.OUTSIDE).mean() >= 0.8
    truth = BROKEN[name](TARGETS[:1])
    band = models.predict(TARGETS[:1])
    held = (band.low[rows] <= truth) & (truth <= band.high[rows])
    assert held.mean() >= 0.8


def test_plain_laws_are_not_outside_because_their_neighbours_are(
    among_others: tuple[Models, Models],
) -> None:
    assert (among_others[0].status[72:] == FitStatus.OUTSIDE).mean() <= 0.05


def test_surer_bands_are_wider_and_far_ones_wider_than_near_ones(
    among_others: tuple[Models, Models],
) -> None:
    sure, half = (models.predict([256.0, 1024, 8192]) for models in among_others)
    assert (sure.low <= half.low).all()
    assert (half.high <= sure.high).all()
    relative = (sure.high - sure.low) / sure.value
    assert (np.diff(np.median(relative, axis=0)) > 0).all()


def test_hypotheses_of_a_row_have_probabilities_that_sum_to_one(
    among_others: tuple[Models, Models],
) -> None:
    mixture = among_others[0].mixture(TARGETS)
    assert mixture.weight.sum(axis=1) == pytest.approx(1)
    assert (mixture.centre >= 0).all()
    assert np.isfinite(mixture.below).all()
    assert np.isfinite(mixture.above).all()
    # The first hypothesis is the model itself.
    assert mixture.centre[:, 0] == pytest.approx(among_others[0].values(TARGETS), rel=1e-5)


def test_bands_narrow_with_repetitions_and_with_points() -> None:
    random = np.random.default_rng(24)
    points = 2.0 ** np.arange(1, 11)
    y = (4 + points**0.5)[:, None] * (1 + 0.05 * random.standard_normal((40, 10, 20)))

    def width(of: slice, repetitions: int) -> float:
        band = fit(points[of], y[:, of, :repetitions]).predict([4096.0])
        return float(np.median((band.high - band.low) / band.value))

    assert width(slice(4, None), 20) < 0.7 * width(slice(4, None), 3)
    assert width(slice(0, None), 3) < 0.8 * width(slice(4, None), 3)


def test_nothing_is_known_at_infinity_but_what_no_model_can_leave() -> None:
    y = np.stack([5 + 0 * POINTS, 2 * POINTS, 8 / POINTS])[..., None]
    band = fit(POINTS, y).predict([np.inf, 1024.0])
    assert band.value[:, 0].tolist() == [5, np.inf, 0]
    assert (band.low[:, 0] == 0).all()
    assert (band.high[:, 0] == np.inf).all()
    assert band.value[:, 1] == pytest.approx([5, 2048, 8 / 1024])


def test_bands_are_those_of_all_hypotheses_but_for_what_hardly_moves_them() -> None:
    noise = np.random.default_rng(22).normal(0, 0.03, (90, len(POINTS), 5))
    models = fit(POINTS, one_term_laws(90)[0][:, :, None] * (1 + noise))
    low, high = models.mixture(TARGETS).band(models.confidence)
    found = models.predict(TARGETS)
    whole = np.minimum(low, found.value), np.maximum(high, found.value)
    width = np.log(whole[1] / whole[0]) + 1e-9
    for mine, end in zip((found.low, found.high), whole, strict=True):
        assert (np.abs(np.log(mine / end)) <= 0.03 * width).all()
    # Rows have different numbers of relevant hypotheses, and do not mix.
    for row in (0, 41, 89):
        alone = models.take([row]).predict(TARGETS)
        assert alone.high[0] == pytest.approx(found.high[row])
        assert alone.low[0] == pytest.approx(found.low[row])
