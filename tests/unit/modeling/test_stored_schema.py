"""Stored models that violate the schema."""

from __future__ import annotations

import pickle
from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from callpath_modeler.modeling import Models, fit
from callpath_modeler.modeling.model_columns import column_names
from callpath_modeler.modeling.stored import COLUMNS, from_arrays, to_arrays
from cells import cells

P = np.array([2.0, 4, 8, 16, 32])


@pytest.fixture(scope="module")
def stored():
    rows = np.array([3.0 + P, 5.0 + 0 * P, P * np.log2(P), 0 * P])
    return to_arrays(fit(P, rows[:, :, None] * [[[1.0, 1.01]]]))


def test_the_schema_names_every_column():
    assert list(COLUMNS) == list(column_names())


def test_what_was_stored_is_read(stored):
    arrays, header = stored
    assert len(from_arrays(arrays, header, 4)) == 4


@pytest.mark.parametrize("name", list(COLUMNS))
def test_a_column_of_another_shape_is_refused(stored, name):
    arrays, header = stored
    array = arrays[name]
    if not array.size:
        pytest.skip("the mixture method leaves this column empty")
    for axis in range(array.ndim):
        longer = np.concatenate([array, array.take([0], axis)], axis)
        shorter = array.take(range(array.shape[axis] - 1), axis)
        for other in (longer, shorter):
            with pytest.raises(ValueError, match=r"shape|dimensions|holds a value|terms"):
                from_arrays({**arrays, name: other}, header, 4)


@cells("name", list(COLUMNS))
def test_a_column_of_another_type_is_refused(stored, name):
    arrays, header = stored
    other = arrays[name].astype("S4")
    with pytest.raises(ValueError, match=f"{name} has the type"):
        from_arrays({**arrays, name: other}, header, 4)


@cells(
    ("name", "value"),
    [
        ("terms", -2),
        ("terms", 32_000),
        ("alternative_terms", 32_000),
        ("status", 8),
        ("weight", 1.1),
        ("weight", -0.1),
        ("weight", np.nan),
        ("alternative_weight", np.nan),
        ("spread", -1.0),
        ("spread", np.nan),
        ("cv_error", np.inf),
        ("coefficients", np.inf),
        ("coefficients", 1e308),
        ("alternative_coefficients", np.nan),
        ("since", -2.0),
        ("since", 3.0),
        ("since", np.nan),
        ("before", -2),
        ("before", 32_000),
        ("before_coefficients", np.nan),
        ("before_coefficients", -np.inf),
        ("low_p", 3.0),
        ("high_p", 1e300),
        ("unit", 0.0),
        ("unit", np.nan),
        ("root", np.nan),
        ("root", np.inf),
        ("root", 1e31),
    ],
)
def test_a_value_out_of_its_range_is_refused(stored, name, value):
    arrays, header = stored
    other = arrays[name].copy()
    other.flat[0] = value
    with pytest.raises(ValueError, match=f"{name} holds a value"):
        from_arrays({**arrays, name: other}, header, 4)


def test_errors_may_be_missing_with_the_classic_method_alone(stored):
    arrays, header = stored
    without = {**arrays, "root": arrays["root"][:, :0]}
    with pytest.raises(ValueError, match="root has the shape"):
        from_arrays(without, header, 4)
    with pytest.raises(ValueError, match="covariance has the shape"):
        from_arrays(without, {**header, "method": "classic"}, 4)
    with pytest.raises(ValueError, match="no method is called 'other'"):
        from_arrays(arrays, {**header, "method": "other"}, 4)


def test_classic_models_survive_a_store():
    rows = np.array([3.0 + P, 5.0 + 0 * P])
    made = fit(P, rows[:, :, None] * [[[1.0, 1.01]]], method="classic")
    arrays, header = to_arrays(made)
    np.testing.assert_array_equal(from_arrays(arrays, header, 2).covariance, made.covariance)


def test_a_value_out_of_its_range_is_found_beside_missing_ones(stored):
    arrays, header = stored
    other = arrays["spread"].copy()
    other[:2] = np.nan, -1.0
    with pytest.raises(ValueError, match=r"spread holds a value beyond 0 and 1e\+300"):
        from_arrays({**arrays, "spread": other}, header, 4)
    noise = np.full_like(arrays["noise"], np.nan)
    assert len(from_arrays({**arrays, "noise": noise}, header, 4)) == 4


@pytest.mark.parametrize("place", [0, 2, 5])
def test_a_negative_error_is_refused(stored, place):
    arrays, header = stored
    root = arrays["root"].copy()
    root[1, 2, place] = -0.5
    with pytest.raises(ValueError, match="root holds a negative error"):
        from_arrays({**arrays, "root": root}, header, 4)
    root = arrays["root"].copy()
    root[1, 2, [1, 3, 4]] = -0.5
    assert len(from_arrays({**arrays, "root": root}, header, 4)) == 4


