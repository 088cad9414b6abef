"""Plots of efficiency, excess work and rankings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from callpath_modeler.analysis.answer import Ranking
from callpath_modeler.analysis.efficiency_factors import PopFactor
from callpath_modeler.analysis.excess_work import NOTICEABLE
from callpath_modeler.analysis.uncertain import marks_text
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.report import model_plot
from callpath_modeler.report.columns import band_title
from callpath_modeler.report.curve import value_ticks
from callpath_modeler.report.efficiency_text import EfficiencyView, label_of
from callpath_modeler.report.excess_text import ExcessView
from callpath_modeler.report.headline import at_text
from callpath_modeler.report.outlined_view import line_name
from callpath_modeler.report.ranking_text import distinct_names, remainder
from callpath_modeler.studies.isoefficiency import Isoefficiency
from callpath_modeler.units import counted, parameter_value, percent, quantity, setting_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


HEIGHT = 2.9
"""Inches of the figure."""
_LOOKS = {
    PopFactor.GLOBAL: (model_plot.BLACK, "s", "-"),
    PopFactor.PARALLEL: (model_plot.BLUE, "o", "-"),
    PopFactor.PROCESSES: (model_plot.BLUE, "v", "--"),
    PopFactor.BALANCE: ("#E69F00", "^", "-"),
    PopFactor.COMMUNICATION: (model_plot.VERMILLION, "D", "-"),
    PopFactor.THREADS: ("#CC79A7", "v", "--"),
    PopFactor.SERIAL: ("#CC79A7", "<", ":"),
    PopFactor.REGIONS: ("#CC79A7", ">", ":"),
    PopFactor.SCALABILITY: ("#009E73", "P", "-"),
    PopFactor.INSTRUCTIONS: (model_plot.GREY, "1", ":"),
    PopFactor.IPC: (model_plot.GREY, "2", ":"),
    PopFactor.FREQUENCY: (model_plot.GREY, "3", ":"),
    PopFactor.UTILISATION: (model_plot.GREY, "s", "-."),
    PopFactor.OVERLAP: (model_plot.GREY, "o", "-."),
}
"""Colour, marker and line of each factor; colours come from Okabe and Ito."""
_ROOM = 1.02
_LENGTH = 3.0
"""Inches of the horizontal axis, about."""


def draw_efficiency(axes: Axes, shown: EfficiencyView) -> None:
    """Draw one line per factor of the program; a bar at the target is its band."""
    found = shown.efficiency
    scales = np.array([estimate.scale for estimate in found.estimates])
    measured = np.array([not estimate.is_predicted for estimate in found.estimates])
    for factor in found.factors:
        colour, marker, line = _LOOKS[factor]
        values = np.array([shown.value(estimate, factor) for estimate in found.estimates])
        axes.plot(scales, values, color=colour, marker=marker, linestyle=line, markersize=3.2,
                  linewidth=0.9, label=label_of(factor))  # fmt: skip
        for place in np.flatnonzero(~measured & ~np.isnan(values)).tolist():
            low, high = shown.band(found.estimates[place], factor)
            axes.plot([scales[place]] * 2, [low, high], color=colour, linewidth=2.4, alpha=0.4)
    if (scales > 0).all() and len(scales) > 1:
        axes.set_xscale("log", base=2)
    ends: list[float] = scales.tolist()
    # Labels of the ends do not give way.
    ends = [*ends[-1:], *ends[:-1]]
    model_plot.set_ticks(axes, "x", ends, [parameter_value(scale) for scale in ends], _LENGTH)
    top = max(1.0, axes.get_ylim()[1])
    axes.set_ylim(0.0, top * _ROOM)
    axes.yaxis.set_major_formatter(lambda share, _: percent(share))
    axes.set_xlabel(model_plot.label(found.line.parameter), loc="right")
    if not measured.all():
        axes.axvline(
            float(scales[measured][-1]), color=model_plot.GREY, linewidth=0.5, linestyle=":"
        )
    title = f"{found.experiment.name}: efficiency"
    axes.set_title(model_plot.brief([title], model_plot.WIDTH - 0.5), loc="left")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, borderaxespad=0.0)


def draw_sizes(axes: Axes, found: Isoefficiency) -> None:
    """Draw the problem sizes that keep an efficiency over the scale, with their band.

    Raises
    ------
    UsageError
        If no scale has such a size.
    """
    points = [point for point in found.points if point.has_value]
    if not points:
        raise UsageError(
            f"no {found.size} is just large enough for this efficiency, so there is no plot",
            hint="another value of --iso",
        )
    scales, sizes, low, high = (
        np.array([getattr(point, name) for point in points])
        for name in ("scale", "size", "low", "high")
    )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    name = f"{100 * found.efficiency:.6g} % efficiency"
    axes.plot(
        scales, sizes, color=model_plot.BLUE, marker="o", markersize=3.2, linewidth=0.9, label=name
    )
    finite = np.isfinite(high)
    axes.fill_between(
        scales[finite], low[finite], high[finite], color=model_plot.SKY, linewidth=0,
        label=f"{percent(found.fitted.models.confidence)} band", zorder=1,
    )  # fmt: skip
    largest = found.fitted.measured_range
    axes.axvline(largest(found.parameter)[1], color=model_plot.GREY, linewidth=0.5, linestyle=":")
    axes.axhline(largest(found.size)[1], color=model_plot.GREY, linewidth=0.5, linestyle=":")
    ends: list[float] = scales.tolist()
    ends = [*ends[-1:], *ends[:-1]]
    model_plot.set_ticks(axes, "x", ends, [parameter_value(scale) for scale in ends], _LENGTH)
    ticks = value_ticks(*axes.get_ylim())
    model_plot.set_ticks(axes, "y", ticks, [quantity(tick, "1") for tick in ticks], _LENGTH / 2)
    axes.set_xlabel(model_plot.label(found.parameter), loc="right")
    axes.set_ylabel(model_plot.label(found.size))
    title = f"{found.fitted.experiment.name}: size that keeps the efficiency"
    axes.set_title(model_plot.brief([title], model_plot.WIDTH - 0.5), loc="left")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, borderaxespad=0.0)


_ROW, _BESIDE = 0.17, 0.85
"""Height of a line, and of the rest of the figure, in inches."""
_NAMES = 1.75
"""Width of the names in inches."""
_INDENT, _DEEPEST = 2, 14
"""Characters of an indent, and the largest total indent."""
_SPACE = 0.031
"""Width of a space in inches."""
_OWN, _WHOLE, _LESS = model_plot.VERMILLION, "#f6d3b8", model_plot.BLUE
"""Colours of an exclusive loss, an inclusive loss, and a gain."""


@dataclass(frozen=True, slots=True, eq=False)
class ExcessPlot:
    """Contents of the plot of excess work between the last pair of scales, [lines].

    Attributes
    ----------
    shown : the view
    names : labels of lines, indented, with ``~`` before those that noise may be behind
    whole, own : fractions of the run time at the larger scale, inclusive and exclusive
    """

    shown: ExcessView
    names: list[str]
    whole: FloatArray
    own: FloatArray

    @classmethod
    def of(cls, shown: ExcessView) -> ExcessPlot:
        """Return the plot of a view."""
        pair = len(shown.losses.pairs) - 1
        own, whole = (values[:, pair] for values in shown.outline.values(shown.losses.excess))
        overlaps = shown.overlaps[pair]
        doubtful = np.zeros(len(own), bool) if overlaps is None else overlaps[1]
        doubtful = doubtful & (np.abs(np.nan_to_num(whole)) >= NOTICEABLE)
        names = []
        for line, doubt in zip(shown.outline.lines, doubtful.tolist(), strict=True):
            indent = " " * min(line.depth * _INDENT, _DEEPEST)
            name = "~" * doubt + line_name(shown.outline, line, full=False)
            room = _NAMES - 0.1 - len(indent) * _SPACE
            names.append(indent + model_plot.brief([name], room))
        return cls(shown, names, np.asarray(whole), np.asarray(own))

    @property
    def height(self) -> float:
        """Inches of the figure."""
        return _ROW * len(self.names) + _BESIDE


def draw_excess(axes: Axes, plot: ExcessPlot) -> None:
    """Draw one line per line of the view, in its order."""
    from matplotlib.ticker import MaxNLocator
    from matplotlib.transforms import ScaledTranslation

    losses = plot.shown.losses
    whole, own = np.nan_to_num(plot.whole), np.nan_to_num(plot.own)
    places = np.arange(len(plot.names), dtype=float)
    edge: dict[str, Any] = {"linewidth": 0.4, "edgecolor": model_plot.BLACK, "zorder": 2}
    for values, height, colours, name in (
        (whole, 0.76, (_WHOLE, model_plot.SKY), "inclusive"),
        (own, 0.36, (_OWN, _LESS), "exclusive"),
    ):
        for is_loss, colour in ((True, colours[0]), (False, colours[1])):
            here = values > -NOTICEABLE if is_loss else values <= -NOTICEABLE
            if here.any():
                said = name if is_loss else f"less, {name}"
                axes.barh(places[here], values[here], height=height, color=colour, label=said,
                          **edge)  # fmt: skip
    low, high = min(whole.min(), own.min(), 0.0), max(whole.max(), own.max(), NOTICEABLE)
    room = 0.24 * (high - low)
    axes.set_xlim(low - (room if low <= -NOTICEABLE else 0), high + room)
    axes.set_ylim(len(places) - 0.5, -0.5)
    axes.axvline(0.0, color=model_plot.BLACK, linewidth=0.5, zorder=3)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_yticks(places, plot.names, fontsize=model_plot.TEXT, ha="left")
    axes.tick_params(axis="y", pad=_NAMES * 72)
    for place, value, mine in zip(places.tolist(), plot.whole.tolist(), own.tolist(), strict=True):
        ends = (min(value, mine, 0.0), max(value, mine, 0.0))
        end, side = (ends[0], "right") if value <= -NOTICEABLE else (ends[1], "left")
        text = f" {percent(value)} " if np.isfinite(value) else ""
        axes.text(end, place, text, va="center", ha=side, fontsize=model_plot.SMALL)
    axes.xaxis.set_major_formatter(lambda share, _: percent(share))
    axes.xaxis.set_major_locator(MaxNLocator(4))
    (p, q), name = losses.pairs[-1], losses.parameter
    scales = f"{name} = {parameter_value(p)} to {parameter_value(q)}"
    held = f" (at {setting_text(losses.line.held)})" if losses.line.held else ""
    axes.set_xlabel(
        model_plot.label(f"excess work, share of the {losses.metric.name}"), loc="right"
    )
    total = percent(float(losses.total[-1]))
    title = f"{scales}{held}: {total} excess, {losses.ideal.meaning}"
    shown = model_plot.brief([title], model_plot.WIDTH - 0.1)
    axes.annotate(shown, (0, 1), (-_NAMES * 72, 16), xycoords="axes fraction",
                  textcoords="offset points", va="bottom")  # fmt: skip
    shift = ScaledTranslation(-_NAMES, 0.02, axes.figure.dpi_scale_trans)
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        bbox_transform=axes.transAxes + shift,
        ncols=4,
        handlelength=1.2,
        columnspacing=1.0,
        borderpad=0.1,
        borderaxespad=0.0,
    )


_ROW_OF_RANKING, _BESIDE_RANKING = 0.27, 0.85
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
        return _ROW_OF_RANKING * len(self.names) + _BESIDE_RANKING

    @property
    def signs(self) -> Iterator[tuple[FloatArray, str, dict[str, Any]]]:
        """Values with their names and signs."""
        ranking, fitted = self.ranking, self.ranking.fitted
        largest, target = (
            f"{fitted.parameter} = {parameter_value(at)}"
            for at in (fitted.points[-1], ranking.target)
        )
        if not (ranking.repetitions and largest == target):
            yield (
                self.measured,
                f"measured at {largest}",
                {"marker": "o", "color": model_plot.BLACK},
            )
        sign = {"marker": "D", "color": model_plot.VERMILLION}
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
    model_plot.set_ticks(
        axes, "x", ticks, [quantity(tick, unit) for tick in ticks], model_plot.WIDTH - 0.2
    )
    _draw_names(axes, plot)
    low, high = (np.clip(ends, left, right) for ends in (plot.low, plot.high))
    banded = np.isfinite(low) & np.isfinite(high)
    axes.barh(places[banded] + 0.2, high[banded] - low[banded], left=low[banded], height=0.3,
              color=model_plot.SKY, linewidth=0, zorder=1, label=band_title(ranking))  # fmt: skip
    is_off = False
    for values, name, style in plot.signs:
        known = np.isfinite(values)
        off = known & (values < left)
        axes.plot(values[known & ~off], places[known & ~off] + 0.2,
                  label=model_plot.label(name), **_SIGN, **style)  # fmt: skip
        if off.any():
            is_off, at_edge = True, {**style, "marker": "<", "clip_on": False}
            axes.plot(np.full(int(off.sum()), left), places[off] + 0.2, **_SIGN, **at_edge)
    if is_off:
        axes.plot(
            [], [], marker="<", color=model_plot.GREY, label="zero, or left of the axis", **_SIGN
        )
    if plot.sums:
        axes.axhline(count - plot.sums - 0.5, color=model_plot.GREY, linewidth=0.5)
    held = f", {at_text(fitted, ranking.target)}" if fitted.held else ""
    kind = "inclusive" if ranking.inclusive else "exclusive"
    how = fitted.experiment.reduction.words
    metric = ", ".join(part for part in (fitted.metric.name, kind, how) if part)
    axes.set_xlabel(model_plot.brief([metric + held], model_plot.WIDTH - 0.2))
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3 - is_off, handlelength=1.2,
                columnspacing=1.0, borderpad=0.1)  # fmt: skip


def _draw_names(axes: Axes, plot: RankingPlot) -> None:
    """Write names to the left above their rows, and marks of trust to the right."""
    line = axes.get_yaxis_transform()
    for place, (names, trust) in enumerate(zip(plot.names, plot.trust, strict=True)):
        at = place - 0.06
        text = model_plot.brief(names, model_plot.WIDTH - 0.7)
        axes.text(0.0, at, text, transform=line, va="bottom", fontsize=model_plot.TEXT)
        axes.text(
            1.0,
            at,
            model_plot.label(trust),
            transform=line,
            va="bottom",
            ha="right",
            fontsize=model_plot.SMALL,
        )
