"""Transposition of shared data, (p - 1) / p**2, with higher cost at large scales."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.modeling import FitStatus, fit

P = 4 * 2.0 ** np.arange(6)


@pytest.mark.parametrize("dearer_from", [1, 2, 3])
def test_a_transposition_that_is_dearer_at_the_end_is_no_growth(dearer_from):
    rng = np.random.default_rng(dearer_from)
    factors = rng.uniform(1.3, 2, 20)
    y = P[-1] * (P - 1) / P**2 * np.where(np.arange(6) >= 6 - dearer_from, factors[:, None], 1.0)
    noisy = y[:, :, None] * np.exp(0.02 * rng.standard_normal((20, 6, 3)))
    models = fit(P, noisy)
    far = models.predict([16 * P[-1]])
    assert (far.value[:, 0] < y[:, -1] * 1.05).mean() >= 0.9
    truth = factors / 16
    assert ((far.low[:, 0] <= truth) & (truth <= far.high[:, 0])).mean() >= 0.8
    assert (models.status == FitStatus.OUTSIDE).mean() >= 0.9
