"""Laws of programs in several parameters: surfaces, exchanges, threads, breaks, and sums."""

from __future__ import annotations

from itertools import product

import numpy as np
import several
from several import Design, Law, M, N, P

from callpath_modeler.arrays import FloatArray

_SEEDS = (1, 2)


def _share(random: np.random.Generator) -> float:
    return float(np.exp(random.uniform(np.log(0.03), 0)))


def _surface(random: np.random.Generator, end: FloatArray) -> Law:
    share, collective = _share(random), random.choice([0, 1]) * _share(random)

    def law(points: FloatArray) -> FloatArray:
        p, n = (points / end).T
        messages = share * n**2 * p ** (-2 / 3)
        return np.asarray(n**3 / p + messages + collective * np.log2(points[:, 0]))

    return law


def _exchange(random: np.random.Generator, _: FloatArray) -> Law:
    share = _share(random)
    return lambda points: (points[:, 0] - 1) * (1 + share * points[:, 1])


def _threads(random: np.random.Generator, end: FloatArray) -> Law:
    share = _share(random)
    return lambda points: end[0, 0] / points[:, 0] * (end[0, 1] / points[:, 1] + share)


def _dearer(random: np.random.Generator, _: FloatArray) -> Law:
    place, more = float(random.choice([24, 48, 90])), random.uniform(0.3, 3)
    return lambda points: (1 + more * (points[:, 0] > place)) * points[:, 1] ** 2


def _capacity(random: np.random.Generator, _: FloatArray) -> Law:
    share, full = _share(random), random.uniform(16, 100)
    return lambda points: (1 + share * np.maximum(0, points[:, 0] / full - 1)) * points[:, 1]


def _slow_last_run(random: np.random.Generator, end: FloatArray) -> Law:
    more = random.uniform(0.2, 1.5)
    return lambda points: (1 + more * (points[:, 0] == end[0, 0])) * points[:, 1] ** 2


_GRID = np.array(list(product(P, N)))
_CUBE = np.array(list(product(P[:4], N[:4], M)))

OF_PROGRAMS = Design(
    "",
    _GRID,
    np.array([[16 * P[-1], 4 * N[-1]]]),
    _SEEDS,
    {
        "a volume and its surface": _surface,
        "an exchange of all with all": _exchange,
        "threads that share all but a part": _threads,
        "a term that costs more from some p on": _dearer,
        "growth from some p on": _capacity,
        "a last run that takes longer": _slow_last_run,
    },
)
"""Laws in two parameters."""

SUMS_OF_THREE = Design(
    "",
    _CUBE,
    np.array([[16 * P[3], 4 * N[3], 4 * M[-1]]]),
    _SEEDS,
    {"c0 + f(p) + g(n) + h(m)": several.sum_of_terms},
)
"""Sums of a term of each of three parameters."""
