"""The plot of a model, and the style of all plots.

The colours come from Okabe and Ito: Color Universal Design (2008). Colour-blind readers can
distinguish them. Shapes and lightness differ as well, so plots can be read in grey.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from callpath_modeler.analysis.answer import Ranking
from callpath_modeler.analysis.uncertain import basis_of
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.fitted import CallPathModel, Fitted
from callpath_modeler.printable import printable
from callpath_modeler.report.curve import Axes as Range
from callpath_modeler.report.curve import Curve, curve_of, repetitions_of, spaced, value_ticks
from callpath_modeler.report.layout import shorten
from callpath_modeler.report.model_formulas import model_range_texts
from callpath_modeler.report.model_text import CallPathReport
from callpath_modeler.report.ranking_text import distinct_names
from callpath_modeler.units import parameter_value, percent, quantity, setting_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


FORMATS = ("pdf", "svg", "png")
"""Formats of plots, which are the endings of their files."""

BLACK, GREY = "#000000", "#767676"
BLUE, SKY, VERMILLION = "#0072B2", "#bfe0f4", "#D55E00"

WIDTH = 3.5
"""Inches: one column of a paper."""
SMALL, TEXT = 6.0, 7.0
"""Points of numbers and notes, and of names."""
_DIGIT = 0.64
"""Width of a digit as a part of its size."""
_MOST_LETTERS = 3
"""So many of the narrowest letters are as wide as their size."""
_GAP = 4.0
"""Points that labels are apart at least."""
_DOTS_PER_INCH = 300
_SETTINGS: Any = {
    "font.family": "DejaVu Sans",
    "font.size": TEXT,
    "axes.linewidth": 0.5,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.labelsize": TEXT,
    "axes.titlesize": TEXT,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "xtick.major.width": 0.5,
    "ytick.major.width": 0.5,
    "legend.fontsize": SMALL,
    "legend.frameon": True,
    "legend.edgecolor": "none",
    "legend.framealpha": 0.8,
    "lines.linewidth": 1.2,
    "hatch.linewidth": 0.5,
    "text.usetex": False,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "callpath_modeler",
}
_METADATA: Any = {
    "pdf": {"CreationDate": None, "Creator": "cpmodel"},
    "svg": {"Date": None, "Creator": "cpmodel"},
    "png": {"Software": "cpmodel"},
}


def require_matplotlib() -> None:
    """Raise `UsageError` where matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise UsageError("plots need matplotlib", hint="pip install 'callpath-modeler[plot]'")


def format_of_plot(path: Path) -> str:
    """Return the format that the ending of a file asks for.

    Raises
    ------
    UsageError
        If there is no such format.
    """
    form = path.suffix.removeprefix(".").lower()
    if form not in FORMATS:
        endings = ", ".join(f".{each}" for each in FORMATS)
        raise UsageError(f"{path}: no plot has this ending", hint=f"end it in one of {endings}")
    return form


@contextmanager
def settings() -> Iterator[None]:
    """Draw in our style, whatever the user's own settings of matplotlib are."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        yield


def saved(figure: Figure, form: str) -> bytes:
    """Return a figure as the bytes of a file; the same figure gives the same bytes."""
    stream = io.BytesIO()
    with settings():
        figure.savefig(stream, format=form, dpi=_DOTS_PER_INCH, metadata=_METADATA[form])
    return stream.getvalue()


def new_figure(height: float) -> Figure:
    """Return a figure of `height` inches, as wide as a column, that no window shows."""
    from matplotlib.figure import Figure

    return Figure(figsize=(WIDTH, height), layout="constrained")


def label(text: str) -> str:
    r"""Return foreign text such that matplotlib draws it as it is.

    No dollar begins mathematics. Signs that cannot be printed, and those that the font lacks, are
    written as Python does. All names and units that a plot shows pass this function.

    >>> print(label("cost $x$\x1b"))
    cost \$x\$\x1b
    """
    signs = _signs()
    known = (sign if ord(sign) in signs else ascii(sign)[1:-1] for sign in printable(text))
    return "".join(known).replace("$", r"\$")


def _signs() -> Collection[int]:
    """Return the signs of the font that comes with matplotlib."""
    from matplotlib import get_data_path
    from matplotlib.font_manager import get_font

    font = get_font(str(Path(get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")))
    signs: Collection[int] = font.get_charmap()
    return signs


def brief(names: Sequence[str], inches: float, size: float = TEXT) -> str:
    """Return a call path as a label that has room in a width, shortened as in tables."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family="DejaVu Sans", size=size)
    most = int(inches * 72 / size * _MOST_LETTERS)
    for room in range(most, 1, -1):
        text = label(shorten(names, room))
        width, _, _ = text_to_path.get_text_width_height_descent(
            text.replace(r"\$", "$"), font, ismath=False
        )
        if width <= inches * 72:
            return text
    return ""


