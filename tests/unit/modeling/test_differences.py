from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling import (
    DEFAULT_SPACE,
    FitStatus,
    Growth,
    SearchSpace,
    Term,
    TermDifference,
    fit,
)
from callpath_modeler.modeling.mixture.one_parameter import hypotheses
from callpath_modeler.modeling.products import Product, differences
from callpath_modeler.modeling.shapes import shape_table
from cells import cells

P = Term(Fraction(1), 0)
ALL = differences(DEFAULT_SPACE.terms, np.array([1.0, 2, 4]))


def test_a_difference_has_the_values_and_the_growth_its_formula_says() -> None:
    shape = TermDifference(P, Term(Fraction(2, 3), 0))
    assert shape([1, 8, 1000]) == pytest.approx([0, 4, 900])
    assert shape.text("n") == "(n - n^(2/3))"
    assert shape.text(pretty=True) == "(p - p^⅔)"
    assert shape.growth == Growth(Fraction(1), 0)
    assert TermDifference(P, Term(Fraction(0), 0)).text() == "(p - 1)"


@cells("shape", ALL)
def test_differences_are_nothing_at_one_process_and_rise_from_there(shape: TermDifference) -> None:
    values = shape(np.append(2.0 ** np.arange(40), np.inf))
    assert values[0] == 0
    assert (np.diff(values[:-1]) > 0).all()
    assert np.isposinf(values[-1])


def test_differences_are_of_terms_of_the_space_and_for_points_that_show_them() -> None:
    far = differences(DEFAULT_SPACE.terms, np.array([32.0, 64, 128]))
    assert {shape.text() for shape in far} == {"(p - p^(1/2))", "(p - p^(2/3))", "(p^2 - p)"}
    assert {shape.text() for shape in ALL} - {shape.text() for shape in far} == {
        "(p - 1)",
        "(p * log2(p) - log2(p))",
    }
    assert differences(DEFAULT_SPACE.terms, np.array([0.5, 1, 2])) == ()
    whole = differences(SearchSpace.of([1, 2], [0]).terms, np.array([1.0, 2]))
    assert {shape.text() for shape in whole} == {"(p - 1)", "(p^2 - p)"}
    for first in (2.0, 16.0):
        early = differences(DEFAULT_SPACE.terms, first * np.array([1.0, 2, 4]))
        assert [shape.text() for shape in early if shape.decreasing] == ["(p^-1 - p^-2)"]


def test_models_of_one_term_are_no_differences() -> None:
    known = [
        hypotheses(SearchSpace.of([1, 2], [0], terms), np.array([1.0, 2, 4])).shapes
        for terms in (1, 2)
    ]
    assert [any(isinstance(each, TermDifference) for each in shapes) for shapes in known] == [
        False,
        True,
    ]


COUNTS = {
    "6 * (p - p^(2/3))": lambda p: 6 * p - 6 * np.cbrt(p) ** 2,
    "4 * (p - p^(1/2))": lambda p: 4 * (p - np.sqrt(p)),
    "0.5 * (p^2 - p)": lambda p: p * (p - 1) / 2,
}


@pytest.mark.parametrize(
    "points", [[1, 2, 4, 8, 16, 32], [8, 27, 64, 125, 216], [48, 96, 192, 384]]
)
def test_messages_of_neighbours_and_of_all_pairs_are_counted_at_any_scale(
    points: list[float],
) -> None:
    p = np.array(points, float)
    models = fit(p, np.stack([law(p) for law in COUNTS.values()])[..., None])
    assert [models.formula(row) for row in range(3)] == list(COUNTS)
    far = np.array([1e6])
    band = models.predict(far)
    truth = np.array([law(far) for law in COUNTS.values()])
    assert band.value == pytest.approx(truth, rel=1e-6)
    assert band.high - band.low == pytest.approx(0 * truth, abs=1e-3 * truth.max())
    assert (models.status == FitStatus.OK).all()


