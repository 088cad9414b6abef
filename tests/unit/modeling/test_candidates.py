"""Recovery of the exact class of a law, not of another one that fits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling import DEFAULT_SPACE, FitStatus, SearchSpace, fit
from cells import cells

Law = Callable[[FloatArray], FloatArray]
POINTS = 2.0 ** np.arange(2, 11)


def modelled(law: Law, noise: float = 0.0, points: FloatArray = POINTS) -> tuple[str, str]:
    random = np.random.default_rng(31)
    y = law(points)[None, :, None] * (1 + noise * random.standard_normal((1, len(points), 5)))
    models = fit(points, y)
    return str(models.growth(0)), models.formula(0)


@cells("term", DEFAULT_SPACE.terms)
def test_every_term_of_the_space_is_recognised_without_noise(term: Law) -> None:
    top = float(np.abs(term(POINTS)).max())
    y = np.stack([term(POINTS), 1 + 9 * term(POINTS) / top])[..., None].repeat(2, axis=2)
    models = fit(POINTS, y)
    assert models.formula(0) == f"1 * {term.text()}"  # type: ignore[attr-defined]
    assert models.shapes[models.terms[1, 0]] == term
    assert models.coefficients[1, 0] == pytest.approx(1, rel=1e-3)
    assert (models.status == FitStatus.OK).all()


@pytest.mark.parametrize(
    ("law", "growth"),
    [
        (lambda p: 100 / p + 0.05 * p, "O(p)"),
        (lambda p: 100 / p + 0.4 * np.sqrt(p), "O(p^(1/2))"),
        (lambda p: 100 / p + 2 * np.log2(p), "O(log p)"),
        (lambda p: 1e4 / p + 0.001 * p**2, "O(p^2)"),
    ],
)
def test_u_shapes_have_a_falling_and_a_growing_term(law: Law, growth: str) -> None:
    assert modelled(law)[0] == growth
    said, formula = modelled(law, noise=0.005)
    assert said == growth
    assert "p^-1" in formula or "p^(-" in formula


@pytest.mark.parametrize(
    ("law", "growth", "formula"),
    [
        (lambda p: 640 / p, "O(p^-1)", "640 * p^-1"),
        (lambda p: 640 * p ** (-2 / 3), "O(p^(-2/3))", "640 * p^(-2/3)"),
        (lambda p: 640 / np.sqrt(p), "O(p^(-1/2))", "640 * p^(-1/2)"),
        (lambda p: 640 / p + 4, "O(1)", "4 + 640 * p^-1"),
    ],
)
def test_strong_scaling_is_a_falling_law(law: Law, growth: str, formula: str) -> None:
    assert modelled(law) == (growth, formula)
    assert modelled(law, noise=0.01)[0] == growth


@cells(
    ("law", "growth"),
    [
        (lambda p: 4 + 2 * p, "O(p)"),
        (lambda p: 4 + 2 * np.sqrt(p), "O(p^(1/2))"),
        (lambda p: 4 + 2 * p**2, "O(p^2)"),
        (lambda p: 4 + 2 * np.log2(p), "O(log p)"),
        (lambda p: 4 + 0 * p, "O(1)"),
    ],
)
def test_plain_laws_are_named_within_a_little_noise(law: Law, growth: str) -> None:
    assert modelled(law, noise=0.005)[0] == growth


def test_an_offset_that_measurements_allow_is_a_law() -> None:
    assert modelled(lambda p: 3 * p - 6)[1] == "-6 + 3 * p"
    assert modelled(lambda p: 10 - 10 / np.sqrt(p))[1] == "10 - 10 * p^(-1/2)"


def test_an_odd_value_in_the_middle_is_no_growth() -> None:
    y = np.full((1, 9, 5), 5.0) * (1 + 0.01 * np.random.default_rng(1).standard_normal((1, 9, 5)))
    y[0, 4] *= 3
    models = fit(POINTS, y)
    assert str(models.growth(0)) == "O(1)"
    assert models.status[0] == FitStatus.OUTSIDE


def test_terms_are_those_of_the_space_that_was_asked_for() -> None:
    space = SearchSpace.of([1, 3], [0], max_terms=1)
    random = np.random.default_rng(2)
    y = (5 + POINTS**2)[:, None] * (1 + 0.02 * random.standard_normal((5, 9, 3)))
    models = fit(POINTS, y, space=space)
    assert {str(shape) for shape in models.shapes if shape in space.terms} == {
        str(term) for term in space.terms
    }
    assert not any(shape in DEFAULT_SPACE.terms[1:3] for shape in models.shapes)
    assert (models.terms[:, 1] < 0).all()
