"""The plot of a ranking: bands at the target beside what was measured at the largest scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.rank import Ranking
from callpath_modeler.analysis.trust import marks_text
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.report.answer import at_text
from callpath_modeler.report.columns import band_title
from callpath_modeler.report.curve import value_ticks
from callpath_modeler.report.layout import shorten
from callpath_modeler.report.plot.style import (
    BLACK,
    GREY,
    SKY,
    SMALL,
    TEXT,
    VERMILLION,
    WIDTH,
    label,
    letters,
    set_ticks,
)
from callpath_modeler.report.ranking import distinct_names, remainder
from callpath_modeler.units import counted, parameter_value, quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW, _BESIDE = 0.27, 0.85
"""Inches of a row, and of everything else."""
_DECADES = 9.0
"""Most decades of the axis; smaller values are at its edge."""
_WIDER = 1.25


@dataclass(frozen=True, slots=True, eq=False)
class RankingPlot:
    """Contents of the plot of a ranking, [rows]; all values in base units, NaN = not known.

    Attributes
    ----------
    ranking : what is shown
    names : call paths, then what the others cost together, and the total
    measured : at the largest scale
    value, low, high : at the target
    trust : marks, or ""
    sums : how many of the last rows are sums
    """

    ranking: Ranking
    names: list[Sequence[str]]
    measured: NDArray[np.float64]
    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    trust: list[str]
    sums: int

    @classmethod
    def of(cls, ranking: Ranking, rows: NDArray[np.intp]) -> RankingPlot:
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
        columns = [ranking.at_largest, ranking.value, ranking.low, ranking.high]
        parts = [column[rows].tolist() for column in columns]
        sums: list[tuple[str, tuple[float, ...]]] = []
        if ranking.fitted.metric.additive:
            others = remainder(ranking, rows)
            if len(others):
                both = (float(np.nansum(column[others])) for column in columns[:2])
                sums.append((counted(len(others), "other"), (*both, np.nan, np.nan)))
            sums.append(("total", (ranking.total_at_largest, *ranking.total)))
        for name, values in sums:
            names.append([name])
            for part, amount in zip(parts, values, strict=True):
                part.append(amount)
        marks = [*map(marks_text, ranking.trust[rows].tolist()), *[""] * len(sums)]
        measured, value, low, high = map(np.array, parts)
        found = cls(ranking, names, measured, value, low, high, marks, len(sums))
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
    def limits(self) -> tuple[float, float]:
        """Ends of the axis."""
        every = np.concatenate([self.measured, self.value, self.low, self.high])
        shown = every[np.isfinite(every) & (every > 0)]
        top = float(shown.max())
        return max(float(shown.min()), top / 10**_DECADES) / _WIDER, top * _WIDER


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
    largest, target = (
        f"{fitted.parameter} = {parameter_value(at)}" for at in (fitted.points[-1], ranking.target)
    )
    signs: tuple[tuple[NDArray[np.float64], str, dict[str, Any]], ...] = (
        (plot.measured, f"measured at {largest}", {"marker": "o", "color": BLACK}),
        (plot.value, f"{ranking.basis} at {target}", {"marker": "D", "color": VERMILLION}),
    )
    for values, name, style in signs:
        known = np.isfinite(values)
        ends = np.clip(values[known], left, right)
        off = values[known] < left
        axes.plot(ends[~off], places[known][~off] + 0.2, linestyle="none", markersize=4,
                  markeredgewidth=0, zorder=3, label=label(name), **style)  # fmt: skip
        if off.any():
            axes.plot(ends[off], places[known][off] + 0.2, linestyle="none", markersize=4,
                      clip_on=False, zorder=3, label=label(f"{name}: below the axis"),
                      **{**style, "marker": "<"})  # fmt: skip
    if plot.sums:
        axes.axhline(count - plot.sums - 0.5, color=GREY, linewidth=0.5)
    held = f", {at_text(fitted, ranking.target)}" if fitted.held else ""
    kind = "inclusive" if ranking.inclusive else "exclusive"
    how = fitted.experiment.reduction.words
    metric = ", ".join(part for part in (fitted.metric.name, kind, how) if part)
    axes.set_xlabel(label(shorten([metric + held], letters(WIDTH - 0.2))))
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, handlelength=1.2,
                columnspacing=1.0, borderpad=0.1)  # fmt: skip


def _draw_names(axes: Axes, plot: RankingPlot) -> None:
    """Write names to the left above their rows, and marks of trust to the right."""
    line = axes.get_yaxis_transform()
    room = letters(WIDTH - 0.2) - 8
    for place, (names, trust) in enumerate(zip(plot.names, plot.trust, strict=True)):
        at = place - 0.06
        text = label(shorten(names, room))
        axes.text(0.0, at, text, transform=line, va="bottom", fontsize=TEXT)
        axes.text(1.0, at, label(trust), transform=line, va="bottom", ha="right", fontsize=SMALL)
