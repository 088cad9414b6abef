"""Priors from an application: no growth from noise, and support among similar rows."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling import FitStatus, Models, fit
from callpath_modeler.modeling.mixture.candidates import candidates
from callpath_modeler.modeling.mixture.one_parameter import Hypotheses
from callpath_modeler.modeling.mixture.posterior import maximize_evidence
from cells import cells
from many_rows import KINDS, many_rows, screened

POINTS = 2.0 ** np.arange(3, 9)


def growing(models: Models) -> FloatArray:
    """Return True for rows whose models grow without bound."""
    return np.array([str(models.growth(row)) != "O(1)" for row in range(len(models))])


@cells("repetitions", [1, 5])
@cells("noise", [0.01, 0.1, 0.3, 0.5, 1.0])
def test_noise_about_a_constant_is_no_growth(noise: float, repetitions: int) -> None:
    random = np.random.default_rng(int(1000 * noise) + repetitions)
    y = 5 * random.lognormal(0, noise, (70, 6, repetitions))
    models = fit(POINTS, y)
    assert growing(models).mean() <= 0.03
    assert (models.values([4096.0]) < 50 * np.exp(noise)).mean() >= 0.97


@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_evenly_spread_noise_about_a_constant_is_no_growth(noise: float) -> None:
    applications = [
        np.random.default_rng(seed).uniform(5 * (1 - noise) + 0.01, 5 * (1 + noise), (70, 6, 1))
        for seed in range(10)
    ]
    assert np.mean([growing(fit(POINTS, y)).mean() for y in applications]) <= 0.03


def test_a_call_path_does_not_convince_itself_of_what_is_hardly_ever_so() -> None:
    points, random = 6 * 2.0 ** np.arange(4), np.random.default_rng(1)
    # Work and what is not shared; the last run took half as long again.
    law = np.array([8.1, 4.1, 2.1, 1.6])
    models = fit(points, law[:, None] * (1 + 0.02 * random.standard_normal((1, 4, 3))))
    assert models.values(16 * points[-1:])[0, 0] < 10


def test_rows_of_much_noise_and_no_growth_are_noisy() -> None:
    random = np.random.default_rng(6)
    y = 5 * random.lognormal(0, [[[0.02]], [[0.6]]] * np.ones((2, 1, 1)), (20, 2, 6, 5)[1:])
    models = fit(POINTS, y)
    assert [FitStatus(code) for code in models.status] == [FitStatus.CONSTANT, FitStatus.NOISY]
    assert models.noise[1] > 0.25 > models.noise[0]


def test_growth_beyond_all_noise_is_found_among_noisy_constants() -> None:
    random = np.random.default_rng(7)
    law = np.concatenate([np.full((60, 6), 5.0), np.tile(POINTS, (3, 1))])
    models = fit(POINTS, law[..., None] * random.lognormal(0, 0.1, (63, 6, 3)))
    assert growing(models).tolist() == [False] * 60 + [True] * 3


def test_a_weak_growth_that_many_rows_share_is_found_more_often_than_alone() -> None:
    random = np.random.default_rng(8)
    law = 5 + 0.006 * POINTS
    y = law[:, None] * (1 + 0.05 * random.standard_normal((60, 6, 2)))
    together = growing(fit(POINTS, y)).mean()
    alone = np.mean([growing(fit(POINTS, y[row : row + 1]))[0] for row in range(20)])
    assert together >= alone


def test_more_rows_than_habits_are_learnt_from_are_all_modelled_alike() -> None:
    random = np.random.default_rng(9)
    points = POINTS[:5]
    laws = np.stack([5 + 0 * points, 3 + 2 * points, 100 / points])
    y = laws[np.arange(1500) % 3][..., None] * (1 + 0.01 * random.standard_normal((1500, 5, 2)))
    models = fit(points, y)
    assert (models.status < FitStatus.NOISY).all()
    for law, growth in enumerate(("O(1)", "O(p)", "O(p^-1)")):
        rows = np.arange(law, 1500, 3)
        said = [str(models.growth(row)) for row in rows[::10]]
        # A constant plus a falling term becomes the constant at large scales.
        assert np.mean([text in (growth, "O(1)") for text in said]) > 0.85
    assert models.values([128.0])[:, 0] == pytest.approx(laws[np.arange(1500) % 3, -1], rel=0.05)


def test_what_no_row_has_chosen_keeps_its_share_of_its_kind() -> None:
    points, y = many_rows(KINDS["usual"], 60)
    data, chosen, known, ways = screened(points, y)
    found = candidates(data, chosen, known, ways)
    after, deviations = maximize_evidence(found, known, known.log_prior, ways.log_prior)
    assert np.exp(after).sum() == pytest.approx(1)
    assert np.exp(deviations).sum() == pytest.approx(1)
    alone = np.flatnonzero((_shapes(known)[:, 1] == -1) & ~known.outside)
    never = np.setdiff1d(alone[np.isfinite(known.log_prior[alone])], found.chosen)
    gained = after[never] - known.log_prior[never]
    kinds = known.kinds[never]
    assert len(np.unique(kinds)) > 1
    for kind in np.unique(kinds):
        assert np.ptp(gained[kinds == kind]) == pytest.approx(0, abs=1e-9)


def _shapes(known: Hypotheses) -> IntArray:
    """Return the shapes of all hypotheses, [H, 2]; -1 = none."""
    return known.codes(np.arange(len(known.kinds)))
