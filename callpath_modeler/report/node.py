"""What there is to know of a node of a view: model, chart, alternatives, neighbours, values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.forecast import Forecast, NodeForecasts
from callpath_modeler.analysis.trust import marks_text
from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling import FitStatus
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.groups import Rows, outermost
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.profile.schema import Region
from callpath_modeler.profile.views import View, ViewKind
from callpath_modeler.report.answer import target_text
from callpath_modeler.report.change_points import formula_from_text
from callpath_modeler.report.chart import draw
from callpath_modeler.report.columns import amount_text
from callpath_modeler.report.curve import measured_of, sketch
from callpath_modeler.report.hypotheses import NO_OTHER, hypotheses
from callpath_modeler.report.layout import shorten
from callpath_modeler.report.model import (
    imbalance_cells,
    imbalances,
)
from callpath_modeler.report.ranking_table import model_range_texts
from callpath_modeler.report.requirements import imbalance_facts
from callpath_modeler.units import (
    counted,
    parameter_value,
    percent,
    quantity,
    signed_percent,
)

_AXIS = 18
"""Cells beside the plotting area of a chart: labels and the name of the parameter."""
_NAMED = 30
"""Cells for a call path in a sentence."""
_TITLE = 100
"""Cells for a call path."""
_NEIGHBOURS = 4
_TERMS = 4
"""A sum of models with more terms is not written out."""


@dataclass(frozen=True, eq=False)
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

    @cached_property
    def own_rows(self) -> Rows:
        """The call paths that it stands for, ascending."""
        if len(self.nodes) == 1:
            return self.view.rows(int(self.nodes[0]))
        return np.sort(np.concatenate([self.view.rows(node) for node in self.nodes.tolist()]))

    @cached_property
    def rows(self) -> Rows:
        """The call paths that its value is made of, ascending."""
        rows = self.own_rows
        if not self.inclusive:
            return rows
        tree = self.view.tree
        outer = rows[outermost(tree, rows)]
        if len(outer) == 1:
            return np.arange(outer[0], tree.end[outer[0]], dtype=np.int32)
        # In preorder, a row is below an earlier one if that one's subtree has not ended yet.
        reached = np.zeros(len(tree), np.int32)
        reached[outer] = tree.end[outer]
        np.maximum.accumulate(reached, out=reached)
        return np.flatnonzero(np.arange(len(tree), dtype=np.int32) < reached).astype(np.int32)

    @cached_property
    def parts(self) -> Rows:
        """Those of the call paths that its value is made of that have a model."""
        modelled = self.forecast.inputs.modelled[self.rows]
        return self.rows if modelled.all() else self.rows[modelled]

    @cached_property
    def values(self) -> tuple[NodeForecasts, NodeForecasts]:
        """Exclusive and inclusive values, each [1]."""
        if len(self.nodes) == 1:
            return self.forecast.of_nodes(self.view, self.nodes)
        return self.forecast.of_siblings(self.view, self.nodes)

    @property
    def main(self) -> NodeForecasts:
        """The values that lead, [1]."""
        return self.values[1 if self.inclusive else 0]

    @property
    def regions(self) -> list[Region]:
        """The distinct regions of the call paths, in the order of their numbers."""
        tree = self.view.tree
        return [tree.regions[k] for k in np.unique(tree.region[self.own_rows]).tolist()]

    def title(self, room: int = _TITLE) -> str:
        """Return the name, with who calls it; top-down, the middle gives way to fit `room`."""
        if len(self.nodes) > 1:
            return f"{len(self.nodes)} nodes that share a line"
        node = int(self.nodes[0])
        if self.view.kind is ViewKind.TOP_DOWN:
            return shorten([short_name(n) for n in self.view.tree.names(node)], room)
        return " called by ".join(map(short_name, self.view.names(node)))

    def model(self) -> list[str]:
        """Return the formula, and what it says at the target."""
        fitted, parts = self.forecast.fitted, self.parts
        seen = self._measured()
        if not len(parts):
            return [*seen, f"no model: {fitted.status(int(self.rows[0])).replace('_', ' ')}"]
        what = f"{fitted.metric.name}({fitted.parameter})"
        if len(parts) == 1:
            row = int(parts[0])
            formula = fitted.models.formula(row, fitted.parameter, pretty=not self.ascii_only)
            formula += formula_from_text(fitted, parts)
            return [*seen, f"{what} = {formula}", self._predicted()]
        lines = [f"{what}: sum of {counted(len(parts), 'model')}"]
        formula = fitted.models.sum_formula(parts, fitted.parameter, pretty=not self.ascii_only)
        if formula.count(" + ") < _TERMS:
            lines.insert(0, f"{what} = {formula}{formula_from_text(fitted, parts)}")
        return [*seen, *lines, self._predicted()]

    @property
    def _at(self) -> str:
        return f"at {self.forecast.fitted.parameter} = {parameter_value(self.forecast.target)}"

    def _amount(self) -> str:
        """Write the value at the target, with its band if it has one."""
        main, unit = self.main, self.forecast.fitted.metric.unit
        value, low, high = (float(each[0]) for each in (main.value, main.low, main.high))
        return amount_text(value, low, high, unit, ascii_only=self.ascii_only)

    def _measured(self) -> list[str]:
        """Say what was measured at the target, if it was run two times or more."""
        forecast, main = self.forecast, self.main
        if not forecast.repetitions:
            return []
        how = f"at {target_text(forecast)}"
        if np.isnan(main.value[0]):
            return [f"{how}: does not occur"]
        sure = marks_text(int(main.trust[0]))
        return [f"{how}: {self._amount()}, {percent(float(main.share[0]))} {sure}".rstrip()]

    def _predicted(self) -> str:
        """Say what models predict at the target; where it was measured, how far that is off."""
        forecast, main, unit = self.forecast, self.main, self.forecast.fitted.metric.unit
        growth = forecast.inputs.growth_text(int(main.growth[0]), pretty=not self.ascii_only)
        if len(self.parts) == 1:
            parts, pretty = self.parts.astype(np.intp), not self.ascii_only
            (growth,) = model_range_texts(forecast.fitted, parts, pretty=pretty)
        if np.isinf(forecast.target):
            return f"in the limit {percent(float(main.share[0]))}, {growth}"
        if forecast.repetitions:
            said = quantity(float(main.predicted[0]), unit, ascii_only=self.ascii_only)
            off = signed_percent(float(main.deviation[0]))
            return f"{self._at}: {said} predicted, {off}, {growth}"
        sure = marks_text(int(main.trust[0]))
        share = percent(float(main.share[0]))
        return f"{self._at}: {self._amount()}, {share}, {growth} {sure}".rstrip()

    def chart(self, width: int, height: int) -> list[str]:
        """Draw measured values, model, band, end of the data and target.

        Parameters
        ----------
        width, height : of all of it, in terminal cells; too little gives no chart
        """
        fitted, room = self.forecast.fitted, width - _AXIS
        if room < 12 or height < 5 or not len(self.parts):
            return []
        main, target = self.main, self.forecast.target
        at_target = float(main.value[0]), float(main.low[0]), float(main.high[0])
        measured = self.forecast.repetitions > 0
        curve = sketch(fitted, self.rows, target, at_target, measured=measured, count=2 * room)
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
        fitted, parts = self.forecast.fitted, self.parts
        if not len(parts):
            return []
        if len(parts) > 1:
            return [f"fastest: {self._fastest()}"]
        row = int(parts[0])
        known = hypotheses(fitted, row, self.forecast.target, ascii_only=self.ascii_only)
        lines = [f"{known.sentence}; {self._quality(row)}"]
        lines += ["could also be" if known.others else NO_OTHER]
        for other in known.others:
            value = float(other.values([self.forecast.target])[0])
            text = quantity(value, fitted.metric.unit, ascii_only=self.ascii_only)
            lines.append(f"  {percent(other.weight):>5}  {text:>10}  {other.formula}")
        return lines

    def _fastest(self) -> str:
        """Name the call path that grows fastest, of equals the costliest."""
        fitted, parts = self.forecast.fitted, self.parts
        codes = self.forecast.inputs.growth[0].numbers[parts]
        fastest = parts[codes == codes.max()]
        lead = int(fastest[np.argmax(np.nan_to_num(self.forecast.value.exclusive[fastest, 0]))])
        who = shorten([short_name(name) for name in fitted.experiment.tree.names(lead)], _NAMED)
        growth = fitted.models.growth(lead).text(fitted.parameter, pretty=not self.ascii_only)
        return f"{who}, {growth}"

    def _quality(self, row: int) -> str:
        models = self.forecast.fitted.models
        noise = float(models.noise[row])
        parts = [] if np.isnan(noise) else [f"noise {percent(noise, 1)}"]
        status = FitStatus(int(models.status[row]))
        parts += [status.name.lower()] if models.doubtful()[row] else []
        return ", ".join([*parts, f"{int(models.used[row])} points"])

    def facts(self) -> list[str]:
        """Return excess work, what was measured per scale, neighbours, and where the source is."""
        own, whole = self.values
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
        uneven = [] if self._alone is None else imbalance_cells(fitted, self._alone)
        if uneven:
            what = " of its own cost" if len(self.rows) > 1 else ""
            lines.append(f"imbalance{what} at {fitted.parameter} = {', '.join(uneven)}")
        if self._alone is not None:
            known = self.forecast.inputs.unevenness
            told = imbalance_facts(known, self._alone, ascii_only=self.ascii_only)
            lines += [f"{word} at {text}" for word, text in told]
        callers, callees = self._neighbours()
        lines += [f"called by {callers}", f"calls {callees}"]
        places = {_place(region) for region in self.regions[:_NEIGHBOURS]} - {""}
        return [*lines, *(f"source {place}" for place in sorted(places))]

    @property
    def _alone(self) -> int | None:
        """The call path, if it is one: of several together, others may be the slowest processes."""
        return int(self.own_rows[0]) if len(self.own_rows) == 1 else None

    def imbalance(self) -> str:
        """Return the imbalance at the largest scale where it is known, in a few words, or none."""
        fitted, row = self.forecast.fitted, self._alone
        known = [] if row is None else imbalances(fitted, row)
        if not known:
            return ""
        what = "own imbalance" if len(self.rows) > 1 else "imbalance"
        return f"{what} {known[-1][1]:.2f} at {fitted.parameter} = {parameter_value(known[-1][0])}"

    def _neighbours(self) -> tuple[str, str]:
        """Return who calls the call paths, and what they call, each with the part of the cost."""
        tree, rows = self.view.tree, self.own_rows
        value = self.forecast.value.inclusive[:, 0]
        called = tree.parent[rows] != ROOT
        is_caller = np.zeros(len(tree) + 1, bool)  # the last stands for what nothing calls
        is_caller[rows] = True
        below = np.flatnonzero(is_caller[tree.parent])
        callers = tree.parent[rows[called]]
        return _named(tree, callers, value[rows[called]]), _named(tree, below, value[below])


def _named(tree: CallTree, rows: NDArray[np.integer], values: FloatArray) -> str:
    """Name functions, the costliest first, with their parts of the whole."""
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
