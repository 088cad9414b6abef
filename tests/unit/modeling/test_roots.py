"""Roots of covariances keep all digits for coefficients of every size."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.model_columns import (
    covariances,
    numbers_of_root,
    rescaled,
    roots_of,
    with_more_terms,
)

PEAK = np.array([1e3, 2e-5, 1e45, 1.0])
CODES = np.array([[0, 1], [2, 0], [1, -1], [-1, -1]], dtype=np.int16)


def covariance() -> FloatArray:
    """Return covariances of coefficients as large as their shapes are small, [4, 3, 3]."""
    factor = np.random.default_rng(1).standard_normal((4, 3, 3))
    factor[CODES[:, 1] < 0, 2] = 0
    factor[CODES[:, 0] < 0, 1] = 0
    size = np.concatenate([np.ones((4, 1)), 1 / PEAK[CODES]], axis=1)
    factor *= size[..., None]
    return np.asarray(factor @ factor.swapaxes(-1, -2))


def test_a_root_in_single_precision_is_all_of_a_covariance() -> None:
    whole = covariance()
    root = roots_of(whole, CODES, PEAK).astype(np.float32)
    size = np.sqrt(np.einsum("nii->ni", whole))
    off = np.abs(covariances(root, CODES, PEAK) - whole)
    assert (off <= 1e-6 * size[:, :, None] * size[:, None, :]).all()


def test_what_nearly_compensates_each_other_is_still_told_apart() -> None:
    factor = np.array([[1.0, 0, 0], [1, 1e-5, 0], [0, 0, 0]])
    root = roots_of((factor @ factor.T)[None], CODES[:1], np.ones(4)).astype(np.float32)
    difference = np.array([1.0, -1, 0])
    left = difference @ covariances(root, CODES[:1], np.ones(4))[0] @ difference
    assert left == pytest.approx(1e-10, rel=0.1)


def test_a_root_rescaled_to_other_peaks_of_shapes_has_the_same_covariance() -> None:
    whole = covariance()
    root = roots_of(whole, CODES, PEAK).astype(np.float32)
    other = PEAK * np.array([0.1, 7.0, 1e-3, 1.0])
    again = covariances(rescaled(root, CODES, PEAK, other), CODES, other)
    assert again == pytest.approx(covariances(root, CODES, PEAK), rel=1e-6)


def test_roots_of_more_terms_are_all_of_their_covariance_too() -> None:
    codes = np.array([[0, 1, 2]], dtype=np.int16)
    size = np.concatenate([np.ones(1), 1 / PEAK[:3]])
    factor = np.random.default_rng(2).standard_normal((1, 4, 4)) * size[:, None]
    whole = factor @ factor.swapaxes(-1, -2)
    root = roots_of(whole, codes, PEAK)
    assert root.shape == (1, numbers_of_root(3))
    assert covariances(root, codes, PEAK) / np.outer(size, size) == pytest.approx(
        whole / np.outer(size, size)
    )


def test_a_model_of_two_terms_has_a_root_among_those_of_four() -> None:
    whole = covariance()
    root = with_more_terms(roots_of(whole, CODES, PEAK).astype(np.float32), 4)
    codes = np.concatenate([CODES, np.full((4, 2), -1, dtype=np.int16)], axis=1)
    found = covariances(root.astype(np.float64), codes, PEAK)
    size = np.sqrt(np.einsum("nii->ni", whole))
    off = np.abs(found[:, :3, :3] - whole)
    assert (off <= 1e-6 * size[:, :, None] * size[:, None, :]).all()
    assert (found[:, 3:] == 0).all()
