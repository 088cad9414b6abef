from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from callpath_modeler.modeling import FitStatus, Models, fit
from callpath_modeler.modeling.model_columns import column_names
from callpath_modeler.modeling.stored import from_arrays, to_arrays

POINTS = 2.0 ** np.arange(2, 10)
LAWS = [
    5 + 0 * POINTS,
    3.99 * POINTS**0.5,
    100 / POINTS,
    10 - 10 * POINTS**-0.5,
    1 + 0.5 * np.log2(POINTS),
    8 / POINTS + 2 * POINTS,
    0 * POINTS,
    np.full(8, np.nan),
]


@pytest.fixture(scope="module")
def models() -> Models:
    return fit(POINTS, np.stack(LAWS)[..., None])


def test_formulas_start_with_the_constant(models: Models) -> None:
    assert [models.formula(row) for row in range(8)] == [
        "5",
        "3.99 * p^(1/2)",
        "100 * p^-1",
        "10 - 10 * p^(-1/2)",
        "1 + 0.5 * log2(p)",
        "8 * p^-1 + 2 * p",
        "0",
        "no model",
    ]
    assert models.formula(1, "n", pretty=True) == "3.99 n^½"
    assert models.formula(3, pretty=True) == "10 - 10 p^-½"
    number, _, rest = models.formula(1, exact=True).partition(" ")
    assert float(number) == models.coefficients[1, 1] == pytest.approx(3.99, rel=1e-14)
    assert rest == "* p^(1/2)"


def test_growth_is_that_of_the_leading_term(models: Models) -> None:
    assert [models.growth(row).text() for row in range(8)] == [
        "O(1)",
        "O(p^(1/2))",
        "O(p^-1)",
        "O(1)",
        "O(log p)",
        "O(p)",
        "O(1)",
        "O(1)",
    ]


def test_growth_ranks_order_rows_as_their_growth_does(models: Models) -> None:
    ranks = models.growth_rank()
    assert ranks[7] == -1
    order = [models.growth(row) for row in np.argsort(ranks[:7], kind="stable")]
    assert order == sorted(order)
    assert ranks[0] == ranks[3] == ranks[6]
    assert len(set(ranks[:7])) == 5


def test_leading_coefficients_go_with_the_leading_term(models: Models) -> None:
    assert models.leading_coefficient()[:7] == pytest.approx([5, 3.99, 100, 10, 0.5, 2, 0])


def test_predictions_reach_to_infinity(models: Models) -> None:
    band = models.predict([1.0, np.inf])
    assert band.value[:7, 1] == pytest.approx([5, np.inf, 0, 10, np.inf, np.inf, 0])
    assert (band.low[:7] <= band.value[:7]).all()
    assert (band.high[:7] >= band.value[:7]).all()
    assert not np.isnan(band.high[:7]).any()
    assert band.value[:7, 0] == pytest.approx([5, 3.99, 100, 0, 1, 10, 0], abs=1e-6)


@pytest.mark.parametrize("target", [0.0, -1.0, np.nan])
def test_a_target_is_above_zero(models: Models, target: float) -> None:
    with pytest.raises(ValueError, match="above zero"):
        models.values([target])


def test_models_survive_a_store(models: Models, tmp_path: Path) -> None:
    arrays, header = to_arrays(models)
    for name, column in arrays.items():
        np.save(tmp_path / f"{name}.npy", column)
    mapped = {name: np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in arrays}
    again = from_arrays(mapped, json.loads(json.dumps(header)))
    assert again.space == models.space
    for name in column_names():
        assert np.array_equal(getattr(again, name), getattr(models, name), equal_nan=True)
    with pytest.raises(ValueError, match="version"):
        from_arrays(mapped, {**header, "version": 0})
    for name in ("terms", "alternative_terms"):
        for code in (-2, len(models.shapes)):
            codes = np.array(mapped[name])
            codes.flat[-1] = code
            with pytest.raises(ValueError, match=f"^{name} holds a value"):
                from_arrays({**mapped, name: codes}, header)
    mapped.pop("terms")
    with pytest.raises(ValueError, match="columns missing: terms"):
        from_arrays(mapped, header)


def test_columns_are_read_only(models: Models) -> None:
    for name in column_names():
        with pytest.raises(ValueError, match="read-only"):
            getattr(models, name)[...] = 0


def test_some_rows_can_be_taken(models: Models) -> None:
    some = models.take([5, 0])
    assert [some.formula(row) for row in range(2)] == ["8 * p^-1 + 2 * p", "5"]
    assert len(models.take(models.status == FitStatus.OK)) == 5
    assert len(models.take([])) == 0
    assert repr(some) == "<Models: 2 rows, 8 points>"


def test_alternatives_are_other_hypotheses_with_weights_that_sum_to_one() -> None:
    random = np.random.default_rng(1)
    y = (3 + POINTS**0.5)[None, :, None] * (1 + random.normal(0, 0.05, (20, 8, 3)))
    models = fit(POINTS, y)
    for row in range(20):
        others = models.alternatives(row)
        assert models.formula(row) not in [other.formula for other in others]
        assert all(weight > 0 for weight in (other.weight for other in others))
        weights = [other.weight for other in others]
        assert weights == sorted(weights, reverse=True)
        assert models.weight[row] + sum(weights) == pytest.approx(1)
    assert any(models.alternatives(row) for row in range(20))


def test_exact_data_have_no_alternative(models: Models) -> None:
    assert (models.weight[:6] > 0.99).all()
