"""Laws in two parameters, and synthetic measurements of them."""

from __future__ import annotations

from itertools import product

import numpy as np

P = (8.0, 16.0, 32.0, 64.0, 128.0)
N = (10.0, 20.0, 30.0, 40.0, 50.0)
LAWS = {
    "nothing": lambda p, n: 5 + 0 * p * n,
    "volume shared": lambda p, n: n**3 / p,
    "both at once": lambda p, n: 3 + p * np.log2(n),
    "volume and messages": lambda p, n: 1e-3 * n**3 / p + 1e-4 * n**2 * np.log2(p),
    "each alone": lambda p, n: 0.01 * n**2 + np.sqrt(p),
    "one only": lambda p, n: 1 + 1e-3 * n**3 + 0 * p,
    "the other only": lambda p, n: 2 + 0.5 * np.log2(p) + 0 * n,
}

EXCHANGES = {
    "8 * (p - 1) * n": lambda p, n: 8 * (p - 1) * n,
    "100 * (1 - p^-1) * n^2": lambda p, n: 100 * (1 - 1 / p) * n**2,
    "5000 + 8 * (p - 1) * n": lambda p, n: 5000 + 8 * (p - 1) * n,
    "300 * (p - 1) + 8 * (p - 1) * n": lambda p, n: (p - 1) * (300 + 8 * n),
    "50 * log2(p) + 200 * (1 - p^-1) * n": lambda p, n: 200 * n * (1 - 1 / p) + 50 * np.log2(p),
    "2 * (p^2 - p) * n": lambda p, n: 2 * p * (p - 1) * n,
    "1000 * p^-1 * log2(p) * n": lambda p, n: 1000 * n * np.log2(p) / p,
    "5 * p^(-2/3) * n^2 + 1 * p^-1 * n^3": lambda p, n: n**3 / p + 5 * n**2 / p ** (2 / 3),
}


def grid(*axes):
    return np.array(list(product(*axes)))


def measured(points, laws, noise=0.02, repetitions=3, seed=0):
    rng = np.random.default_rng(seed)
    exact = np.array([law(*points.T) for law in laws])
    factor = 1 + noise * rng.uniform(-0.5, 0.5, (*exact.shape, repetitions))
    return exact[..., None] * factor
