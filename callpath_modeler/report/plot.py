"""Plots of public objects: drawn for Python, or written to files for the command line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np

from callpath_modeler.analysis.answer import Ranking
from callpath_modeler.analysis.ensemble import Losses
from callpath_modeler.arrays import IntArray
from callpath_modeler.errors import UsageError, parse_enum
from callpath_modeler.fitted import CallPathModel
from callpath_modeler.profile.runs import target_of
from callpath_modeler.profile.tree_views import ViewKind
from callpath_modeler.profile.view_request import ViewRequest
from callpath_modeler.report import model_plot
from callpath_modeler.report.bar_plots import HEIGHT as EFFICIENCY_HEIGHT
from callpath_modeler.report.bar_plots import (
    ExcessPlot,
    RankingPlot,
    draw_efficiency,
    draw_excess,
    draw_ranking,
    draw_sizes,
)
from callpath_modeler.report.efficiency_text import EfficiencyView
from callpath_modeler.report.excess_text import ExcessView
from callpath_modeler.studies.isoefficiency import Isoefficiency
from callpath_modeler.studies.question import FURTHER

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TOP = 10
"""Rows of a ranking, and siblings of a view, that a plot shows by default."""
_LINES = 40
"""Number of lines of a view beyond which no further node is opened."""
_MOST = 120
"""Largest number of rows of a plot; more do not fit on a page."""
_LEAST = 0.01
"""Smallest share of the run time with which a node of a view has its own line."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A plot that has not been drawn yet.

    Attributes
    ----------
    draw : draws it on axes
    height : of its figure in inches
    """

    draw: Callable[[Axes], None]
    height: float


def drawn(thing: object, axes: Axes | None, **options: Any) -> Axes:
    """Return axes with the plot of a model, a ranking or losses.

    Parameters
    ----------
    axes : where to draw; None = a new figure, as wide as a column of a paper
    options : arguments of the method ``plot`` of the object

    Raises
    ------
    UsageError
        If matplotlib is not installed, or an option has no such value.
    """
    model_plot.require_matplotlib()
    drawing = _drawing(thing, **options)
    figure = None
    if axes is None:
        import matplotlib.pyplot as plt

        # The first figure loads the backend, which may change the user's settings: those of a
        # notebook make its figures appear. Within our settings, that would be taken back.
        figure = plt.figure(figsize=(model_plot.WIDTH, drawing.height), layout="constrained")
    with model_plot.settings():
        if figure is not None:
            figure.set_facecolor("white")
            axes = figure.add_subplot()
        assert axes is not None
        drawing.draw(axes)
    return axes


@singledispatch
def _drawing(thing: object, **_options: Any) -> Drawing:
    raise TypeError(f"nothing is known of how {thing!r} is plotted")


@_drawing.register
def _(model: CallPathModel, target: float | None = None) -> Drawing:
    at = FURTHER * float(model.fitted.points[-1]) if target is None else target_of(target)
    return model_drawing(model_plot.ModelPlot.of_model(model, at))


@_drawing.register
def _(ranking: Ranking, top: int = TOP) -> Drawing:
    return ranking_drawing(ranking, ranking.order[: _number(top)])


@_drawing.register
def _(losses: Losses, top: int = TOP, view: str = "top-down") -> Drawing:
    kind = parse_enum(ViewKind, view, "view")
    request = ViewRequest(kind=kind, top=_number(top), least=_LEAST)
    return excess_drawing(ExcessView(losses, request))


def _number(top: int) -> int:
    if not isinstance(top, int | np.integer) or top < 1:
        raise UsageError(f"top={top!r} is no number from 1 on", hint=f"e.g. top={TOP}")
    return int(top)


def model_drawing(plot: model_plot.ModelPlot) -> Drawing:
    """Return the drawing of one call path."""
    return Drawing(lambda axes: model_plot.draw_model(axes, plot), model_plot.HEIGHT)


def ranking_drawing(ranking: Ranking, rows: IntArray) -> Drawing:
    """Return the drawing of some ranked call paths."""
    _refuse_long(len(rows), "-n chooses fewer; in Python, top=10")
    plot = RankingPlot.of(ranking, rows)
    return Drawing(lambda axes: draw_ranking(axes, plot), plot.height)


def excess_drawing(shown: ExcessView) -> Drawing:
    """Return the drawing of a view of excess work; of a long one, deep levels stay closed."""
    if shown.request.most is None:
        shown = replace(shown, request=replace(shown.request, most=_LINES))
    _refuse_long(len(shown.outline.lines), "--depth, -n or --min-share choose fewer")
    plot = ExcessPlot.of(shown)
    return Drawing(lambda axes: draw_excess(axes, plot), plot.height)


def efficiency_drawing(shown: EfficiencyView) -> Drawing:
    """Return the drawing of the factors of parallel efficiency."""
    return Drawing(lambda axes: draw_efficiency(axes, shown), EFFICIENCY_HEIGHT)


def iso_drawing(found: Isoefficiency) -> Drawing:
    """Return the drawing of the problem sizes that keep an efficiency."""
    return Drawing(lambda axes: draw_sizes(axes, found), EFFICIENCY_HEIGHT)


def _refuse_long(rows: int, hint: str) -> None:
    if rows > _MOST:
        raise UsageError(f"a plot has at most {_MOST} rows, not {rows}", hint=hint)


def file_of(drawing: Drawing, form: str) -> bytes:
    """Return a plot as the bytes of a file.

    Parameters
    ----------
    form : one of `FORMATS`
    """
    with model_plot.settings():
        figure = model_plot.new_figure(drawing.height)
        drawing.draw(figure.add_subplot())
    return model_plot.saved(figure, form)
