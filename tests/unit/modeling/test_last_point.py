"""An outlier at the largest point must not become steep growth."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.modeling import FitStatus, fit

P = np.array([8.0, 27, 64, 125, 216])


@pytest.mark.parametrize("repetitions", [1, 3])
def test_a_single_value_that_is_off_at_the_end_is_no_growth(repetitions):
    rng = np.random.default_rng(1)
    y = np.repeat([[22.1, 21.5, 22.6, 21.9, 61.4]], 200, axis=0)
    noisy = y[:, :, None] * (1 + 0.02 * rng.standard_normal((200, 5, repetitions)))
    models = fit(P, noisy)
    # No prediction of such rows may explode.
    assert (models.values([1000.0])[:, 0] < 100).mean() > 0.9


def test_growth_that_the_other_points_hint_at_is_found():
    y = (20 + 0.05 * P**1.5)[None, :, None]
    models = fit(P, y)
    assert models.status[0] == FitStatus.OK
    assert str(models.growth(0)) == "O(p^(3/2))"