def set_ticks(
    axes: Axes, axis: str, places: Sequence[float], texts: Sequence[str], length: float
) -> None:
    """Put ticks at places; labels that would touch an earlier one are left out, ticks are not.

    Parameters
    ----------
    axis : ``"x"`` or ``"y"``
    places : those first whose labels must not give way
    length : inches of the axis
    """
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    one = axes.xaxis if axis == "x" else axes.yaxis
    low, high = axes.get_xlim() if axis == "x" else axes.get_ylim()
    transform = one.get_transform()
    start, end = transform.transform([low, high])
    spans = []
    for place, text in zip(transform.transform(list(places)), texts, strict=True):
        middle = (place - start) / (end - start) * length * 72
        half = (len(text) * _DIGIT if axis == "x" else 1) * SMALL / 2
        spans.append((middle - half, middle + half))
    rooms = spaced(spans, _GAP if axis == "x" else 0)
    shown = [label(text) if has_room else "" for text, has_room in zip(texts, rooms, strict=True)]
    one.set_major_locator(FixedLocator(list(places)))
    one.set_major_formatter(FixedFormatter(shown))
    one.set_minor_locator(NullLocator())


HEIGHT = 2.7
"""Inches."""
_GRID = 200
_INSIDE = (2.6, 1.7)
"""Inches about of the area inside the axes."""
_LEGEND = 0.95
"""Inches of a text of the legend."""
_MARGIN = 0.04
"""Fraction of the axis that is free outside the first and the last point."""


@dataclass(frozen=True, slots=True, eq=False)
class ModelPlot:
    """Contents of the plot of some call paths together.

    Attributes
    ----------
    fitted : the models
    rows : the call paths
    title : names on the path
    curve : points, model, band and target
    repetitions : [K, R] the runs of each point; NaN = none
    inclusive : whether `rows` are a call path with all that it calls
    leader : the row whose growth the curve has; -1 = there is no model
    linear : linear axes instead of logarithmic ones
    """

    fitted: Fitted
    rows: IntArray
    title: list[str]
    curve: Curve
    repetitions: FloatArray
    inclusive: bool
    leader: int
    linear: bool = False

    @classmethod
    def of_ranking(cls, ranking: Ranking, row: int, *, linear: bool = False) -> ModelPlot:
        """Return the plot of a ranked call path, up to the target of the ranking."""
        return cls._made(
            ranking.fitted,
            row,
            CallPathReport.of(ranking, row).rows.astype(np.intp),
            ranking.target,
            leader=int(ranking.leader[row]),
            linear=linear,
            seen=ranking.total_of(row) if ranking.repetitions else None,
            inclusive=ranking.inclusive,
        )

    @classmethod
    def of_model(cls, model: CallPathModel, target: float) -> ModelPlot:
        """Return the plot of one model, up to a target."""
        row, fitted = model.row, model.fitted
        leader = row if fitted.modelled[row] else -1
        return cls._made(fitted, row, np.array([row]), target, leader=leader)

    @classmethod
    def _made(
        cls,
        fitted: Fitted,
        row: int,
        rows: IntArray,
        target: float,
        *,
        leader: int,
        linear: bool = False,
        seen: tuple[float, float, float] | None = None,
        inclusive: bool = False,
    ) -> ModelPlot:
        end = target if leader >= 0 or seen is not None else np.inf
        curve = curve_of(fitted, rows, end, count=_GRID, linear=linear, seen=seen)
        (names,) = distinct_names(fitted.experiment.tree, np.array([row]), full=False)
        if not curve.has_scale:
            path = fitted.experiment.tree.path(row)
            raise DataError(
                f"nothing to plot: {fitted.metric.name} of {path} is zero in every run",
                hint="choose another call path, or another metric with -m",
            )
        runs = repetitions_of(fitted, rows)
        return cls(fitted, rows, names, curve, runs, inclusive, leader, linear)

    @property
    def range(self) -> Range:
        """The part of the plane that has room on the plot."""
        return Range.of(self.curve, linear=self.linear, beside=self.repetitions)


