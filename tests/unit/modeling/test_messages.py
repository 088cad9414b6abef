"""Messages of all sizes: start-up times are small compared with large messages."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.modeling import fit
from cells import cells

SIZES = 8.0 ** np.arange(1, 8)
LAWS = {
    "tree and pairs": lambda p, n: 2 * np.log2(p) + 5e-4 * p * n,
    "tree and one": lambda p, n: 2 * np.log2(p) + 1e-3 * n,
    "ring": lambda p, n: p * (1 + 1e-3 * n),
}


@cells("law", LAWS)
@cells("repetitions", [1, 5])
def test_start_up_times_beside_large_messages_are_told(law: str, repetitions: int) -> None:
    points = np.array([(p, n) for p in 2.0 ** np.arange(2, 8) for n in SIZES])
    exact = np.tile(LAWS[law](*points.T), (10, 1))
    random = np.random.default_rng(1)
    noise = np.exp(0.02 * random.standard_normal((*exact.shape, repetitions)))
    models = fit(points, exact[:, :, None] * noise)
    assert np.median(np.abs(models.values(points) / exact - 1).max(axis=1)) < 0.05
    far = np.array([(2048.0, 8.0), (2048.0, SIZES[-1])])
    assert models.values(far) == pytest.approx(np.tile(LAWS[law](*far.T), (10, 1)), rel=0.1)


def test_next_to_nothing_on_one_process_does_not_bend_the_law_of_many() -> None:
    points = np.array([(p, n) for p in (1.0, 4, 16, 64) for n in (8.0, 64, 512)])
    p, n = points.T
    exact = np.tile(np.where(p > 1, p * n, 1e-4), (10, 1))
    noise = np.exp(0.02 * np.random.default_rng(2).standard_normal((10, len(points), 3)))
    models = fit(points, exact[:, :, None] * noise)
    assert np.median(models.values([(1024.0, 512.0)])) == pytest.approx(1024 * 512, rel=0.02)