@pytest.mark.parametrize("first", [2, 3, 4, 8])
def test_exchanges_with_all_others_are_found_where_few_processes_were_measured(first: int) -> None:
    points, random = first * 2.0 ** np.arange(5), np.random.default_rng(first)
    far = 16 * points[-1:]
    laws = [lambda p: p - 1, lambda p: (p - 1) * np.log2(p), lambda p: 3 * p, lambda p: 7 + 0 * p]
    size = random.uniform(0.1, 10, 80)
    y, truth = (
        size[:, None] * np.stack([laws[row % 4](p) for row in range(80)]) for p in (points, far)
    )
    found = fit(points, y[:, :, None] * (1 + 0.02 * random.standard_normal((80, 5, 3)))).predict(
        far
    )
    assert np.median(np.abs(found.value / truth - 1)) < 0.03
    held = ((found.low <= truth) & (truth <= found.high)).reshape(20, 4)
    assert (held.mean(axis=0) >= 0.85).all()


def test_what_one_process_does_not_do_is_nothing_there_in_spite_of_noise() -> None:
    rng = np.random.default_rng(3)
    p = 2.0 ** np.arange(6)
    y = 12 * (p - 1) * (1 + 0.02 * rng.standard_normal((40, 5, 6)))
    models = fit(p, y.transpose(0, 2, 1))
    texts = [models.formula(row) for row in range(40)]
    assert np.mean([text.endswith("* (p - 1)") for text in texts]) > 0.9
    band = models.predict([512.0])
    assert np.median(band.value) == pytest.approx(12 * 511, rel=0.02)
    assert ((band.low <= 12 * 511) & (band.high >= 12 * 511)).mean() >= 0.9


@pytest.mark.parametrize("points", [[8, 16, 32, 64, 128], [1, 8, 27, 64, 125]])
def test_volume_and_surface_of_shared_work_are_told_apart(points: list[float]) -> None:
    def law(p: FloatArray) -> FloatArray:
        return 1e6 / p + 1e5 / np.cbrt(p) ** 2

    p = np.array(points, float)
    models = fit(p, law(p)[None, :, None])
    assert models.formula(0) == "1e+06 * p^-1 + 1e+05 * p^(-2/3)"
    assert str(models.growth(0)) == "O(p^(-2/3))"
    assert models.predict([1e4]).value[0] == pytest.approx(law(np.array([1e4])), rel=1e-6)


@pytest.mark.parametrize("first", [4, 8])
def test_transpositions_of_shared_data_show_what_each_message_takes(first: int) -> None:
    points, random = first * 2.0 ** np.arange(5), np.random.default_rng(first)
    # Data that is shared by both sides of each message, and a start-up time for each.
    startup = random.uniform(0.1, 3, 60)[:, None] / points[-1] ** 2

    def law(p: FloatArray) -> FloatArray:
        return (p - 1) * (startup + 1 / p**2)

    y = law(points)[:, :, None] * np.exp(0.01 * random.standard_normal((60, 5, 5)))
    far = 16 * points[-1:]
    found, truth = fit(points, y).predict(far), law(far)
    assert np.median(np.abs(found.value / truth - 1)) < 0.1
    assert ((found.low <= truth) & (truth <= found.high)).mean() > 0.85


def test_a_model_that_is_a_falling_difference_alone_falls_as_it_does() -> None:
    p = 2.0 ** np.arange(1, 9)
    noise = 1 + 0.005 * np.random.default_rng(1).standard_normal((1, 8, 3))
    models = fit(p, (4 * (1 / p - 1 / p**2))[None, :, None] * noise)
    assert models.formula(0) == "4.002 * (p^-1 - p^-2)"
    assert str(models.growth(0)) == "O(p^-1)"


@cells("shape", ALL)
def test_a_product_with_a_difference_has_no_end(shape: TermDifference) -> None:
    product = Product((shape, P))
    targets = np.array([[np.inf, 4], [4, np.inf], [np.inf, np.inf], [4, 2]])
    assert shape_table([product], targets)[0] == pytest.approx(product(targets))
    assert np.isposinf(product(targets)[:3]).all()
