"""Accuracy on real programs at the next scale: each series is cut after every scale."""

from __future__ import annotations

from pathlib import Path

from real_series import COUNTED, HEAD, Held, joined, line, measured, predicted
from results import Table

from callpath_modeler.arrays import FloatArray

NOTES = """\
Each series of the table above is cut after each scale from the third on, and the next scale is
predicted. Suddenly: call paths that took at least 50 % longer at the last known scale, after less
than 10 % more at the one before. The cause may be a new law, one disturbed run, or the first sign
of growth. The values do not show which.
"""


_MOST = 6
"""Number of known scales from which on all have one line."""


def table(shared: Path) -> Table:
    """Measure every series.

    Raises
    ------
    AbsentError
        If the measurements are absent.
    """
    found: dict[str, list[Held]] = {"times": [], "counts": []}
    for _, metric, parts in measured(shared):
        kind = "counts" if metric in COUNTED else "times"
        found[kind] += [held for points, values in parts for held in _cut(points, values)]
    every = joined([*found["times"], *found["counts"]])
    chosen = {
        **{f"{count} scales known": every.points == count for count in range(3, _MOST)},
        f"{_MOST} or more": every.points >= _MOST,
        "all": every.points > 0,
        "all that suddenly took longer": every.sudden,
    }
    lines = [line(what, every.where(some)) for what, some in chosen.items()]
    lines += [line(f"all {kind}", joined(parts)) for kind, parts in found.items()]
    return Table(("known", "predictions", *HEAD[2:]), lines, range(1, 10))


def _cut(points: FloatArray, values: FloatArray) -> list[Held]:
    held = [predicted(points[:count], values[:, :count]) for count in range(4, len(points) + 1)]
    return [each for each in held if each]
