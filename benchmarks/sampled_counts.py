"""Accuracy on counts by chance, such as samples of a profiler, with known laws."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from results import Table

from callpath_modeler import modeling
from callpath_modeler.arrays import FloatArray

NOTES = """\
Each of 10 programs has 80 call paths at p = 4, 8, ..., 128. Their samples have a Poisson
distribution. The expectation at p = 4 is uniform in its logarithm between 0.5 and 50. Laws are a
constant, 1 + log2(p), p^(1/2), p, 0.7 + 0.3 p, 1/p and p^(-1/2). With other noise, the expectation
also varies by 10 % between runs. Truth: the expectation at a multiple of the largest scale. Holds:
the share of 95 % bands that contain the mean of as many new runs as were modelled. Falling: this
share for 1/p and p^(-1/2). Width: the median width of the bands, relative to the truth.
"""

_FIRST, _SCALES, _CALL_PATHS, _PROGRAMS = 4.0, 6, 80, 10
_MULTIPLES = np.array([2.0, 4.0, 16.0])
_LEAST, _MOST = 0.5, 50.0
_OTHER_NOISE = 0.1
_NEAR = 0.2


def _laws(p: FloatArray) -> FloatArray:
    """Return the laws relative to their values at the first scale, [laws, K]; falling ones last."""
    x = p / _FIRST
    return np.array([x**0, 1 + np.log2(x), x**0.5, x, 0.7 + 0.3 * x, 1 / x, x**-0.5])


_FALLING = 5
"""Number of the first law that falls."""


def table(_: Path) -> Table:
    """Measure programs with one, three and five repetitions, and with other noise."""
    lines = [
        line
        for repetitions, noise in ((1, 0.0), (3, 0.0), (5, 0.0), (5, _OTHER_NOISE))
        for line in _lines(repetitions, noise)
    ]
    head = ("repetitions", "target", "error", "within 20 %", "holds", "falling", "width")
    return Table(head, lines, range(1, len(head)))


def _lines(repetitions: int, noise: float) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each multiple of the largest scale."""
    programs = [_program(seed, repetitions, noise) for seed in range(_PROGRAMS)]
    laws, truth, measured, value, low, high = (
        np.concatenate(column) for column in zip(*programs, strict=True)
    )
    error = np.abs(value / truth - 1)
    slack = 1e-9 * measured
    holds = (low <= measured + slack) & (measured - slack <= high)
    what = f"{repetitions}{', other noise' * (noise > 0)}"
    for k, multiple in enumerate(_MULTIPLES.tolist()):
        width = float(np.median((high - low)[:, k] / truth[:, k]))
        yield (
            what,
            f"{multiple:.0f} x",
            f"{100 * float(np.median(error[:, k])):.1f} %",
            f"{100 * float((error[:, k] <= _NEAR).mean()):.1f} %",
            f"{100 * float(holds[:, k].mean()):.1f} %",
            f"{100 * float(holds[laws >= _FALLING, k].mean()):.1f} %",
            f"{width:.2f}",
        )


def _program(seed: int, repetitions: int, noise: float) -> tuple[FloatArray, ...]:
    """Return laws [n], and truth, new runs, predictions and both ends of bands, [n, targets]."""
    random = np.random.default_rng([seed, repetitions])
    points = _FIRST * 2.0 ** np.arange(_SCALES)
    every = np.concatenate([points, points[-1] * _MULTIPLES])
    of_laws = _laws(every)
    laws = random.integers(len(of_laws), size=_CALL_PATHS)
    first = np.exp(random.uniform(np.log(_LEAST), np.log(_MOST), _CALL_PATHS))
    truth = first[:, None] * of_laws[laws]
    factor = random.lognormal(-(noise**2) / 2, noise, (*truth.shape, repetitions))
    samples = random.poisson(truth[..., None] * factor).astype(float)
    models = modeling.fit(points, samples[:, :_SCALES])
    found = models.predict(every[_SCALES:])
    there = np.isfinite(found.value[:, 0])
    new = samples[:, _SCALES:].mean(axis=2)
    ahead = truth[:, _SCALES:], new, found.value, found.low, found.high
    return laws[there], *(column[there] for column in ahead)
