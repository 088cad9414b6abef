"""Predictions at a value of one parameter with runs only at small values of the other."""

from __future__ import annotations

import numpy as np

from callpath_modeler.modeling import fit, slice_with_line_models
from cells import cells

P, N, LARGEST = (2, 4, 8, 16, 32, 64, 128, 256), (1e5, 2e5, 4e5, 8e5), 16
POINTS = np.array([(p, n) for n in N for p in P if n < N[-1] or p <= LARGEST], dtype=np.float64)
SEEDS = range(10)

LAWS = {
    "grows beyond those runs": lambda p, _: 1 + 0.05 * np.maximum(0, p - 40),
    "grows beyond those runs, times n": lambda p, n: n / 1e5 * (1 + 0.05 * np.maximum(0, p - 40)),
    "a step beyond those runs": lambda p, _: 1 + 0.8 * (p > 45),
    "a step beyond those runs, times n": lambda p, n: n / 1e5 * (1 + (p > 45)),
    "nothing until beyond those runs": lambda p, _: 1.0 * (p > 45),
    "divided work and a logarithm": lambda p, n: 8e-5 * n / p + 0.3 * np.log2(p),
    "a product": lambda p, n: n * np.sqrt(p),
    "a sum": lambda p, n: 0.01 * p + 1e-5 * n,
    "a constant": lambda p, _: 1.0 + 0 * p,
}


@cells("law", LAWS.values())
def test_runs_at_other_values_improve_a_slice_beyond_its_own_runs(law):
    exact = law(*POINTS.T)
    noise = np.random.default_rng(7).normal(scale=0.02, size=(len(SEEDS), len(POINTS), 2))
    values = exact[None, :, None] * np.exp(noise)
    targets = np.array([256.0, 1024.0, 4096.0])
    models, _ = slice_with_line_models(
        fit(POINTS, values), 0, np.array([1.0, N[-1]]), POINTS, values
    )
    found = models.predict(targets)
    truth = law(targets, np.full(3, N[-1]))
    held = (found.low <= truth) & (truth <= found.high)
    assert held.mean() >= 0.93
    assert np.median(np.abs(found.value / truth - 1)) < 0.03
    assert (found.high / found.low)[:, 0].max() < 1.5