def draw_model(axes: Axes, plot: ModelPlot) -> None:
    """Draw a model with its measurements."""
    from matplotlib.transforms import ScaledTranslation

    fitted, curve, span = plot.fitted, plot.curve, plot.range
    _scale(axes, plot, span)
    if plot.leader >= 0:
        _draw_band(axes, plot, span)
        _draw_curve(axes, plot)
    _draw_points(axes, plot, span)
    if plot.leader >= 0 or curve.seen is not None:
        _draw_target(axes, plot, span)
    held = f" (at {setting_text(fitted.held)})" if fitted.held else ""
    axes.set_xlabel(label(fitted.parameter + held))
    kind = "inclusive" if plot.inclusive else "exclusive"
    lines = f"{fitted.metric.name}, {kind}", fitted.experiment.reduction.words
    axes.set_ylabel("\n".join(brief([line], _INSIDE[1]) for line in lines))
    axes.set_title(brief(plot.title, WIDTH - 0.7), loc="left", pad=4)
    if plot.leader < 0:
        why = fitted.status(int(plot.rows[0])).replace("_", " ")
        axes.plot([], [], linestyle="none", label=label(f"no model: {why}"))
    shift = ScaledTranslation(-0.68, -0.38, axes.figure.dpi_scale_trans)
    axes.legend(
        loc="upper left",
        bbox_to_anchor=(0, 0),
        bbox_transform=axes.transAxes + shift,
        ncols=3,
        handlelength=2.2,
        columnspacing=0.8,
        labelspacing=0.35,
        borderaxespad=0.0,
    )


def _scale(axes: Axes, plot: ModelPlot, span: Range) -> None:
    """Set limits and ticks: the measured points and the target, and round values."""
    left, right, bottom, top = span.left, span.right, span.bottom, span.top
    if right <= left:
        left, right = left / 1.5, right * 1.5
    unit = plot.fitted.metric.unit
    if plot.linear:
        margin = _MARGIN * (right - left)
        axes.set_xlim(left - margin, right + margin)
        axes.set_ylim(bottom, top + _MARGIN * (top - bottom))
        values = [float(v) for v in axes.yaxis.get_major_locator().tick_values(bottom, top)]
        values = [value for value in values if bottom <= value <= top]
    else:
        axes.set_xscale("log")
        axes.set_yscale("log")
        factor = (right / left) ** _MARGIN
        axes.set_xlim(left / factor, right * factor)
        axes.set_ylim(bottom, top)
        values = value_ticks(bottom, top)
    points = plot.curve.ticks
    set_ticks(axes, "x", points, [parameter_value(point) for point in points], _INSIDE[0])
    set_ticks(axes, "y", values, [quantity(value, unit) for value in values], _INSIDE[1])


def _draw_band(axes: Axes, plot: ModelPlot, span: Range) -> None:
    curve = plot.curve
    low, high = (np.clip(end, span.bottom, span.top) for end in (curve.low, curve.high))
    if np.isfinite(low).any():
        name = f"{percent(plot.fitted.models.confidence)} band"
        axes.fill_between(curve.grid, low, high, color=SKY, linewidth=0, label=name, zorder=1)


