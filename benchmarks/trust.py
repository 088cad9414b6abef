"""Calibration of marks of trust: closeness of predictions, and coverage of bands."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import accuracy
import laws
import numpy as np
import real_series
from laws import MULTIPLES
from numpy.typing import NDArray
from real_series import Held, Series, joined, measured, predicted
from results import Table

from callpath_modeler.analysis.uncertain import MARKS, WITHIN, marks_of_trust
from callpath_modeler.arrays import FloatArray

NOTES = """\
The figures are shares of predictions within the factor that their marks state, by number of marks.
Laws: the laws of the table of bands, predicted at 4 and at 16 times the largest point. Real
programs: the largest scale of every series below, predicted from three or more others. The truth is
the median of the measurements there. Values without a deviation, mostly counts, are excluded.
"""

HELD_NOTES = """\
Every call path is modelled without the largest scale, as in the table of real programs. This table
has more series: the profiles of this project, a drawn program, and two programs over sizes. The
unit of a metric distinguishes times from counts. Marked: predictions with three or four marks of
trust. Outside: the share of marked predictions whose 95 % band does not contain the median of the
measurements. By a factor of 2: the number of these that are so far from the nearer end. Width: the
median ratio of the upper to the lower end of bands. Right: the band contains the median of the
measurements, and the prediction is within 20 % of it.
"""

_TIMES = "time", "latency", "CPUTIME"
_MARKED = 3
_FAR_OUT = 2.0
_NEAR = 0.2

_PROFILES = Path(__file__).resolve().parents[1] / "sample_profiles"
_COUNTS = "time", "visits", "bytes_sent", "bytes_received"
_MORE = (
    *(Series("samples", name, str(_PROFILES / name), _COUNTS) for name in ("lulesh", "snap")),
    Series("drawn", "drawn", "hpctoolkit_synthetic/scal2000", ("CPUTIME",)),
    Series("sizes", "kernels", "third_party/cubex/extrap_tests/single_parameter", ("time",)),
    Series("sizes", "LULESH", "third_party/extrap_text/lulesh-cpu_demangled.extra-p", ("time",)),
)

_SAYS = ("●●●●", "●●●○", "●●○○", "●○○○", "○○○○")


@dataclass(frozen=True, slots=True)
class _Seen:
    """Marks of predictions, [n], and the factors of their errors, [n]."""

    marks: NDArray[np.int8]
    factor: FloatArray

    def cells(self, marks: int) -> tuple[str, str]:
        """Return the number of predictions with these marks, and the share of close ones."""
        chosen = self.marks == marks
        if not marks or not chosen.any():
            return f"{chosen.mean():.0%}", ""
        return (
            f"{chosen.mean():.0%}",
            f"{(self.factor[chosen] <= WITHIN[MARKS - marks]).mean():.0%}",
        )


def table(shared: Path) -> Table:
    """Measure marks on laws and on real programs.

    Raises
    ------
    AbsentError
        If the protocol or the measurements are absent.
    """
    drawn, real = _of_laws(shared), _of_programs(shared)
    lines = []
    for text, marks in zip(_SAYS, range(MARKS, -1, -1), strict=True):
        claim = f"a factor of {WITHIN[MARKS - marks]:g}" if marks else f"more than {WITHIN[-1]:g}"
        lines.append((text, claim, *drawn.cells(marks), *real.cells(marks)))
    head = ("marks", "the band is within", "laws", "as close", "real programs", "as close")
    return Table(head, lines, range(2, 6))


def held_back(shared: Path) -> Table:
    """Measure how often bands of predictions with three or four marks miss the measurement.

    Raises
    ------
    AbsentError
        If the measurements are absent.
    """
    found: dict[str, list[Held]] = {}
    for series, what, parts in measured(shared, _MORE):
        kind = "times" if what.startswith(_TIMES) else "counts"
        held = [predicted(points, values, peer=False) for points, values in parts]
        for name in (kind, f"{kind}: {series.source}"):
            found.setdefault(name, []).extend(each for each in held if each)
    lines = [_marked(what, joined(found[what])) for what in sorted(found) if found[what]]
    head = ("metrics", "call paths", "marked", "outside", "by a factor of 2")
    return Table((*head, "width, marked", "all", "right", "of these marked"), lines, range(1, 9))


def _marked(what: str, held: Held) -> tuple[str, ...]:
    marked, inside = held.marks >= _MARKED, held.inside
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.maximum(held.low / held.truth, held.truth / held.high)
        width = np.where(held.low == held.high, 1.0, held.high / held.low)
    out = marked & ~inside
    right = inside & (held.error(held.ours) <= _NEAR)
    return (
        what,
        str(len(inside)),
        f"{marked.mean():.1%}",
        f"{out.sum() / max(marked.sum(), 1):.1%}",
        str((out & ~(off <= _FAR_OUT)).sum()),
        f"{np.nanmedian(width[marked]):.2f}" if marked.any() else "",
        f"{np.nanmedian(width):.2f}",
        str(right.sum()),
        f"{(right & marked).sum() / max(right.sum(), 1):.1%}",
    )


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
