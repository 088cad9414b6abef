"""The choice of the next run: the advice against the next power of two, for the same core-hours."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from real_series import measured
from results import Table

import callpath_modeler as cpm
from callpath_modeler.analysis.advise import advise, band_at
from callpath_modeler.arrays import FloatArray
from callpath_modeler.errors import DataError
from callpath_modeler.fitted import Fitted

NOTES = """\
Sorts of 2 to 1024 processes, strong scaling. The rule of the advice was chosen on every second
size, and the others were held back. The runs at 2, 4 and 8 are known.
Budgets are 1.7 times the cost of all scales up to 32, 64 or 128. "Next" runs the next power of two
while the budget allows it. The advice runs what `Advice.best` chooses. Error: |ln(predicted /
measured)| of the sum of all call paths at 1024. Band: upper over lower end, geometric mean.
"""

_TARGET, _KNOWN, _SCALES = 1024, (2, 4, 8), (16, 32, 64, 128, 256, 512)
_BUDGETS, _SURPLUS = (32, 64, 128), 1.7
_SERIES = ("samplesort, strong", "mergesort, strong", "bitonic, strong")
_FINITE = 1e30
"""A budget for `Advice.best`: only affordable scales are offered."""

Choose = Callable[[Fitted, Sequence[int], dict[int, float], float], int | None]


def table(shared: Path) -> Table:
    """Measure both policies.

    Raises
    ------
    AbsentError
        If the measurements are absent.
    """
    results: dict[tuple[str, str], list[tuple[float, float, int]]] = {}
    for sizes, points, values in _series(shared):
        cost = {int(p): p * t for p, t in zip(points, _totals(values), strict=True)}
        for last in _BUDGETS:
            budget = _SURPLUS * sum(cost[p] for p in _SCALES if p <= last)
            for name, choose in _POLICIES.items():
                found = _after(points, values, cost, budget, choose)
                results.setdefault((sizes, name), []).append(found)
    rows = []
    for (sizes, name), found in results.items():
        errors, bands, runs = (np.array(each) for each in zip(*found, strict=True))
        rows.append((sizes, name, str(len(found)), f"{errors.mean():.2f}",
                     f"{np.median(errors):.2f}", f"{np.exp(bands.mean()):.0f}",
                     f"{runs.mean():.1f}"))  # fmt: skip
    head = ("sizes", "policy", "cuts", "mean error", "median error", "band", "runs")
    return Table(head, rows, range(2, 7))


def _series(shared: Path) -> Iterator[tuple[str, FloatArray, FloatArray]]:
    """Yield points and values of each size, those of the rule first."""
    chosen = [
        parts for series, what, parts in measured(shared)
        if series.name in _SERIES and what == series.metrics[0]
    ]  # fmt: skip
    for first, sizes in enumerate(("of the rule", "held back")):
        for parts in chosen:
            for points, values in parts[first::2]:
                yield sizes, points, values


def _totals(values: FloatArray) -> FloatArray:
    return np.asarray(np.nansum(np.nanmean(values, axis=2), axis=0))


def _after(
    points: FloatArray,
    values: FloatArray,
    cost: dict[int, float],
    budget: float,
    choose: Choose,
) -> tuple[float, float, int]:
    """Return error, logarithm of the band, and number of runs when the budget is used."""
    known, left = list(_KNOWN), budget
    while True:
        fitted = _fitted(points, values, known)
        affordable = [p for p in _SCALES if p not in known and cost[p] <= left]
        chosen = choose(fitted, affordable, cost, left) if affordable else None
        if chosen is None:
            break
        known.append(chosen)
        left -= cost[chosen]
    value, low, high = band_at(fitted, _TARGET)
    truth = _totals(values)[list(points).index(_TARGET)]
    band = math.log(min(high / low, 1e6)) if low > 0 else math.log(1e6)
    return abs(math.log(value / truth)), band, len(known) - len(_KNOWN)


def _fitted(points: FloatArray, values: FloatArray, known: Sequence[int]) -> Fitted:
    import pandas as pd

    rows = [
        {"callpath": f"main/f{row}", "p": int(p), "time": value}
        for k, p in enumerate(points) if int(p) in known
        for row in range(len(values)) for value in values[row, k] if math.isfinite(value)
    ]  # fmt: skip
    return cpm.fit(cpm.from_frame(pd.DataFrame(rows), parameters=["p"]), "time")


def _next(
    fitted: Fitted, affordable: Sequence[int], _cost: dict[int, float], _left: float
) -> int | None:
    """Return the next power of two above the largest run, if it is affordable."""
    following = 2 * int(fitted.points[-1])
    return following if following in affordable else None


def _advised(
    fitted: Fitted, affordable: Sequence[int], cost: dict[int, float], _left: float
) -> int | None:
    """Return the scale that the advice chooses."""
    try:
        best = advise(fitted, _TARGET, affordable, repetitions=1).best(_FINITE)
    except DataError:
        return max(affordable, key=cost.__getitem__)
    return None if best is None else int(best.scale)


def _largest(
    _fitted: Fitted, affordable: Sequence[int], _cost: dict[int, float], _left: float
) -> int | None:
    """Return the largest affordable scale."""
    return max(affordable)


_POLICIES: dict[str, Choose] = {
    "next power of two": _next,
    "largest affordable scale": _largest,
    "advice": _advised,
}
