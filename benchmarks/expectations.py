"""Rates of wrong verdicts on expectations: true ones that break, and false ones that hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from results import Table

from callpath_modeler.modeling import Growth, fit, parse_growth
from callpath_modeler.modeling.expected_growth import (
    MPI_SPACE,
    DeviationMatch,
    ExpectedGrowth,
    judge,
    validate,
)

POINTS = np.array([8.0, 16.0, 32.0, 64.0, 128.0])
REPETITIONS = 5
SEEDS = range(5)
LAWS = {"1": 400, "log p": 200, "p^(1/2)": 200, "p": 200}
"""Growths of the call paths of an application, and their numbers."""
TOO_LITTLE = {"log p": "1", "p^(1/2)": "log p", "p": "log p"}
"""The false expectation for each growth."""
NOISES = (0.02, 0.1, 0.3)

NOTES = """\
The applications have 1,000 call paths: 400 are constant, and 200 each grow as log p, p^(1/2) and p.
The growth is 20 to 95 % of the value at the largest of five scales from 8 to 128. There are five
repetitions and five seeds. The noise is a factor 1 + U(-1/2, 1/2) times the percentage. Each call
path is checked against its own growth, with the default deviation limit, and against a slower one:
O(1) for log p and O(log p) for the others. The published method gets the mean of the repetitions
and the search space declared for MPI.
"""


def table(_: Path) -> Table:
    """Measure, and return the table."""
    head = ("noise", "expectation", "method", "right", "wrong", "does not say")
    return Table(head, list(_lines()), range(3, 6))


def _lines() -> Iterator[tuple[str, ...]]:
    for noise in NOISES:
        counts = sum(_counts(noise, seed) for seed in SEEDS)
        for row, what in enumerate(("is true", "is not")):
            for column, method in enumerate(("published", "verdict")):
                right, wrong, open_ = counts[row, column] / counts[row, column].sum()
                shares = (f"{100 * share:.1f} %" for share in (right, wrong, open_))
                yield f"{100 * noise:g} %", what, method, *shares


def _counts(noise: float, seed: int) -> npt.NDArray[np.int64]:
    """Count right, wrong and undecided verdicts, [expectation is true, method, verdict]."""
    random = np.random.default_rng(seed)
    names = np.repeat(list(LAWS), list(LAWS.values()))
    values = np.array([_law(name, random) for name in names])
    scatter = random.uniform(-0.5, 0.5, (*values.shape, REPETITIONS))
    values = values[..., None] * (1 + noise * scatter)
    models = fit(POINTS, values)
    counts = np.zeros((2, 2, 3), dtype=np.int64)
    for name in LAWS:
        rows = np.flatnonzero(names == name)
        for which, expected in enumerate((name, TOO_LITTLE.get(name))):
            if expected is None:
                continue
            expectation = ExpectedGrowth.of(_growth(expected))
            found = validate(POINTS, values[rows].mean(axis=2), expectation, MPI_SPACE)
            matched = int((found.match > DeviationMatch.NONE).sum())
            verdicts = judge(models.take(rows), expectation.limits)
            kept, broken = int(verdicts.kept.sum()), int(verdicts.broken.sum())
            pairs = np.array([[matched, len(rows) - matched], [kept, broken]])
            counts[which, :, :2] += pairs[:, ::-1] if which else pairs
            counts[which, 1, 2] += len(rows) - kept - broken
    return counts


def _law(name: str, random: np.random.Generator) -> npt.NDArray[np.float64]:
    """Draw one law of a growth, plus a constant."""
    shape = _growth(name)(POINTS)
    share = random.uniform(0.2, 0.95)
    return 10 * (1 - share + share * shape / shape[-1])


def _growth(text: str) -> Growth:
    return parse_growth(text).growth
