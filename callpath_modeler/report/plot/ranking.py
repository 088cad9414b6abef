"""Plot of a ranking: measured values at the largest scale, and bands at the target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from callpath_modeler.analysis.rank import Ranking
from callpath_modeler.analysis.trust import marks_text
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.report.columns import band_title
from callpath_modeler.report.curve import value_ticks
from callpath_modeler.report.headline import at_text
from callpath_modeler.report.plot.style import (
    BLACK,
    GREY,
    SKY,
    SMALL,
    TEXT,
    VERMILLION,
    WIDTH,
    brief,
    label,
    set_ticks,
)
from callpath_modeler.report.ranking_text import distinct_names, remainder
from callpath_modeler.units import counted, parameter_value, quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW, _BESIDE = 0.27, 0.85
"""Height of a row, and of the rest of the figure, in inches."""
_DECADES = 18.0
"""Largest number of decades of the axis; smaller values are drawn at its edge."""
_WIDER = 1.25
_SIGN: dict[str, Any] = {"linestyle": "none", "markersize": 4, "markeredgewidth": 0.6, "zorder": 3}


@dataclass(frozen=True, slots=True, eq=False)
class RankingPlot:
    """Contents of the plot of a ranking, [rows]; all values in base units, NaN = not known.

    Attributes
    ----------
    ranking : the ranking
    names : call paths, then "N others" and the total
    measured : at the largest scale
    value, low, high : at the target
    predicted : what models say of the target
    trust : marks, or ""
    sums : how many of the last rows are sums
    """

    ranking: Ranking
    names: list[Sequence[str]]
    measured: FloatArray
    value: FloatArray
    low: FloatArray
    high: FloatArray
    predicted: FloatArray
    trust: list[str]
    sums: int

    @classmethod
    def of(cls, ranking: Ranking, rows: IntArray) -> RankingPlot:
        """Return the plot of some ranked call paths.

        Raises
        ------
        UsageError
            If the target is infinite.
        DataError
            If nothing is above zero.
        """
        if np.isinf(ranking.target):
            raise UsageError(
                "no plot of a ranking at infinity: there are no values, only growth",
                hint="--target with a number",
            )
        names: list[Sequence[str]] = [
            *distinct_names(ranking.fitted.experiment.tree, rows, full=False)
        ]
        columns = [column[rows] for column in _columns(ranking)]
        sums = _sums(ranking, remainder(ranking, rows))
        names += [[name] for name, _ in sums]
        rest = np.array([values for _, values in sums]).reshape(len(sums), len(columns))
        measured, value, low, high, said = (
            np.append(column, more) for column, more in zip(columns, rest.T, strict=True)
        )
        marks = [*map(marks_text, ranking.trust[rows].tolist()), *[""] * len(sums)]
        found = cls(ranking, names, measured, value, low, high, said, marks, len(sums))
        if not (found.value > 0).any():
            raise DataError(
                f"nothing to plot: {ranking.fitted.metric.name} is zero at the target",
                hint="choose another metric with -m, or another --target",
            )
        return found

    @property
    def height(self) -> float:
        """Inches of the figure."""
        return _ROW * len(self.names) + _BESIDE

    @property
    def signs(self) -> Iterator[tuple[FloatArray, str, dict[str, Any]]]:
        """Values with their names and signs."""
        ranking, fitted = self.ranking, self.ranking.fitted
        largest, target = (
            f"{fitted.parameter} = {parameter_value(at)}"
            for at in (fitted.points[-1], ranking.target)
        )
        if not (ranking.repetitions and largest == target):
            yield self.measured, f"measured at {largest}", {"marker": "o", "color": BLACK}
        sign = {"marker": "D", "color": VERMILLION}
        yield self.value, f"{ranking.basis} at {target}", sign
        if ranking.repetitions:
            yield self.predicted, "predicted", {**sign, "markerfacecolor": "none"}

    @property
    def limits(self) -> tuple[float, float]:
        """Ends of the axis."""
        shown = np.concatenate([values for values, _, _ in self.signs])
        shown = shown[np.isfinite(shown) & (shown > 0)]
        top = float(max(shown.max(), np.nanmax(self.high, initial=0.0, where=self.high < np.inf)))
        # A band that reaches down to nearly nothing must not press the values into one line.
        return max(float(shown.min()), top / 10**_DECADES) / _WIDER, top * _WIDER


def _columns(ranking: Ranking) -> list[FloatArray]:
    predicted = ranking.predicted.value
    return [ranking.at_largest, ranking.value, ranking.low, ranking.high, predicted]


def _sums(
    ranking: Ranking, others: IntArray
) -> list[tuple[str, tuple[float, float, float, float, float]]]:
    """Return the sum of the call paths without a row, and the total; both as columns."""
    if not ranking.fitted.metric.additive:
        return []
    said = ranking.predicted_total if ranking.run_time is None else ranking.predicted_run_time
    total = (ranking.program_at_largest, *ranking.program_total, said)
    sums = [("total", total)]
    if len(others):
        largest, value, _, _, said = (float(np.nansum(c[others])) for c in _columns(ranking))
        sums.insert(0, (counted(len(others), "other"), (largest, value, np.nan, np.nan, said)))
    return sums


def draw_ranking(axes: Axes, plot: RankingPlot) -> None:
    """Draw one row per call path, the costliest at the top."""
    ranking, (left, right) = plot.ranking, plot.limits
    fitted, count = ranking.fitted, len(plot.names)
    places = np.arange(count, dtype=float)
    axes.set_xscale("log")
    axes.set_xlim(left, right)
    axes.set_ylim(count - 0.5, -0.65)
    axes.yaxis.set_visible(False)
    axes.spines["left"].set_visible(False)
    ticks, unit = value_ticks(left, right), fitted.metric.unit
    axes.grid(axis="x", color="#e8e8e8", linewidth=0.5)
    axes.set_axisbelow(True)
    set_ticks(axes, "x", ticks, [quantity(tick, unit) for tick in ticks], WIDTH - 0.2)
    _draw_names(axes, plot)
    low, high = (np.clip(ends, left, right) for ends in (plot.low, plot.high))
    banded = np.isfinite(low) & np.isfinite(high)
    axes.barh(places[banded] + 0.2, high[banded] - low[banded], left=low[banded], height=0.3,
              color=SKY, linewidth=0, zorder=1, label=band_title(ranking))  # fmt: skip
    is_off = False
    for values, name, style in plot.signs:
        known = np.isfinite(values)
        off = known & (values < left)
        axes.plot(values[known & ~off], places[known & ~off] + 0.2, label=label(name), **_SIGN,
                  **style)  # fmt: skip
        if off.any():
            is_off, at_edge = True, {**style, "marker": "<", "clip_on": False}
            axes.plot(np.full(int(off.sum()), left), places[off] + 0.2, **_SIGN, **at_edge)
    if is_off:
        axes.plot([], [], marker="<", color=GREY, label="zero, or left of the axis", **_SIGN)
    if plot.sums:
        axes.axhline(count - plot.sums - 0.5, color=GREY, linewidth=0.5)
    held = f", {at_text(fitted, ranking.target)}" if fitted.held else ""
    kind = "inclusive" if ranking.inclusive else "exclusive"
    how = fitted.experiment.reduction.words
    metric = ", ".join(part for part in (fitted.metric.name, kind, how) if part)
    axes.set_xlabel(brief([metric + held], WIDTH - 0.2))
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3 - is_off, handlelength=1.2,
                columnspacing=1.0, borderpad=0.1)  # fmt: skip


def _draw_names(axes: Axes, plot: RankingPlot) -> None:
    """Write names to the left above their rows, and marks of trust to the right."""
    line = axes.get_yaxis_transform()
    for place, (names, trust) in enumerate(zip(plot.names, plot.trust, strict=True)):
        at = place - 0.06
        text = brief(names, WIDTH - 0.7)
        axes.text(0.0, at, text, transform=line, va="bottom", fontsize=TEXT)
        axes.text(1.0, at, label(trust), transform=line, va="bottom", ha="right", fontsize=SMALL)
