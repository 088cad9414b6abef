"""A node of a view: its call paths, its name, its neighbours, its calls in the source."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, cast

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.bands import Total
from callpath_modeler.analysis.node_values import Columns, NodeAnswer
from callpath_modeler.analysis.pair_forecast import ViewForecast
from callpath_modeler.arrays import FloatArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.printable import printable
from callpath_modeler.profile.calltree import NO_LINE, ROOT, CallTree
from callpath_modeler.profile.groups import Costs, Rows, outermost
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.profile.schema import Region
from callpath_modeler.profile.views import View, ViewKind
from callpath_modeler.report.curve import sketch
from callpath_modeler.report.layout import DEFAULT_STYLE, TextStyle, shorten
from callpath_modeler.units import parameter_value, percent

_TITLE = 100
"""Width of a call path, in cells."""
_NEIGHBOURS = 4
_CHAIN = 200
"""Largest number of names of a folded chain that are listed."""


@dataclass(frozen=True, eq=False)
class ViewNode(Generic[Columns]):
    """A node, or siblings that share a line.

    Attributes
    ----------
    forecast : the values
    view : the view of the node
    nodes : the node, or the siblings
    inclusive : whether its inclusive value leads
    style : width, length of names, and characters of text
    """

    forecast: ViewForecast
    view: View
    nodes: Rows
    inclusive: bool
    style: TextStyle = DEFAULT_STYLE

    @cached_property
    def values(self) -> tuple[Columns, Columns]:
        """Exclusive and inclusive values, each [1]."""
        forecast = cast("NodeAnswer[Columns]", self.forecast)
        if len(self.nodes) == 1:
            return forecast.of_nodes(self.view, self.nodes)
        return forecast.of_siblings(self.view, self.nodes)

    @property
    def main(self) -> Columns:
        """The leading values, [1]."""
        return self.values[self.inclusive]

    @property
    def alone(self) -> int | None:
        """The call path; None = several, whose slowest processes may differ."""
        return int(self.own_rows[0]) if len(self.own_rows) == 1 else None

    @cached_property
    def own_rows(self) -> Rows:
        """Call paths of the node, ascending."""
        if len(self.nodes) == 1:
            return self.view.rows(int(self.nodes[0]))
        return np.sort(np.concatenate([self.view.rows(node) for node in self.nodes.tolist()]))

    @cached_property
    def rows(self) -> Rows:
        """Call paths that contribute to the value, ascending."""
        rows = self.own_rows
        if not self.inclusive:
            return rows
        tree = self.view.tree
        outer = rows[outermost(tree, rows)]
        if len(outer) == 1:
            return np.arange(outer[0], tree.end[outer[0]], dtype=np.int32)
        # In preorder, a row is below an earlier row whose subtree has not ended yet.
        reached = np.zeros(len(tree), np.int32)
        reached[outer] = tree.end[outer]
        np.maximum.accumulate(reached, out=reached)
        return np.flatnonzero(np.arange(len(tree), dtype=np.int32) < reached).astype(np.int32)

    @property
    def regions(self) -> list[Region]:
        """The distinct regions of the call paths, in ascending order of their numbers."""
        tree = self.view.tree
        return [tree.regions[k] for k in np.unique(tree.region[self.own_rows]).tolist()]

    def title(self, room: int = _TITLE) -> str:
        """Return the name with its callers; top-down, the middle is shortened to fit `room`."""
        if len(self.nodes) > 1:
            return f"{len(self.nodes)} nodes that share a line"
        node = int(self.nodes[0])
        if self.view.kind is ViewKind.TOP_DOWN:
            return shorten([short_name(n) for n in self.view.tree.names(node)], room)
        return " called by ".join(map(short_name, self.view.names(node)))

    def chain(self) -> list[str]:
        """Return the names of the folded chain that leads to a call path, if there is one."""
        if self.view.kind is not ViewKind.TOP_DOWN or len(self.nodes) > 1:
            return []
        node = int(self.nodes[0])
        folded = self.forecast.chains.get(node, ())
        if not folded:
            return []
        names = [short_name(name) for name in (*folded, self.view.name(node))]
        if len(names) > _CHAIN:
            left_out = len(names) - _CHAIN
            names[_CHAIN // 2 : -(_CHAIN // 2)] = [f"… ({left_out}) …"]
        return [f"folded chain: {' > '.join(names)}"]

    def sites(self) -> list[str]:
        """Return the file and the line of the call, if all call paths have the same."""
        tree, rows = self.view.tree, self.own_rows
        callers, lines = tree.parent[rows], tree.site[rows]
        # There may be 10^6 rows, so files are compared only if all lines are equal.
        if not len(rows) or (callers == ROOT).any() or (lines != lines[0]).any():
            return []
        files = {tree.regions[k].file for k in np.unique(tree.region[callers]).tolist()}
        if len(files) != 1:
            return []
        (file,), line = files, int(lines[0])
        return [] if line == NO_LINE else [f"call at {printable(file) or '<unknown file>'}:{line}"]

    def places(self) -> list[str]:
        """Return the files and lines of the first functions of the node."""
        places = {_place(region) for region in self.regions[:_NEIGHBOURS]} - {""}
        return [f"source {place}" for place in sorted(places)]

    def surroundings(self, costs: Costs, note: str = "") -> list[str]:
        """Return the neighbours with their parts of `costs`, and the places in the source.

        Parameters
        ----------
        costs : one column
        note : what the parts are of, if there are any
        """
        callers, callees = self.neighbours(costs)
        note *= "%" in callees
        return [f"called by {callers}", f"calls {callees}{note}", *self.sites(), *self.places()]

    def series(self, points: FloatArray, values: Iterable[float], unit: str) -> str:
        """Return values at points as text: ``8: 1.2 s, 16: 1.3 s``."""
        pairs = zip(points.tolist(), values, strict=True)
        return ", ".join(f"{parameter_value(p)}: {self.style.amount(v, unit)}" for p, v in pairs)

    def drawn(
        self,
        fitted: Fitted,
        rows: Rows,
        target: float,
        *,
        room: int,
        height: int,
        at_target: Total = (np.nan,) * 3,
        measured: bool = False,
    ) -> list[str]:
        """Return a chart of some call paths.

        Parameters
        ----------
        fitted, rows, target, at_target, measured : as for `sketch`
        room, height : size of the plotting area, in terminal cells
        """
        from callpath_modeler.report.chart import draw  # drawn after the first screen

        curve = sketch(fitted, rows, target, at_target, measured=measured, count=2 * room)
        unit, name, style = fitted.metric.unit, fitted.parameter, self.style
        return draw(curve, unit, parameter=name, width=room, height=height, style=style)

    def neighbours(self, costs: Costs) -> tuple[str, str]:
        """Return the callers and the callees of the call paths, each with its part of `costs`."""
        tree, rows = self.view.tree, self.own_rows
        value = costs.inclusive[:, 0]
        called = tree.parent[rows] != ROOT
        is_caller = np.zeros(len(tree) + 1, bool)  # the last entry stands for callers of roots
        is_caller[rows] = True
        below = np.flatnonzero(is_caller[tree.parent])
        callers = tree.parent[rows[called]]
        return _named(tree, callers, value[rows[called]]), _named(tree, below, value[below])


def _named(tree: CallTree, rows: NDArray[np.integer], values: FloatArray) -> str:
    """Return the names of functions, the costliest first, with their shares."""
    regions = tree.region[rows]
    finite = np.nan_to_num(values, posinf=1.0)
    cost = np.bincount(regions, weights=finite, minlength=len(tree.regions))
    present = np.flatnonzero(np.bincount(regions, minlength=len(tree.regions)))
    order = present[np.argsort(-cost[present], kind="stable")]
    whole = cost.sum()
    named = []
    for region in order[:_NEIGHBOURS].tolist():
        name = short_name(tree.regions[region].name)
        shown = whole > 0 and len(order) > 1
        named.append(f"{name} {percent(float(cost[region] / whole))}" if shown else name)
    more = [f"{len(order) - _NEIGHBOURS} more"] if len(order) > _NEIGHBOURS else []
    return ", ".join([*named, *more]) or "nothing"


def _place(region: Region) -> str:
    return f"{region.file}:{region.line}" if region.file and region.line >= 0 else ""
