"""Plot of the factors of parallel efficiency over the scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from callpath_modeler.analysis.efficiency import PopFactor
from callpath_modeler.report.efficiency import EfficiencyView, label_of
from callpath_modeler.report.plot.style import (
    BLACK,
    BLUE,
    GREY,
    VERMILLION,
    WIDTH,
    brief,
    label,
    set_ticks,
)
from callpath_modeler.units import parameter_value, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEIGHT = 2.9
"""Inches of the figure."""
_LOOKS = {
    PopFactor.GLOBAL: (BLACK, "s", "-"),
    PopFactor.PARALLEL: (BLUE, "o", "-"),
    PopFactor.PROCESSES: (BLUE, "v", "--"),
    PopFactor.BALANCE: ("#E69F00", "^", "-"),
    PopFactor.COMMUNICATION: (VERMILLION, "D", "-"),
    PopFactor.THREADS: ("#CC79A7", "v", "--"),
    PopFactor.SERIAL: ("#CC79A7", "<", ":"),
    PopFactor.REGIONS: ("#CC79A7", ">", ":"),
    PopFactor.SCALABILITY: ("#009E73", "P", "-"),
    PopFactor.INSTRUCTIONS: (GREY, "1", ":"),
    PopFactor.IPC: (GREY, "2", ":"),
    PopFactor.FREQUENCY: (GREY, "3", ":"),
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
    set_ticks(axes, "x", ends, [parameter_value(scale) for scale in ends], _LENGTH)
    top = max(1.0, axes.get_ylim()[1])
    axes.set_ylim(0.0, top * _ROOM)
    axes.yaxis.set_major_formatter(lambda share, _: percent(share))
    axes.set_xlabel(label(found.line.parameter), loc="right")
    if not measured.all():
        axes.axvline(float(scales[measured][-1]), color=GREY, linewidth=0.5, linestyle=":")
    title = f"{found.experiment.name}: efficiency"
    axes.set_title(brief([title], WIDTH - 0.5), loc="left")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, borderaxespad=0.0)
