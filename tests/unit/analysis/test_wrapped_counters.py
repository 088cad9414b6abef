"""Counters of 32 bits that started again at 0, and counts that fall for another reason."""

from __future__ import annotations

import numpy as np

from callpath_modeler.analysis.data_quality import RANGE, wrapped_from
from cells import cells

P = np.array([64.0, 128.0, 256.0, 512.0, 1024.0])


@cells(
    ("true", "first"),
    [
        (1e7 * P, 3),
        (1.6e7 * P, 3),
        (3e7 * P, 2),
        (5e3 * P**2, 4),
        (1e6 * P, -1),
        (2e9 * P / P[0] * 4, -1),
    ],
)
def test_the_first_wrapped_scale_is_found(true, first):
    assert wrapped_from(P, (true % RANGE)[None]).tolist() == [first]


def test_counts_with_little_scatter_are_found():
    scatter = 1 + 0.005 * np.array([1, -1, 1, -1, 1])
    assert wrapped_from(P, (1e7 * P * scatter % RANGE)[None]).tolist() == [3]


@cells(
    "counts",
    [
        [5e9, 4e9, 3e9, 2e9, 1e9],
        [1e9, 2e9, 4e9, 1e9, 5e8],
        [6.4e8, 1.28e9, 2.56e9, 8.25e8, 6e9],
        [6.4e8, 1.28e9, 2.56e9, 9.9e8, 9.9e8],
        [0.0, 0.0, 0.0, 0.0, 0.0],
        [np.nan, 1.28e9, 2.56e9, 8.25e8, 1e9],
        [1e3, 2e3, 4e3, 1e3, 2e3],
    ],
)
def test_other_counts_are_not_wrapped(counts):
    assert wrapped_from(P, np.array([counts])).tolist() == [-1]


def test_random_counts_are_hardly_ever_wrapped():
    rng = np.random.default_rng(3)
    counts = 1e9 * rng.lognormal(0, 1, (20_000, 5))
    assert (wrapped_from(P, counts) >= 0).mean() < 0.001


def test_two_scales_tell_nothing():
    assert wrapped_from(P[:2], np.array([[4e9, 1e9]])).tolist() == [-1]
