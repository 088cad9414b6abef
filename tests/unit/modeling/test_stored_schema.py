"""Stored models that are not as the schema says."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.modeling import fit
from callpath_modeler.modeling.models import column_names
from callpath_modeler.modeling.stored import from_arrays, to_arrays
from callpath_modeler.modeling.stored_schema import COLUMNS

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


@pytest.mark.parametrize("name", list(COLUMNS))
def test_a_column_of_another_type_is_refused(stored, name):
    arrays, header = stored
    other = arrays[name].astype("S4")
    with pytest.raises(ValueError, match=f"{name} has the type"):
        from_arrays({**arrays, name: other}, header, 4)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("terms", -2),
        ("terms", 32_000),
        ("alternative_terms", 32_000),
        ("status", 8),
        ("weight", 1.1),
        ("weight", -0.1),
        ("alternative_weight", np.nan),
        ("spread", -1.0),
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


class Watched(np.ndarray):
    """A column that records that its values were read."""

    read: bool = False

    def min(self, *args, **kwargs):
        self.read = True
        return super().min(*args, **kwargs)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        self.read = True
        plain = [np.asarray(each) if isinstance(each, Watched) else each for each in inputs]
        return getattr(ufunc, method)(*plain, **kwargs)


def test_a_column_without_bounds_is_not_read(stored):
    arrays, header = stored
    watched = {name: array.copy().view(Watched) for name, array in arrays.items()}
    from_arrays(watched, header, 4)
    bounded = {
        name
        for name, column in COLUMNS.items()
        if column.low > -np.inf or column.high < np.inf or column.finite
    }
    assert {name for name, array in watched.items() if array.read} == bounded - {
        name for name, array in arrays.items() if not array.size
    }
    assert "root" not in bounded


def test_a_value_out_of_its_range_is_found_beside_missing_ones(stored):
    arrays, header = stored
    other = arrays["spread"].copy()
    other[:2] = np.nan, -1.0
    with pytest.raises(ValueError, match=r"spread holds a value beyond 0 and 1e\+300"):
        from_arrays({**arrays, "spread": other}, header, 4)
    other[:] = np.nan
    assert len(from_arrays({**arrays, "spread": other}, header, 4)) == 4
