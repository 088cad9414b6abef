"""Plot of excess work: two bars per line of a view, inclusive and exclusive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from callpath_modeler.analysis.excess import NOTICEABLE
from callpath_modeler.arrays import FloatArray
from callpath_modeler.report.excess_view import ExcessView
from callpath_modeler.report.outlined_view import line_name
from callpath_modeler.report.plot.style import (
    BLACK,
    BLUE,
    SKY,
    SMALL,
    TEXT,
    VERMILLION,
    WIDTH,
    brief,
    label,
)
from callpath_modeler.units import parameter_value, percent, setting_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW, _BESIDE = 0.17, 0.85
"""Height of a line, and of the rest of the figure, in inches."""
_NAMES = 1.75
"""Width of the names in inches."""
_INDENT, _DEEPEST = 2, 14
"""Characters of an indent, and the largest total indent."""
_SPACE = 0.031
"""Width of a space in inches."""
_OWN, _WHOLE, _LESS = VERMILLION, "#f6d3b8", BLUE
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
        doubtful = np.zeros(len(own), bool) if overlaps is None else overlaps[0]
        doubtful = doubtful & (np.abs(np.nan_to_num(whole)) >= NOTICEABLE)
        names = []
        for line, doubt in zip(shown.outline.lines, doubtful.tolist(), strict=True):
            indent = " " * min(line.depth * _INDENT, _DEEPEST)
            name = "~" * doubt + line_name(shown.outline, line, full=False)
            room = _NAMES - 0.1 - len(indent) * _SPACE
            names.append(indent + brief([name], room))
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
    edge: dict[str, Any] = {"linewidth": 0.4, "edgecolor": BLACK, "zorder": 2}
    for values, height, colours, name in (
        (whole, 0.76, (_WHOLE, SKY), "inclusive"),
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
    axes.axvline(0.0, color=BLACK, linewidth=0.5, zorder=3)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_yticks(places, plot.names, fontsize=TEXT, ha="left")
    axes.tick_params(axis="y", pad=_NAMES * 72)
    for place, value, mine in zip(places.tolist(), plot.whole.tolist(), own.tolist(), strict=True):
        ends = (min(value, mine, 0.0), max(value, mine, 0.0))
        end, side = (ends[0], "right") if value <= -NOTICEABLE else (ends[1], "left")
        text = f" {percent(value)} " if np.isfinite(value) else ""
        axes.text(end, place, text, va="center", ha=side, fontsize=SMALL)
    axes.xaxis.set_major_formatter(lambda share, _: percent(share))
    axes.xaxis.set_major_locator(MaxNLocator(4))
    (p, q), name = losses.pairs[-1], losses.parameter
    scales = f"{name} = {parameter_value(p)} to {parameter_value(q)}"
    held = f" (at {setting_text(losses.line.held)})" if losses.line.held else ""
    axes.set_xlabel(label(f"excess work, share of the {losses.metric.name}"), loc="right")
    total = percent(float(losses.total[-1]))
    title = f"{scales}{held}: {total} excess, {losses.ideal.meaning}"
    axes.annotate(brief([title], WIDTH - 0.1), (0, 1), (-_NAMES * 72, 16), xycoords="axes fraction",
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