@pytest.mark.parametrize(
    ("name", "factor"),
    [("unit", 1e-40), ("coefficients", 1e40), ("alternative_coefficients", 1e40)],
)
def test_coefficients_far_beyond_the_unit_of_their_row_are_refused(stored, name, factor):
    arrays, header = stored
    with pytest.raises(ValueError, match="and unit are of other magnitudes"):
        from_arrays({**arrays, name: arrays[name] * factor}, header, 4)


def test_a_covariance_that_is_empty_has_no_other_axes(stored):
    arrays, header = stored
    for other in (np.zeros((4, 0, 1, 0)), np.zeros((4, 0)), np.zeros((4, 0, 3))):
        with pytest.raises(ValueError, match="covariance has the shape"):
            from_arrays({**arrays, "covariance": other}, header, 4)


def test_a_product_of_more_factors_than_parameters_is_refused(stored):
    arrays, header = stored
    factor = header["shapes"][0]
    for count in (2, 3):
        shapes = [{"factors": [factor] * count}, *header["shapes"][1:]]
        with pytest.raises(ValueError, match="more or fewer factors"):
            from_arrays(arrays, {**header, "shapes": shapes}, 4)


@pytest.mark.parametrize("method", ["mixture", "classic"])
def test_models_of_rows_with_few_values_or_none_are_read(method):
    few, none = np.where(P > 8, P, np.nan), np.full(5, np.nan)
    rows = np.array([3.0 + P, none, few, np.where(P > 2, P, np.nan)])
    made = fit(P, rows[:, :, None] * [[[1.0, 1.01]]], method=method)
    arrays, header = to_arrays(made)
    found = from_arrays(arrays, header, 4)
    np.testing.assert_array_equal(found.status, made.status)
    assert found.high_p[1] == -np.inf


def test_classic_models_of_more_terms_than_their_runners_up_are_read():
    scales = 2.0 ** np.arange(1, 9)
    rows = np.array([3 + scales + 5 * scales**2 * np.log2(scales)])
    made = fit(scales, rows[:, :, None] * [[[1.0, 1.001, 0.999]]], method="classic")
    arrays, header = to_arrays(made)
    assert arrays["terms"].shape[1] > arrays["alternative_terms"].shape[2]
    assert from_arrays(arrays, header, 1).formula(0) == made.formula(0)
    with pytest.raises(ValueError, match="has the shape"):
        from_arrays(arrays, {**header, "method": "mixture"}, 1)


@pytest.mark.parametrize("scale", [1e-310, 1e-100, 1e100])
def test_models_of_very_small_and_very_large_values_are_read(scale):
    rows = np.array([3.0 + P, 5.0 + 0 * P, P * np.log2(P), 0 * P]) * scale
    made = fit(P, rows[:, :, None] * [[[1.0, 1.01]]])
    arrays, header = to_arrays(made)
    assert from_arrays(arrays, header, 4).formula(0) == made.formula(0)


class RefusedError(Exception):
    """The error of a store."""


@pytest.mark.parametrize("name", list(COLUMNS))
def test_columns_and_rows_that_are_checked_later_are_checked_before_they_are_used(stored, name):
    arrays, header = stored
    # A model is one of few if there are eight times as many.
    arrays = {key: np.concatenate([array] * 4) for key, array in arrays.items()}
    if not arrays[name].size:
        pytest.skip("the mixture method leaves this column empty")
    low, wrong = COLUMNS[name].low, arrays[name].copy()
    wrong[5] = np.inf if low == -np.inf else -np.inf if low < -1 else low - 1
    models = from_arrays({**arrays, name: wrong}, header, 16, refused=RefusedError)
    right = from_arrays(arrays, header, 16)
    for rows in ([5], slice(5, 6), np.arange(16) == 5, slice(None)):
        with pytest.raises(RefusedError, match="beyond"):
            getattr(models.take(rows), name)
    for rows in ([6, 4], slice(6, 8), np.arange(16) == 3):
        few, same = models.take(rows), right.take(rows)
        for column in COLUMNS:
            np.testing.assert_array_equal(getattr(few, column), getattr(same, column))
            assert not getattr(few, column).flags.writeable
    with pytest.raises(RefusedError, match=f"^{name} holds a value beyond"):
        getattr(models, name)
    with pytest.raises(RefusedError, match="beyond"):
        pickle.dumps(models)


def test_stored_models_are_copied_as_models_that_were_checked(stored):
    arrays, header = stored
    models = from_arrays(arrays, header, 4, refused=RefusedError)
    other = replace(models, confidence=0.5)
    assert (type(other), other.confidence, len(other)) == (Models, 0.5, 4)
    again = pickle.loads(pickle.dumps(models))  # noqa: S301 - our own
    assert again.formula(0) == copy(models).formula(0) == models.formula(0)
    with pytest.raises(AttributeError):
        models.nothing  # noqa: B018 - it has no such attribute
