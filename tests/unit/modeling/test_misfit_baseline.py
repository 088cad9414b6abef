"""Typical residuals of models without repetitions, and rows that exceed them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling import FitStatus, Models, fit
from callpath_modeler.modeling.products import Break

POINTS = 24 * 2.0 ** np.arange(6)
FAR_OFF = np.array([3.1, 40.3, 11.7, 2.3, 30.9, 9.7])


def program(noise: FloatArray | float, rows: int = 40) -> FloatArray:
    """Return rows of four laws, run once, [rows, K, 1]."""
    random = np.random.default_rng(0)
    laws = [POINTS**0, np.log2(POINTS), (POINTS / 24) ** 0.5, 24 / POINTS + 0.2]
    level = np.exp(random.uniform(-2, 2, rows))
    y = np.array([level[k] * laws[k % 4] for k in range(rows)])
    return np.asarray((y * np.exp(noise * random.standard_normal(y.shape)))[..., None])


def statuses(y: FloatArray) -> npt.NDArray[np.int8]:
    return fit(POINTS, y).status


@pytest.mark.parametrize("noise", [0.05, 0.2])
def test_what_misses_by_far_more_than_others_do_is_outside(noise: float) -> None:
    y = program(noise)
    before = statuses(y)
    one = np.flatnonzero(before != FitStatus.OUTSIDE)[7]
    y[one, :, 0] = FAR_OFF
    found = statuses(y)
    assert found[one] == FitStatus.OUTSIDE
    assert (np.delete(found, one) == np.delete(before, one)).mean() > 0.9


def test_alone_nothing_tells_that_it_is_far() -> None:
    assert statuses(FAR_OFF[None, :, None]) != FitStatus.OUTSIDE


@pytest.mark.parametrize("noise", [0.1, 0.3, 0.5])
def test_noise_of_single_runs_is_not_outside(noise: float) -> None:
    assert (statuses(program(noise, 200)) == FitStatus.OUTSIDE).mean() < 0.05


def test_call_paths_that_differ_in_their_noise_are_not_outside() -> None:
    own = 0.1 * np.exp(0.8 * np.random.default_rng(1).standard_normal((200, 1)))
    assert (statuses(program(own, 200)) == FitStatus.OUTSIDE).mean() < 0.08


@pytest.mark.parametrize("size", [10.0, 1e3, 1e5])
def test_whole_numbers_that_all_scatter_are_not_exact(size: float) -> None:
    y = program(0.05)
    found = statuses(np.round(size * y / y.min()))
    assert (found == FitStatus.OUTSIDE).mean() < 0.1


def test_among_exact_counts_one_that_follows_no_law_is_outside() -> None:
    counts = np.array([[k + 2 * POINTS, 3 * k * np.log2(POINTS / 3)] for k in range(1, 11)])
    y = np.concatenate([counts.reshape(20, -1), [[511, 900, 1300, 3000, 4100, 9901]]])[..., None]
    found = statuses(y)
    assert found[20] == FitStatus.OUTSIDE
    assert (found[:20] != FitStatus.OUTSIDE).all()


def models_of_noise() -> Models:
    random = np.random.default_rng(3)
    y = np.sort(random.uniform(1, 4, (300, 6)), axis=1)
    return fit(POINTS, y[..., None])


def test_a_model_with_a_break_is_outside_whatever_laws_are_worth_together() -> None:
    models = models_of_noise()
    shapes = [*models.shapes, None]
    broken = np.array([any(isinstance(shapes[k], Break) for k in row) for row in models.terms])
    assert broken.any()
    assert (models.status[broken] == FitStatus.OUTSIDE).all()
