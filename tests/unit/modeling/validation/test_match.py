from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.modeling import Growth, parse_growth
from callpath_modeler.modeling.expected_growth import (
    MPI_SPACE,
    DeviationMatch,
    ExpectedGrowth,
    search_space,
    validate,
)
from cells import cells

P = np.array([32.0, 64, 128, 256, 512, 1024])


def growth(text: str) -> Growth:
    return parse_growth(text).growth


@cells("text", [str(found) for found in search_space(growth("p"))])
@cells("constant", [0.0, 7.0])
def test_every_term_of_the_space_is_found_again(text: str, constant: float) -> None:
    law = growth(text)
    values = constant + 3e-3 * law(P)[None]
    result = validate(P, values, ExpectedGrowth.of(growth("p")))
    assert result.growth(0) == law
    if law != growth("1"):
        assert result.constant[0] == pytest.approx(constant, abs=1e-6)
        assert result.coefficient[0] == pytest.approx(3e-3)


def test_growth_that_falls_is_a_law_without_a_constant() -> None:
    values = np.stack([50 / P, 50 / P + 4, 4 + 0 * P])
    result = validate(P, values, ExpectedGrowth.of(growth("1/p")))
    assert [str(result.growth(row)) for row in range(3)][::2] == ["O(p^-1)", "O(1)"]
    assert result.match.tolist()[::2] == [DeviationMatch.EXACT, DeviationMatch.NONE]
    # A value that settles at 4 falls more slowly than 1/p.
    settling = result.growth(1)
    assert settling is not None
    assert settling > growth("1/p")


def test_one_call_answers_for_many_rows_and_gaps_do_not_matter() -> None:
    law = growth("p^0.5 log p")
    values = np.tile(2 + law(P), (5000, 1))
    values[1, 2] = values[2, 0] = np.nan
    result = validate(P, values, ExpectedGrowth.of(growth("log p"), growth("sqrt p")), MPI_SPACE)
    assert len(result) == 5000
    assert {result.growth(row) for row in (0, 1, 2, 4999)} == {law}
    assert set(result.match.tolist()) == {DeviationMatch.APPROXIMATE}
    assert not result.match.flags.writeable


def test_the_order_of_points_does_not_matter() -> None:
    values = 2 + 3 * P[None] ** 0.75
    result = validate(P[::-1], values[:, ::-1], ExpectedGrowth.of(growth("p")))
    assert str(result.growth(0)) == "O(p^(3/4))"
    assert str(result.divergence(0)) == "O(p^(-1/4))"


def test_rows_that_cannot_be_modelled_have_no_match() -> None:
    nan, inf = np.nan, np.inf
    values = np.array(
        [[nan, nan, nan, 1, 2, 3], [1, 2, 3, 4, 5, inf], [1, 2, 3, 4, 5, -6], 6 * [0]]
    )
    result = validate(P, values, ExpectedGrowth.of(growth("p")))
    assert result.match.tolist() == [DeviationMatch.NO_MODEL] * 3 + [DeviationMatch.NONE]
    assert [result.growth(row) for row in range(3)] == [None] * 3
    assert result.divergence(0) is None
    assert np.isnan(result.cv_error[:3]).all()
    assert str(result.growth(3)) == "O(1)"


def test_without_rows_there_is_nothing_to_say() -> None:
    assert len(validate(P, np.zeros((0, 6)), ExpectedGrowth.of(growth("p")))) == 0


def test_a_space_without_a_constant_holds_no_constant() -> None:
    result = validate(P, [[5.0] * 6], ExpectedGrowth.of(growth("p")), [growth("p"), growth("p^2")])
    assert result.match.tolist() == [DeviationMatch.NO_MODEL]


def test_what_no_number_holds_is_left_out_of_the_space() -> None:
    scales = np.array([400.0, 800, 1200, 1600, 2000])
    result = validate(
        scales, [scales], ExpectedGrowth.of(growth("2^p")), [growth("2^p"), growth("p")]
    )
    assert str(result.growth(0)) == "O(p)"
    with pytest.raises(ValueError, match="nothing of the search space"):
        validate(scales, [scales], ExpectedGrowth.of(growth("2^p")), [growth("2^p")])


def test_logarithms_need_points_of_one_or_more() -> None:
    scales = np.array([0.25, 0.5, 1, 2, 4])
    result = validate(scales, [2 + scales], ExpectedGrowth.of(growth("p")))
    assert str(result.growth(0)) == "O(p)"
    with pytest.raises(ValueError, match="nothing of the search space"):
        validate(scales, [scales], ExpectedGrowth.of(growth("log p")))


@pytest.mark.parametrize(
    ("points", "values", "message"),
    [
        ([1, 2, 2, 4], [[1, 2, 3, 4]], "points must differ"),
        ([], [[]], "finite numbers above zero"),
        ([0, 1, 2, 4], [[1, 2, 3, 4]], "finite numbers above zero"),
        ([1, 2, 3, 4], [1, 2, 3, 4], r"values have shape \(4,\); expected \(rows, 4\)"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    points: list[float], values: list[float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        validate(points, values, ExpectedGrowth.of(growth("p")))


# Frequent itemsets: expected and published growth over the number of dimensions.
@pytest.mark.parametrize(
    ("expected", "law", "match"),
    [
        ("k^3 2^k", "k^4 2^k", DeviationMatch.APPROXIMATE),
        ("k^4 2^k", "k^4 2^k", DeviationMatch.EXACT),
        ("k 2^k", "k 2^k", DeviationMatch.EXACT),
        ("k^3 2^k", "k^2 2^k", DeviationMatch.APPROXIMATE),
    ],
)
def test_exponential_laws_come_back_with_their_class(
    expected: str, law: str, match: DeviationMatch
) -> None:
    k = np.arange(3.0, 17.0)
    noise = 1 + 0.01 * np.random.default_rng(1).standard_normal((20, len(k)))
    result = validate(k, (1 + 1e-6 * growth(law)(k)) * noise, ExpectedGrowth.of(growth(expected)))
    found = [result.growth(row) == growth(law) for row in range(20)]
    assert sum(found) >= 19
    assert (result.match == match).sum() >= 19
