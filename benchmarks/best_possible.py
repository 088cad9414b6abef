"""The best possible predictions, by an oracle that knows the distribution of call paths.

The oracle knows the laws in `laws.APPLICATION` and their probabilities, the distribution of their
shares, and the noise. It does not know the law of a single call path. Its predictions are posterior
medians. A modeller that must learn all this from the measurements cannot rank better.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from laws import Draw, Fitted

from callpath_modeler.arrays import FloatArray

_CONSTANT = 0.55
_CLASSES = (
    (0.20, ((0, 1), (0, 2))),
    (0.13, ((1 / 4, 0), (1 / 3, 0), (1 / 2, 0), (1 / 3, 1))),
    (0.09, ((2 / 3, 0), (1, 0), (1, 1))),
    (0.03, ((3 / 2, 0), (2, 0))),
)
"""Probabilities of kinds of growth in ``make_app`` of ``bench_accuracy.py``, with terms (i, j)."""

_SHARES = 10 ** np.linspace(-1.3, -0.05, 100)
"""Shares of growth at the largest point there, uniform in their logarithm."""


def oracle(bench: Any, given: Draw) -> Fitted:
    """Return the predictions of the oracle; `bench` is ``bench_accuracy.py``."""
    repetitions = given.y.shape[2]
    # For uniform noise, the midrange has the smallest variance.
    centre = (given.y.min(axis=2) + given.y.max(axis=2)) / 2
    deviation = given.noise / 200 * np.sqrt(2 / ((repetitions + 1) * (repetitions + 2)))
    forms, far, believed = _forms(bench, given)
    value = np.empty((len(centre), len(given.targets)))
    for row, measured in enumerate(np.log(centre)):
        off = measured - np.log(forms)
        level = off.mean(axis=1)
        misfit = ((off - level[:, None]) ** 2).sum(axis=1)
        weight = believed * np.exp(-(misfit - misfit.min()) / (2 * deviation**2))
        value[row] = _medians(np.exp(level)[:, None] * far, weight)
    nothing = np.full_like(value, np.nan)
    lead = np.full((len(value), 2), np.nan)
    return Fitted(value, lead, nothing, nothing, np.zeros(len(value), np.bool_))


def _forms(bench: Any, given: Draw) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return laws of level 1 at points, [H, K], and targets, [H, m], and their probabilities."""
    forms, far = [np.ones((1, len(given.p)))], [np.ones((1, len(given.targets)))]
    believed = [np.array([_CONSTANT])]
    for probability, terms in _CLASSES:
        for term in terms:
            top = bench.term(given.p[-1:], *term)
            for found, places in ((forms, given.p), (far, given.targets)):
                growth = bench.term(places, *term) / top
                found.append(1 + _SHARES[:, None] * (growth - 1))
            believed.append(np.full(len(_SHARES), probability / len(terms) / len(_SHARES)))
    return np.concatenate(forms), np.concatenate(far), np.concatenate(believed)


def _medians(values: FloatArray, weight: FloatArray) -> FloatArray:
    """Return weighted medians of the columns of `values` [H, m], [m]."""
    order = values.argsort(axis=0)
    running = weight[order].cumsum(axis=0)
    middle = (running >= running[-1] / 2).argmax(axis=0)
    columns = np.arange(values.shape[1])
    return np.asarray(values[order[middle, columns], columns])
