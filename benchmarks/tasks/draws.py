"""Measurements of known models, for the cost of fits.

The laws follow the usual protocol of the field: ``c0 + c1 p^i log2(p)^j`` with coefficients uniform
in 0.001 ... 1000. The noise of 10 % is a factor uniform in 0.95 ... 1.05. There are five
repetitions at the points 8, 16, 32, ... Every second row is a constant.
"""

import numpy as np
from numpy.typing import NDArray

REPETITIONS = 5

_BLOCK = 1000
_CLASSES = np.array([(i, j) for i in (0, 0.25, 1 / 3, 0.5, 2 / 3, 0.75, 1, 1.5, 2) for j in (0, 1)])


def points(count: int) -> NDArray[np.float64]:
    """Return the first points, [count]."""
    return 2.0 ** np.arange(3, 3 + count)


def draw(rows: int, count: int) -> NDArray[np.float64]:
    """Return values [rows, count, repetitions]; fewer rows are the first rows of more."""
    p = points(count)
    values = np.empty((rows, count, REPETITIONS))
    for start in range(0, rows, _BLOCK):
        rng = np.random.default_rng((count, start))
        constant, growing = rng.uniform(0.001, 1000, (2, _BLOCK, 1))
        growing[::2] = 0
        power, log = rng.choice(_CLASSES, _BLOCK).T[..., None]
        truth = constant + growing * p**power * np.log2(p) ** log
        factor = rng.uniform(0.95, 1.05, (_BLOCK, count, REPETITIONS))
        block = values[start : start + _BLOCK]
        block[:] = (truth[..., None] * factor)[: len(block)]
    return values
