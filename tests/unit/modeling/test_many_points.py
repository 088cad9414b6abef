"""Many points: a change point found by chance does not exclude other laws."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.modeling import fit

THREADS = np.arange(1.0, 21)


@pytest.mark.parametrize("grows", [lambda p: p, np.log2, np.ones_like])
def test_what_hides_beside_shared_work_is_in_the_band(grows):
    rng = np.random.default_rng(1)
    share = 10 ** rng.uniform(-1.5, 0, (60, 1))

    def law(p):
        return 20 / p + share * grows(p) / grows(THREADS[-1:])

    y = law(THREADS)[..., None] * np.exp(0.03 * rng.standard_normal((60, 20, 3)))
    targets = 20 * np.array([2.0, 4, 16])
    band, truth = fit(THREADS, y).predict(targets), law(targets)
    assert ((band.low <= truth) & (truth <= band.high)).mean(axis=0).min() >= 0.9
