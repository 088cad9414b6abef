"""Base classes of objects that notebooks display and plot."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HOME = "callpath_modeler.report.page.notebook"
_PLOTS = "callpath_modeler.report.plot.drawing"


class HtmlReprMixin:
    """An object that a notebook displays as HTML.

    The HTML is made by `report.page.notebook`, which is imported on demand. So an experiment or a
    ranking does not depend on pages.
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(import_module(_HOME).html_of(self))

    def _plotted(self, axes: Axes | None, **options: object) -> Axes:
        found: Any = import_module(_PLOTS).drawn(self, axes, **options)
        return found  # type: ignore[no-any-return, unused-ignore]


class FigureReprMixin(HtmlReprMixin):
    """An object that also has a formula and a chart."""

    __slots__ = ()

    def _repr_latex_(self) -> str:
        return str(import_module(_HOME).latex_of(self))

    def _repr_svg_(self) -> str:
        return str(import_module(_HOME).svg_of(self))

    def plot(self, target: float | None = None, *, axes: Axes | None = None) -> Axes:
        """Plot the model with its band, the measured points with repetitions, and the target.

        Parameters
        ----------
        target : value of the parameter; None = four times the largest scale, ``inf`` = no target
        axes : where to draw; None = a new figure of pyplot, as wide as one column of a paper

        Returns
        -------
        matplotlib.axes.Axes
            ``axes.figure.savefig("fig.pdf")`` writes it.

        Raises
        ------
        UsageError
            If matplotlib is not installed, or the target is not positive.
        DataError
            If the call path costs nothing in every run.
        """
        return self._plotted(axes, target=target)


class RankingPlotMixin(HtmlReprMixin):
    """An object with a plot of its first call paths."""

    __slots__ = ()

    def plot(self, top: int = 10, *, axes: Axes | None = None) -> Axes:
        """Plot the first call paths: bands at the target, and values at the largest scale.

        Parameters
        ----------
        top : number of call paths; the others share a row
        axes : where to draw; None = a new figure of pyplot, as wide as one column of a paper

        Returns
        -------
        matplotlib.axes.Axes
            ``axes.figure.savefig("fig.pdf")`` writes it.

        Raises
        ------
        UsageError
            If matplotlib is not installed, the target is infinite, or `top` is no such number.
        DataError
            If nothing is above zero at the target.
        """
        return self._plotted(axes, top=top)


class LossesPlotMixin(HtmlReprMixin):
    """An object with a plot of a view of the call tree."""

    __slots__ = ()

    def plot(self, top: int = 10, *, view: str = "top-down", axes: Axes | None = None) -> Axes:
        """Plot inclusive and exclusive excess work of the last pair of scales.

        Parameters
        ----------
        top : number of siblings that have lines; the others share one
        view : ``"top-down"``, ``"bottom-up"`` or ``"flat"``
        axes : where to draw; None = a new figure of pyplot, as wide as one column of a paper

        Returns
        -------
        matplotlib.axes.Axes
            ``axes.figure.savefig("fig.pdf")`` writes it.

        Raises
        ------
        UsageError
            If matplotlib is not installed, or there is no such view or number.
        """
        return self._plotted(axes, top=top, view=view)
