"""The cost of modelling, for a thousand to a million call paths, with bands."""

from __future__ import annotations

import sys

import extrap_models
from environments import EXTRAP
from measure import TASKS, Cost, run
from results import Row
from tasks import draws

GOAL = 1000
MEMORY_GOAL = 1e9
"""Bytes."""

NOTES = """\
The figures are processor time per call path, for modelling five repetitions at 5 or 8 points and
predicting one target with its band. Extra-P uses its default modeler on the first 500 call paths,
without bands, because it has none. Everything runs on one core. The resident set is the largest of
the process, with the values: five repetitions at 8 points of 10^6 call paths alone are 320 MB.
"""

_SIZES = (1_000, 10_000, 100_000, 1_000_000)
_POINTS = (5, 8)
_COMPARED = 500
"""Number of rows for Extra-P."""


def rows() -> list[Row]:
    """Measure, and return the rows of the table."""
    found = []
    for count in _POINTS:
        points = draws.points(count)
        peer = extrap_models.cost(points, draws.draw(_COMPARED, count), [16 * points[-1]])
        for size in _SIZES:
            ours = _fitted(size, count)
            found.append(_speed(f"{size:,} call paths, {count} points", ours, peer))
        found.append(_memory(f"{_SIZES[-1]:,} call paths, {count} points", ours))
    return found


def _fitted(size: int, count: int) -> Cost:
    # The first calls include imports and page faults, which do not matter for a million rows.
    times = 1 if size == _SIZES[-1] else 3
    return run([sys.executable, TASKS / "fit_ours.py", str(size), str(count), str(times)])


def _speed(what: str, ours: Cost, peer: Cost) -> Row:
    here, there = (1000 * cost.report["seconds"] / cost.report["rows"] for cost in (ours, peer))
    return Row(
        f"fit: {what}, one model",
        f"{here:.3g} ms",
        f"{there:.3g} ms {EXTRAP.name}",
        there / here,
        f"≥ {GOAL} x",
        there / here >= GOAL,
    )


def _memory(what: str, ours: Cost) -> Row:
    return Row(
        f"fit: {what}, largest resident set",
        f"{ours.resident / 1e6:.0f} MB",
        goal=f"< {MEMORY_GOAL / 1e6:.0f} MB",
        met=ours.resident < MEMORY_GOAL,
    )
