"""What marks of trust are worth: how often a prediction is as close as its marks say."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import accuracy
import laws
import numpy as np
import real_series
from laws import MULTIPLES
from numpy.typing import NDArray
from results import Table

from callpath_modeler.analysis.trust import MARKS, WITHIN, marks_of_trust

FloatArray = NDArray[np.float64]

NOTES = """\
Of the predictions with so many marks, the share that is within the factor which the marks stand
for. Laws: those of the table of bands, predicted at 4 and at 16 times the largest point. Real
programs: the largest scale of every series below, predicted from the others, three of them or more,
against the median of the measurements there; values without a deviation, counts as a rule, are left
out.
"""

_SAYS = ("●●●●", "●●●○", "●●○○", "●○○○", "○○○○")


@dataclass(frozen=True, slots=True)
class _Seen:
    """Predictions: their marks, [n], and by which factor they were off, [n]."""

    marks: NDArray[np.int8]
    factor: FloatArray

    def cells(self, marks: int) -> tuple[str, str]:
        """Return how many have so many marks, and how many of these are as close as they say."""
        chosen = self.marks == marks
        if not marks or not chosen.any():
            return f"{chosen.mean():.0%}", ""
        return (
            f"{chosen.mean():.0%}",
            f"{(self.factor[chosen] <= WITHIN[MARKS - marks]).mean():.0%}",
        )


def table(shared: Path) -> Table:
    """Measure both.

    Raises
    ------
    AbsentError
        If the protocol or the measurements are not there.
    """
    drawn, real = _of_laws(shared), _of_programs(shared)
    lines = []
    for text, marks in zip(_SAYS, range(MARKS, -1, -1), strict=True):
        claim = f"a factor of {WITHIN[MARKS - marks]:g}" if marks else f"more than {WITHIN[-1]:g}"
        lines.append((text, claim, *drawn.cells(marks), *real.cells(marks)))
    head = ("marks", "the band is within", "laws", "as close", "real programs", "as close")
    return Table(head, lines, range(2, 6))


def _of_laws(shared: Path) -> _Seen:
    fits = accuracy.fitted(shared, laws.ours)
    places = [MULTIPLES.index(4), MULTIPLES.index(16)]
    parts = [
        _seen(*(each[:, places].ravel() for each in (got.value, got.low, got.high, drawn.truth)))
        for scenario in accuracy.normal_forms()
        for seed in accuracy.SEEDS
        for drawn, got in fits(scenario, seed)
    ]
    return _joined(parts)


def _of_programs(shared: Path) -> _Seen:
    found = []
    for _, _, held in real_series.kept_back(shared):
        some = held.where((held.low < held.high) & (held.truth > 0))
        found.append(_seen(some.ours, some.low, some.high, some.truth))
    return _joined(found)


def _seen(value: FloatArray, low: FloatArray, high: FloatArray, truth: FloatArray) -> _Seen:
    return _Seen(marks_of_trust(value, low, high), np.maximum(value / truth, truth / value))


def _joined(parts: list[_Seen]) -> _Seen:
    return _Seen(
        np.concatenate([part.marks for part in parts]),
        np.concatenate([part.factor for part in parts]),
    )
