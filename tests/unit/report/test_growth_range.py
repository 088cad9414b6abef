"""Growth without a clear decision is a range."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.modeling import fit

POINTS = 2.0 ** np.arange(3, 8)


def models_of(noise):
    random = np.random.default_rng(5)
    laws = [POINTS**0.5, POINTS, 100 + 0 * POINTS, 100 + 0.1 * POINTS]
    y = np.repeat(np.array(laws), 5, axis=0)
    return fit(POINTS, y[..., None] * (1 + noise * random.standard_normal((20, 5, 3))))


@pytest.mark.parametrize("noise", [0.001, 0.3])
def test_the_growth_of_the_model_is_between_the_ends(noise):
    models = models_of(noise)
    low, high = models.growth_ends(np.arange(20)).T
    rank = models.growth_rank()
    assert (low <= rank).all()
    assert (rank <= high).all()


def test_the_ends_are_apart_where_noise_leaves_it_open_and_one_where_it_does_not():
    sure, open_ = (models_of(noise).growth_ends(np.arange(20)).T for noise in (0.0001, 0.3))
    assert (sure[0] == sure[1]).mean() > 0.9
    assert (open_[0] < open_[1]).mean() > 0.4


def test_what_grows_slower_and_faster_has_a_tenth_at_most():
    models = models_of(0.1)
    for row, (low, high) in enumerate(models.growth_ends(np.arange(20)).tolist()):
        growths = models.shapes.growths
        others = models.alternatives(row)
        below = sum(other.weight for other in others if other.growth < growths[low])
        above = sum(other.weight for other in others if growths[high] < other.growth)
        assert below <= 0.1 + 1e-6
        assert above <= 0.1 + 1e-6


def test_rows_without_a_model_have_no_ends():
    models = fit(POINTS, np.full((1, 5, 1), np.nan))
    assert models.growth_ends([0]).tolist() == [[-1, -1]]
