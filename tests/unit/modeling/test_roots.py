"""Roots of covariances: nothing is lost of them, whatever the size of coefficients."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from callpath_modeler.modeling.roots import covariances, rescaled, roots_of

FloatArray = npt.NDArray[np.float64]
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


def test_other_peaks_of_shapes_change_a_root_and_not_its_covariance() -> None:
    whole = covariance()
    root = roots_of(whole, CODES, PEAK).astype(np.float32)
    other = PEAK * np.array([0.1, 7.0, 1e-3, 1.0])
    again = covariances(rescaled(root, CODES, PEAK, other), CODES, other)
    assert again == pytest.approx(covariances(root, CODES, PEAK), rel=1e-6)
