"""Exponentials are suggested if they fit far better, and hardly ever otherwise."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from callpath_modeler.modeling import Models, better_exponentials, default_space, fit
from cells import cells

K = np.arange(3.0, 17.0)


def fitted(
    laws: np.ndarray, points: np.ndarray, noise: float, **options: object
) -> tuple[Models, np.ndarray]:
    random = np.random.default_rng(4)
    scatter = 1 + noise * random.standard_normal((*laws.shape, 3))
    values = np.maximum(laws[..., None] * scatter, 1e-12)
    return fit(points, values, **options), values.mean(axis=2)  # type: ignore[arg-type]


def test_an_exponential_that_fits_far_better_is_named() -> None:
    laws = np.array([K**4 * 2**K, 5 + K * 2 ** (K / 2), 3 + 0.2 * K**2])
    found = better_exponentials(*fitted(laws, K, 0.01))
    assert found is not None
    assert 0 in found.rows
    assert 2 not in found.rows
    assert found.terms[0].text("k") == "k^4 * 2^k"
    assert found.error[0] < 0.03 < found.error_of_model[0]


def test_models_with_exponentials_need_no_suggestion() -> None:
    space = replace(default_space("mixture"), exponential=(Fraction(1),))
    models, centres = fitted(np.array([K**4 * 2**K]), K, 0.01, space=space)
    assert better_exponentials(models, centres) is None


def test_without_enough_points_or_values_nothing_is_suggested() -> None:
    models, centres = fitted(np.array([2 ** K[:4]]), K[:4], 0.01)
    assert better_exponentials(models, centres) is None
    models, centres = fitted(np.zeros((1, len(K))), K, 0.01)
    assert better_exponentials(models, centres) is None


@cells("points", [2.0 ** np.arange(3, 9), np.arange(1.0, 9), np.array([10.0, 20, 30, 40, 50])])
@cells("noise", [0.0, 0.05, 0.2])
def test_power_laws_are_hardly_ever_taken_for_exponentials(
    points: np.ndarray, noise: float
) -> None:
    random, count = np.random.default_rng(9), 400
    power = random.choice([0, 1 / 3, 0.5, 1, 1.5, 2, 3], (count, 1))
    logs = random.choice([0, 0, 1], (count, 1))
    shape = points**power * np.log2(points) ** logs
    share = random.uniform(0.05, 1, (count, 1))
    models, centres = fitted(1 - share + share * shape / shape[:, -1:], points, noise)
    found = better_exponentials(models, centres)
    false = 0 if found is None else len(found.rows)
    assert false <= 0.015 * count