def _draw_curve(axes: Axes, plot: ModelPlot) -> None:
    curve, fitted = plot.curve, plot.fitted
    growth = model_range_texts(fitted, np.array([plot.leader]), pretty=True)[0]
    inside = curve.grid <= curve.end_of_data
    last = int(np.flatnonzero(inside)[-1]) if inside.any() else 0
    value = np.where(curve.value > 0, curve.value, np.nan) if not plot.linear else curve.value
    line: dict[str, Any] = {"color": BLUE, "zorder": 2}
    name = brief([f"model, {growth}"], _LEGEND, SMALL)
    if name != label(f"model, {growth}"):
        name = brief([growth], _LEGEND, SMALL)
    axes.plot(curve.grid[: last + 1], value[: last + 1], label=name, **line)
    if curve.grid[-1] > curve.end_of_data:
        beyond, values = curve.grid[last:], value[last:]
        axes.plot(beyond, values, linestyle=(0, (4, 2)), label="beyond the data", **line)
        axes.axvline(curve.end_of_data, color=GREY, linewidth=0.5, linestyle=":", zorder=0)


def _draw_points(axes: Axes, plot: ModelPlot, span: Range) -> None:
    curve = plot.curve
    runs = plot.repetitions
    if runs.shape[1] > 1:
        at = np.repeat(curve.points, runs.shape[1])
        style: dict[str, Any] = {
            "marker": "o",
            "markersize": 3.2,
            "markeredgewidth": 0.6,
            "linestyle": "none",
        }
        _marked(axes, at, runs.ravel(), span, "repetitions", zorder=3, color=GREY,
                markerfacecolor="none", **style)  # fmt: skip
    _marked(axes, curve.points, curve.measured, span, "measured", zorder=4, color=BLACK,
            marker="o", markersize=3.6, markeredgewidth=0, linestyle="none")  # fmt: skip


def _marked(
    axes: Axes,
    points: FloatArray,
    values: FloatArray,
    span: Range,
    name: str,
    **style: Any,
) -> None:
    """Draw points; zeros on a logarithmic axis and values beyond it are at its edge."""
    known = np.isfinite(values)
    below, above = known & (values < span.bottom), known & (values > span.top)
    shown = known & ~below & ~above
    if shown.any():
        axes.plot(points[shown], values[shown], label=name, **style)
    zeros = below & (values == 0)
    for where, sign, edge, what in (
        (zeros, "v", span.bottom, "zero"),
        (below & ~zeros, "v", span.bottom, "below the axis"),
        (above, "^", span.top, "above the axis"),
    ):
        if where.any():
            at_edge = {**style, "marker": sign, "markersize": 4.5, "clip_on": False}
            ends = np.full(int(where.sum()), edge)
            axes.plot(points[where], ends, label=f"{name}: {what}", **at_edge)


def _draw_target(axes: Axes, plot: ModelPlot, span: Range) -> None:
    curve = plot.curve
    at = curve.at_target
    if curve.target is None or at is None or not np.isfinite(at[0]):
        return
    value, low, high = at
    name = f"target, {basis_of(curve.seen is not None)}"
    if np.isfinite(low):
        ends = np.clip([low, high], span.bottom, span.top)
        axes.plot([curve.target] * 2, ends, color=VERMILLION, linewidth=1.4, zorder=5)
        for end, true, sign in zip(ends, (low, high), "v^", strict=True):
            cut = end != true
            axes.plot([curve.target], [end], color=VERMILLION, marker=sign if cut else "_",
                      markersize=3.5 if cut else 5, clip_on=False, zorder=5)  # fmt: skip
    _marked(axes, np.array([curve.target]), np.array([value]), span, name, color=VERMILLION,
            marker="D", markersize=4.5, markeredgewidth=0, linestyle="none", zorder=6)  # fmt: skip
