"""Hooks of user interfaces: stages of a command, and objects that notebooks display and plot.

A stage tells its progress and its seconds to a listener. Without one, it tells nobody. So a library
function needs no parameter for a display, and writes nothing itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, cast

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


_Part = TypeVar("_Part")
_Result = TypeVar("_Result")


class MapOfRows(Protocol):
    """A map over parts of rows, whose results have the order of the parts."""

    def __call__(
        self, function: Callable[[_Part], _Result], parts: Iterable[_Part], /
    ) -> Iterable[_Result]:
        """Return the result of `function` for each part."""
        ...


class Listener(Protocol):
    """Whoever shows stages."""

    def progress(self, stage: str, *, noted: bool = True) -> Callable[[int, int], None]:
        """Return a function of the number of finished parts and of all parts of a stage.

        Without `noted`, nothing is left of it at the end.
        """
        ...

    def ended(self, stage: str, seconds: float) -> None:
        """Show that a stage took some seconds."""
        ...


_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def listen(listener: Listener | None) -> None:
    """Make all later stages of this context tell `listener`; None = nobody."""
    _listener.set(listener)


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Tell the listener how many seconds the block takes, if it succeeds."""
    begin = time.perf_counter()
    yield
    if (listener := _listener.get()) is not None:
        listener.ended(name, time.perf_counter() - begin)


def counted_map(name: str, each: MapOfRows, total: int) -> MapOfRows:
    """Return `each`, a map over parts of rows, which also tells how many of `total` rows are done.

    Parts are still made on demand, and results have their order.
    """
    listener = _listener.get()
    if listener is None:
        return each
    report = listener.progress(name, noted=False)

    def counting(
        function: Callable[[_Part], _Result], parts: Iterable[_Part], /
    ) -> Iterator[_Result]:
        sizes: list[int] = []

        def noted() -> Iterator[_Part]:
            for part in parts:
                sizes.append(len(cast(Sized, part)))
                yield part

        done = 0
        report(done, total)
        for k, result in enumerate(each(function, noted())):
            done += sizes[k]
            report(min(done, total), total)
            yield result
        if done < total:
            report(total, total)

    return counting


_HOME = "callpath_modeler.report.page.notebook"
_FRAMES = "callpath_modeler.report.frames"
_GRAPHS = "callpath_modeler.report.model_tables"
_SELECTIONS = "callpath_modeler.studies.selections"
_THICKETS = "callpath_modeler.report.thickets"
_PLOTS = "callpath_modeler.report.plot"


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


class PageMixin:
    """An answer with a page of all call paths at any target.

    The page is made by `report.page.notebook`, which is imported on demand.
    """

    __slots__ = ()

    def page(self, height: int = 900) -> Any:
        """Return the interactive page, which a notebook shows in a frame.

        The frame is a sandbox without a network. The page is that of ``cpmodel report`` or, of a
        comparison, that of ``cpmodel diff -o FILE.html``, without hashes of inputs.

        Parameters
        ----------
        height : height of the frame in pixels, 200 to 10,000

        Returns
        -------
        NotebookPage
            ``text`` is the HTML document, for a file of its own.

        Raises
        ------
        UsageError
            If the height is outside these limits.
        """
        return import_module(_HOME).page_of(self, height)


class FrameMixin:
    """An answer that is a table for pandas.

    The table is made by `report.frames`, which is imported on demand.
    """

    __slots__ = ()

    def to_frame(self) -> pd.DataFrame:
        """Return the table of the command line for pandas, in SI base units.

        Returns
        -------
        pandas.DataFrame
            One row per call path, in the order of the answer. The index is the call path.
        """
        return import_module(_FRAMES).frame_of(self)  # type: ignore[no-any-return]


class GraphMixin:
    """An object with a call tree, which networkx has as a graph.

    The graph is made by `report.model_tables`, which is imported on demand.
    """

    __slots__ = ()

    def to_networkx(self) -> Any:
        """Return the `networkx.DiGraph` from callers to callees, as `callpath_modeler.graph`."""
        return import_module(_GRAPHS).graph(self)


class SelectionMixin(HtmlReprMixin, GraphMixin):
    """An experiment whose runs and call paths can be selected, grouped and exchanged.

    `studies.selections` and `report.thickets` do so, which are imported on demand.
    """

    __slots__ = ()

    def query(self, pattern: str) -> Self:
        """Return the experiment with the call paths that match, and with their callers.

        Callers that do not match have no value. `rank` and `diff` tell what is left out.

        Parameters
        ----------
        pattern : pattern of call paths, such as ``"**/MPI_*"``

        Raises
        ------
        UsageError
            If no call path matches.
        """
        return import_module(_SELECTIONS).matching(self, pattern)  # type: ignore[no-any-return]

    def filter(self, condition: str | Callable[[Any], bool]) -> Self:
        """Return the experiment with the runs that fulfil a condition.

        Parameters
        ----------
        condition : text as of ``--where``, such as ``"p>=16"``; or a function of a run

        Raises
        ------
        UsageError
            If the text names no parameter and no entry of the metadata.
        DataError
            If no run is left.
        """
        return import_module(_SELECTIONS).with_runs(self, condition)  # type: ignore[no-any-return]

    def groupby(self, name: str | None = None) -> dict[str, Self]:
        """Return one experiment for each value of a parameter or of an entry of the metadata.

        Parameters
        ----------
        name : name of the parameter or of the entry; None = one experiment for each case

        Raises
        ------
        UsageError
            If there is no such name.
        DataError
            If some runs lack the entry.
        """
        return import_module(_SELECTIONS).groups(self, name)  # type: ignore[no-any-return]

    def to_thicket(self) -> Any:
        """Return the experiment as a `thicket.Thicket`, one profile for each run.

        Raises
        ------
        DataError
            If Thicket is not installed.
        """
        return import_module(_THICKETS).thicket_of(self)

    def to_hatchet(self, run: int = -1) -> Any:
        """Return one run as a `hatchet.GraphFrame`.

        Parameters
        ----------
        run : number of the run, from 0; -1 = the last one

        Raises
        ------
        DataError
            If Hatchet is not installed.
        """
        return import_module(_THICKETS).graph_frame_of(self, run)


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


class RankingPlotMixin(HtmlReprMixin, PageMixin):
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
