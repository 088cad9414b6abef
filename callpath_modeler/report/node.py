"""What there is to know of a node of a view: model, chart, alternatives, neighbours, values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.forecast import Forecast, Foreseen
from callpath_modeler.analysis.trust import MARKS
from callpath_modeler.modeling import FitStatus
from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.groups import Rows, outermost
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.profile.schema import Region
from callpath_modeler.profile.views import View, ViewKind
from callpath_modeler.report.chart import draw
from callpath_modeler.report.layout import shorten
from callpath_modeler.report.model import curve_of, measured_of
from callpath_modeler.units import counted, interval, parameter_value, percent, quantity

_WORTH_A_WORD = 0.01
"""Probability from which on another hypothesis is listed."""
_BANDED = 64
"""Of more call paths together, the chart has a band at the target alone."""
_TITLE = 100
"""Cells for a call path."""
_NEIGHBOURS = 4
_TERMS = 4
"""A sum of models with more terms is not written out."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeReport:
    """A node, or siblings that share a line.

    Attributes
    ----------
    forecast : the predictions
    view : the view it is of
    nodes : the node; or the siblings
    inclusive : whether its inclusive value is meant
    ascii_only : use no character beyond ASCII
    """

    forecast: Forecast
    view: View
    nodes: Rows
    inclusive: bool
    ascii_only: bool = False

    @property
    def own_rows(self) -> Rows:
        """The call paths that it stands for, ascending."""
        return np.sort(np.concatenate([self.view.rows(node) for node in self.nodes.tolist()]))

    @property
    def rows(self) -> Rows:
        """The call paths that its value is made of, ascending."""
        rows = self.own_rows
        if not self.inclusive:
            return rows
        tree = self.view.tree
        outer = rows[outermost(tree, rows, np.zeros(len(rows), np.intp))]
        if len(outer) == 1:
            return np.arange(outer[0], tree.end[outer[0]])
        change = np.zeros(len(tree) + 1, np.intp)
        np.add.at(change, outer, 1)
        np.add.at(change, tree.end[outer], -1)
        return np.flatnonzero(np.cumsum(change))

    @property
    def regions(self) -> list[Region]:
        """The distinct regions of the call paths, in the order of their numbers."""
        tree = self.view.tree
        return [tree.regions[k] for k in np.unique(tree.region[self.own_rows]).tolist()]

    def title(self) -> str:
        """Return the name, with who calls it."""
        if len(self.nodes) > 1:
            return f"{len(self.nodes)} nodes that share a line"
        node = int(self.nodes[0])
        if self.view.kind is ViewKind.TOP_DOWN:
            return shorten([short_name(n) for n in self.view.tree.names(node)], _TITLE)
        return " called by ".join(map(short_name, self.view.names(node)))

    def model(self) -> list[str]:
        """Return the formula, and what it says at the target."""
        fitted, rows = self.forecast.fitted, self.rows
        parts = rows[fitted.modelled[rows]]
        if not len(parts):
            return [f"no model: {fitted.status(int(rows[0])).replace('_', ' ')}"]
        pretty, own_and_whole = not self.ascii_only, self._values()
        main = own_and_whole[1 if self.inclusive else 0]
        what = f"{fitted.metric.name}({fitted.parameter})"
        formula = fitted.models.sum_formula(parts, fitted.parameter, pretty=pretty)
        if len(parts) == 1:
            formula = fitted.models.formula(int(parts[0]), fitted.parameter, pretty=pretty)
        elif formula.count(" + ") >= _TERMS:
            formula = "" if len(parts) > 1 else formula
        lines = [f"{what} = {formula}"] if formula else []
        if len(parts) > 1:
            lines.append(f"{what}: sum of {counted(len(parts), 'model')}")
        return [*lines, self._at_target(main)]

    def _values(self) -> tuple[Foreseen, Foreseen]:
        if len(self.nodes) == 1:
            return self.forecast.of_nodes(self.view, self.nodes)
        return self.forecast.of_siblings(self.view, self.nodes)

    def _at_target(self, main: Foreseen) -> str:
        forecast, unit = self.forecast, self.forecast.fitted.metric.unit
        growth = forecast.known.growth_text(int(main.growth[0]), pretty=not self.ascii_only)
        if np.isinf(forecast.target):
            return f"in the limit {percent(float(main.share[0]))}, {growth}"
        value = quantity(float(main.value[0]), unit, ascii_only=self.ascii_only)
        low, high = float(main.low[0]), float(main.high[0])
        band = f" ({interval(low, high, unit, ascii_only=self.ascii_only)})"
        trust = int(main.trust[0])
        marks = f" {'●' * trust}{'○' * (MARKS - trust)}" if trust >= 0 else ""
        at = f"{forecast.fitted.parameter} = {parameter_value(forecast.target)}"
        known = "" if np.isnan(low) else band
        return f"at {at}: {value}{known}, {percent(float(main.share[0]))}, {growth}{marks}"

    def chart(self, width: int, height: int) -> list[str]:
        """Draw measured values, model, band, end of the data and target.

        Parameters
        ----------
        width, height : of all of it, in terminal cells; too little gives no chart
        """
        fitted, rows = self.forecast.fitted, self.rows
        room = width - 18
        if room < 12 or height < 5 or not fitted.modelled[rows].any():
            return []
        banded = int(fitted.modelled[rows].sum()) <= _BANDED
        curve = curve_of(fitted, rows, self.forecast.target, count=2 * room, banded=banded)
        if not banded and np.isfinite(self.forecast.target):
            main = self._values()[1 if self.inclusive else 0]
            low, high = curve.low.copy(), curve.high.copy()
            at = int(np.argmin(np.abs(curve.grid - self.forecast.target)))
            low[at], high[at] = main.low[0], main.high[0]
            curve = replace(curve, low=low, high=high)
        return draw(
            curve,
            fitted.metric.unit,
            parameter=fitted.parameter,
            width=room,
            height=height - 2,
            ascii_only=self.ascii_only,
        )

    def alternatives(self) -> list[str]:
        """Return what else the model could be, with probabilities; of a sum, what leads it."""
        fitted, rows = self.forecast.fitted, self.rows
        parts = rows[fitted.modelled[rows]]
        if not len(parts):
            return []
        if len(parts) > 1:
            codes = self.forecast.known.growth[0][parts]
            value = np.nan_to_num(self.forecast.costs.exclusive[parts, 1])
            lead = int(parts[np.lexsort((value, codes))[-1]])
            who = shorten([short_name(n) for n in fitted.experiment.tree.names(lead)], 44)
            growth = fitted.models.growth(lead).text(fitted.parameter, pretty=not self.ascii_only)
            return [f"fastest: {who}, {growth}"]
        row = int(parts[0])
        lines = [f"probability {float(fitted.models.weight[row]):.0%}; {self._quality(row)}"]
        others = fitted.models.alternatives(row, fitted.parameter)
        shown = [other for other in others if other.weight >= _WORTH_A_WORD]
        lines += ["could also be" if shown else "nothing else fits nearly as well"]
        for other in shown:
            value = float(other.values([self.forecast.target])[0])
            text = quantity(value, fitted.metric.unit, ascii_only=self.ascii_only)
            lines.append(f"  {other.weight:>4.0%}  {text:>10}  {other.formula}")
        return lines

    def _quality(self, row: int) -> str:
        models = self.forecast.fitted.models
        noise = float(models.noise[row])
        parts = [] if np.isnan(noise) else [f"noise {noise:.1%}"]
        status = FitStatus(int(models.status[row]))
        parts += [status.name.lower()] if models.doubtful()[row] else []
        return ", ".join([*parts, f"{int(models.used[row])} points"])

    def facts(self) -> list[str]:
        """Return excess work, values per scale, callers and callees, and where the source is."""
        own, whole = self._values()
        fitted = self.forecast.fitted
        excess = [percent(float(values.excess[0])) for values in (whole, own)]
        since = f"since {fitted.parameter} = {parameter_value(self.forecast.base)}"
        lines = [f"excess {excess[0]} inclusive, {excess[1]} exclusive, {since}"]
        measured = measured_of(fitted, self.rows)
        pairs = zip(fitted.points.tolist(), measured.tolist(), strict=True)
        values = [
            f"{parameter_value(p)}: {quantity(v, fitted.metric.unit, ascii_only=self.ascii_only)}"
            for p, v in pairs
        ]
        lines.append(f"measured at {fitted.parameter} = {', '.join(values)}")
        callers, callees = self._neighbours()
        lines += [f"called by {callers}", f"calls {callees}"]
        places = {_place(region) for region in self.regions[:_NEIGHBOURS]} - {""}
        return [*lines, *(f"source {place}" for place in sorted(places))]

    def _neighbours(self) -> tuple[str, str]:
        """Return who calls the call paths, and what they call, each with the part of the cost."""
        tree, rows = self.view.tree, self.own_rows
        value = np.nan_to_num(self.forecast.costs.inclusive[:, 1])
        callers = tree.parent[rows]
        below = np.flatnonzero(np.isin(tree.parent, rows))
        called = _named(self.view, callers[callers != ROOT], value[rows[callers != ROOT]])
        return called, _named(self.view, below, value[below])


def _named(view: View, rows: Sequence[int] | NDArray[np.integer], values: np.ndarray) -> str:
    """Name functions, the costliest first, with their parts of the whole."""
    tree = view.tree
    cost: dict[str, float] = {}
    by_name = np.unique(tree.region[rows]).tolist()
    regions = tree.region[rows]
    for region in by_name:
        name = short_name(tree.regions[region].name)
        cost[name] = cost.get(name, 0.0) + float(values[regions == region].sum())
    whole = sum(cost.values())
    named = [
        f"{name} {percent(part / whole)}" if 0 < whole < np.inf and len(cost) > 1 else name
        for name, part in sorted(cost.items(), key=lambda item: -item[1])[:_NEIGHBOURS]
    ]
    more = [f"{len(cost) - _NEIGHBOURS} more"] if len(cost) > _NEIGHBOURS else []
    return ", ".join([*named, *more]) or "nothing"


def _place(region: Region) -> str:
    return f"{region.file}:{region.line}" if region.file and region.line >= 0 else region.file
