"""Laws of algorithms in the problem size: sums of integer powers, some with a logarithm."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.modeling import fit

N = 64 * 2.0 ** np.arange(6)
LAWS = {
    "n^2 + n + c": ((2, 0), (1, 0), (0, 0)),
    "n^3 + n + c": ((3, 0), (1, 0), (0, 0)),
    "n^3 + n^2 + c": ((3, 0), (2, 0), (0, 0)),
    "n^3 log n + n^3": ((3, 1), (3, 0)),
}
# Cubes have a smaller prior, because programs do not grow as p^3 of their processes.
HELD = {"n^2 + n + c": 0.8, "n^3 + n + c": 0.7, "n^3 + n^2 + c": 0.6}


def _law(law: str) -> tuple[np.ndarray, np.ndarray]:
    """Return twenty laws at points and beyond; the first term is 20 to 90 % at the largest size."""
    rng, reach = np.random.default_rng(7), np.append(N, 16 * N[-1])
    parts = [(reach / N[-1]) ** i * (np.log2(reach) / np.log2(N[-1])) ** j for i, j in LAWS[law]]
    first = rng.uniform(0.2, 0.9, (20, 1))
    shares = np.hstack([first, (1 - first) * rng.dirichlet(np.ones(len(parts) - 1), 20)])
    every = shares @ np.array(parts)
    return every[:, :-1], every[:, -1]


def _predicted(law: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Predict the laws separately, without other call paths that support such laws."""
    y, truth = _law(law)
    noisy = y[:, :, None] * np.exp(0.02 * np.random.default_rng(8).standard_normal((20, 6, 3)))
    found = [fit(N, row[None]).predict([16 * N[-1]]) for row in noisy]
    value, low, high = (
        np.array([getattr(each, name)[0, 0] for each in found]) for name in ("value", "low", "high")
    )
    return value, low, high, truth


@pytest.mark.parametrize("law", list(HELD))
def test_bands_hold_sums_of_whole_powers(law):
    _, low, high, truth = _predicted(law)
    assert ((low <= truth) & (truth <= high)).mean() >= HELD[law]


def test_a_transform_and_what_else_takes_each_number_are_met():
    value, _, _, truth = _predicted("n^3 log n + n^3")
    assert np.median(np.abs(np.log(value / truth))) < 0.05


def test_a_square_beside_a_constant_is_told_as_before():
    rng = np.random.default_rng(9)
    y = rng.uniform(0.1, 0.9, (20, 1)) + (N / N[-1]) ** 2
    noisy = y[:, :, None] * np.exp(0.02 * rng.standard_normal((20, 6, 3)))
    far = fit(N, noisy).predict([16 * N[-1]])
    truth = y[:, 0] - (N[0] / N[-1]) ** 2 + 256
    assert np.median(np.abs(far.value[:, 0] / truth - 1)) < 0.05


def test_sums_of_whole_powers_are_told_by_exact_values():
    y = 3e-9 * N**3 + 2e-6 * N**2 + 0.01
    assert fit(N, y[None, :, None]).formula(0, "n") == "0.01 + 2e-06 * n^2 + 3e-09 * n^3"
