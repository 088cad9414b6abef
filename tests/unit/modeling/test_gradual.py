"""Gradual changes: a smooth maximum of two laws."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.modeling import DEFAULT_SPACE, FitStatus, SearchSpace, fit
from callpath_modeler.modeling.mixture.one_parameter import hypotheses
from callpath_modeler.modeling.products import Break, BreakKind, breaks

P = {"six": 24 * 2.0 ** np.arange(6), "five": 8 * 2.0 ** np.arange(5)}


def _laws(rng: np.random.Generator, p: np.ndarray, rises: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return thirty laws, sharper or smoother than the hypotheses, at the points and far beyond."""
    at = np.exp(rng.uniform(np.log(p[1]), np.log(p[-2]), (30, 1)))
    sharp = rng.uniform(1.7, 5, (30, 1))
    reach = np.append(p, 16 * p[-1])
    ratio = reach / at if rises else at / reach
    every = (1 + ratio**sharp) ** (1 / sharp)
    return every[:, :-1], every[:, -1]


@pytest.mark.parametrize("rises", [True, False])
@pytest.mark.parametrize("points", list(P))
def test_gradual_changes_of_any_sharpness_are_met(points, rises):
    held, off = [], []
    for seed in range(3, 7):
        rng = np.random.default_rng(seed)
        y, truth = _laws(rng, P[points], rises)
        noisy = y[:, :, None] * np.exp(0.02 * rng.standard_normal((*y.shape, 3)))
        band = fit(P[points], noisy).predict([16 * P[points][-1]])
        held.append((band.low[:, 0] <= truth) & (truth <= band.high[:, 0]))
        off.append(np.abs(np.log(band.value[:, 0] / truth)))
    assert np.mean(held) >= 0.95
    assert np.median(off) < 0.1


def test_the_formula_tells_the_place_and_the_status_that_the_law_changes():
    p = P["six"]
    y = 3 * (1 + (p / 192) ** 3) ** (1 / 3)
    models = fit(p, np.repeat(y[None, :, None], 3, axis=2))
    assert models.formula(0).endswith("(1 + (p/192)^3)^(1/3)")
    assert models.status[0] == FitStatus.OUTSIDE
    assert str(models.growth(0)) == "O(p)"


def test_what_swells_is_linear_in_the_end_and_what_settles_is_flat():
    swell, settle = Break(BreakKind.SWELL, 100.0), Break(BreakKind.SETTLE, 100.0)
    assert swell(np.array([1.0, 1e6])) == pytest.approx([1, 1e4], rel=1e-4)
    assert settle(np.array([1.0, 1e6])) == pytest.approx([100, 1], rel=1e-4)
    assert settle(np.inf) == 1


def test_breaks_sudden_or_gradual_are_tried_whatever_the_terms_are() -> None:
    points = 2.0 ** np.arange(2, 9)
    tried = [
        {
            (str(one.kind), one.at)
            for one in hypotheses(space, points).shapes
            if one in breaks(points)
        }
        for space in (DEFAULT_SPACE, SearchSpace.of([0], [0, 1]))
    ]
    assert tried[0] == tried[1]
    assert {BreakKind.SWELL, BreakKind.SETTLE, BreakKind.BEND, BreakKind.STEP} <= {
        kind for kind, _ in tried[1]
    }
