"""Nodes of a view: call paths, neighbours, model, chart, alternatives, values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, cast

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.answer import Answer
from callpath_modeler.analysis.cause import NOTHING
from callpath_modeler.analysis.cause_search import find_causes
from callpath_modeler.analysis.further_excess import LineLosses, line_losses
from callpath_modeler.analysis.node_values import Columns, NodeAnswer, NodeValues
from callpath_modeler.analysis.pair_forecast import ViewForecast
from callpath_modeler.analysis.run_time import ImbalanceSources
from callpath_modeler.analysis.uncertain import Total, marks_text
from callpath_modeler.arrays import FloatArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import FitStatus
from callpath_modeler.printable import printable
from callpath_modeler.profile.calltree import NO_LINE, ROOT, CallTree
from callpath_modeler.profile.groups import Costs, Rows, outermost
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.profile.schema import Region
from callpath_modeler.profile.tree_views import View, ViewKind
from callpath_modeler.report.cause_text import imbalance_facts
from callpath_modeler.report.columns import amount_text
from callpath_modeler.report.curve import draw, measured_of, sketch
from callpath_modeler.report.headline import target_text
from callpath_modeler.report.layout import DEFAULT_STYLE, TextStyle, shorten
from callpath_modeler.report.losses_text import excess_symbol, excess_texts
from callpath_modeler.report.model_formulas import (
    NO_OTHER,
    formula_from_text,
    hypotheses,
    model_range_texts,
)
from callpath_modeler.report.model_text import imbalance_cells, imbalances
from callpath_modeler.units import counted, parameter_value, percent, signed_percent

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


_AXIS = 18
"""Width around the plotting area of a chart, in cells: labels and the parameter's name."""
_NAMED = 30
"""Width of a call path in a sentence, in cells."""
_TERMS = 4
"""Largest number of terms of a sum of models that is written as a formula."""


@dataclass(frozen=True, eq=False)
class NodeReport(ViewNode[NodeValues]):
    """The description of a node: its values are those of a forecast."""

    forecast: Answer

    @cached_property
    def parts(self) -> Rows:
        """Call paths that contribute to the value and have a model."""
        modelled = self.forecast.inputs.modelled[self.rows]
        return self.rows if modelled.all() else self.rows[modelled]

    def model(self) -> list[str]:
        """Return the formula and its prediction at the target."""
        fitted, parts = self.forecast.fitted, self.parts
        seen = self._measured()
        if fitted.is_measured_only:
            return seen
        if not len(parts):
            return [*seen, f"no model: {fitted.status(int(self.rows[0])).replace('_', ' ')}"]
        return [*seen, *formula_lines(fitted, parts, self.style), self._predicted()]

    @property
    def _at(self) -> str:
        return f"at {self.forecast.fitted.parameter} = {parameter_value(self.forecast.target)}"

    def _amount(self) -> str:
        """Return the value at the target, with its band if it has one."""
        main, unit = self.main, self.forecast.fitted.metric.unit
        value, low, high = (float(each[0]) for each in (main.value, main.low, main.high))
        return amount_text(value, low, high, unit, style=self.style)

    def _measured(self) -> list[str]:
        """Return the measured value at the target, if that was run."""
        forecast, main = self.forecast, self.main
        if not forecast.repetitions:
            return []
        how = f"at {target_text(forecast)}"
        if np.isnan(main.value[0]):
            return [f"{how}: does not occur"]
        trust = -1 if forecast.fitted.is_measured_only else int(main.trust[0])
        sure = marks_text(trust)
        return [f"{how}: {self._amount()}, {percent(float(main.share[0]))} {sure}".rstrip()]

    def _predicted(self) -> str:
        """Return the prediction at the target, with its error if that was measured."""
        forecast, main, unit = self.forecast, self.main, self.forecast.fitted.metric.unit
        growth = forecast.inputs.growth_text(int(main.growth[0]), pretty=not self.style.ascii_only)
        if len(self.parts) == 1:
            parts, pretty = self.parts.astype(np.intp), not self.style.ascii_only
            (growth,) = model_range_texts(forecast.fitted, parts, pretty=pretty)
        if np.isinf(forecast.target):
            return f"in the limit {percent(float(main.share[0]))}, {growth}"
        if forecast.repetitions:
            said = self.style.amount(float(main.predicted[0]), unit)
            off = signed_percent(float(main.deviation[0]))
            return f"{self._at}: {said} predicted, error {off}, {growth}"
        sure = marks_text(int(main.trust[0]))
        share = percent(float(main.share[0]))
        return f"{self._at}: {self._amount()}, {share}, {growth} {sure}".rstrip()

    def chart(self, width: int, height: int) -> list[str]:
        """Return a chart of measured values, model, band, end of the data and target.

        Parameters
        ----------
        width, height : size with labels, in terminal cells; there is no chart if it is too small
        """
        fitted, room = self.forecast.fitted, width - _AXIS
        if room < 12 or height < 5 or not len(self.parts):
            return []
        main, target = self.main, self.forecast.target
        at_target = float(main.value[0]), float(main.low[0]), float(main.high[0])
        return self.drawn(
            fitted,
            self.rows,
            target,
            room=room,
            height=height - 2,
            at_target=at_target,
            measured=self.forecast.repetitions > 0,
        )

    def alternatives(self) -> list[str]:
        """Return alternative models with probabilities; for a sum, its fastest growing part."""
        fitted, parts = self.forecast.fitted, self.parts
        if not len(parts):
            return []
        if len(parts) > 1:
            return [f"fastest: {self._fastest()}"]
        row = int(parts[0])
        known = hypotheses(fitted, row, self.forecast.target, style=self.style)
        lines = [f"{known.sentence}; {self._quality(row)}"]
        lines += ["could also be" if known.others else NO_OTHER]
        for other in known.others:
            value = float(other.values([self.forecast.target])[0])
            text = self.style.amount(value, fitted.metric.unit)
            lines.append(f"  {percent(other.weight):>5}  {text:>10}  {other.formula}")
        return lines

    def _fastest(self) -> str:
        """Return the name of the fastest growing call path; among equals, the costliest."""
        fitted, parts = self.forecast.fitted, self.parts
        codes = self.forecast.inputs.growth[0].numbers[parts]
        fastest = parts[codes == codes.max()]
        lead = int(
            fastest[np.argmax(np.nan_to_num(self.forecast.costs.value.exclusive[fastest, 0]))]
        )
        who = shorten([short_name(name) for name in fitted.experiment.tree.names(lead)], _NAMED)
        growth = fitted.models.growth(lead).text(fitted.parameter, pretty=not self.style.ascii_only)
        return f"{who}, {growth}"

    def _quality(self, row: int) -> str:
        models = self.forecast.fitted.models
        noise = float(models.noise[row])
        parts = [] if np.isnan(noise) else [f"noise {percent(noise, 1)}"]
        status = FitStatus(int(models.status[row]))
        parts += [status.name.lower()] if models.doubtful()[row] else []
        return ", ".join([*parts, f"{int(models.used[row])} points"])

    def facts(self) -> list[str]:
        """Return excess work, measured values, neighbours, and the place in the source code."""
        own, whole = self.values
        fitted = self.forecast.fitted
        two = self.forecast.is_comparison
        lines = []
        if two or not fitted.is_measured_only:
            name = excess_symbol(fitted) if two else "excess"
            excess = [excess_texts(values.excess, values.doubted)[0] for values in (whole, own)]
            since = f"since {fitted.parameter} = {parameter_value(self.forecast.base)}"
            line = f"{name} {excess[0]} inclusive, {excess[1]} exclusive, {since}"
            lines.append(line if fitted.ideal is None else f"{line}, {fitted.ideal.meaning}")
        values = self.series(
            fitted.points, measured_of(fitted, self.rows).tolist(), fitted.metric.unit
        )
        lines.append(f"measured at {fitted.parameter} = {values}")
        uneven = [] if self.alone is None else imbalance_cells(fitted, self.alone)
        if uneven:
            what = " of the exclusive cost" if len(self.rows) > 1 else ""
            lines.append(f"imbalance{what} at {fitted.parameter} = {', '.join(uneven)}")
        if self.alone is not None:
            known = ImbalanceSources.of(self.forecast.inputs.fitted)
            told = imbalance_facts(known, self.alone, style=self.style)
            lines += [f"{word} at {text}" for word, text in told]
            lines += self._why(self.alone)
        return [*lines, *self.surroundings(self.forecast.costs.value)]

    def _why(self, row: int) -> list[str]:
        """Return why the exclusive time of a call path grows, or nothing if it does not."""
        fitted = self.forecast.fitted
        found = find_causes(fitted, self.forecast.target, [row]) if fitted.modelled[row] else None
        label = NOTHING if found is None else found.labels[0]
        what = " of the exclusive cost" if len(self.rows) > 1 else ""
        return [] if label == NOTHING else [f"cause of the growth{what}: {label}"]

    @cached_property
    def line_losses(self) -> LineLosses | None:
        """Excess work of the lines of the call paths; None = the metric is not additive."""
        fitted = self.forecast.fitted
        return line_losses(fitted, self.own_rows) if fitted.metric.additive else None

    @property
    def has_losing_line(self) -> bool:
        """Whether any line is known to lose time, or to cost time at the only scale."""
        return self.line_losses is not None and self.line_losses.worst is not None

    def lines_title(self, file: str, *, known: bool) -> str:
        """Return the heading of the lines of a file; `known` = its text is known."""
        fitted, losses = self.forecast.fitted, self.line_losses
        what = f"{printable(file.rpartition('/')[2]) or '<unknown file>'}: "
        if losses is None:
            return what
        at = f"{fitted.parameter} = {parameter_value(losses.base)}"
        if losses.is_share:
            what += "cost by line" if fitted.has_unknown_scale else f"cost by line at {at}"
        else:
            name = excess_symbol(fitted)
            what += f"{name} by line, {at} to {parameter_value(losses.scale)}"
        return what if known else f"{what}; no source text"

    def imbalance(self) -> str:
        """Return the imbalance at the largest scale as a short text, or "" if it is not known."""
        fitted, row = self.forecast.fitted, self.alone
        known = [] if row is None else imbalances(fitted, row)
        if not known:
            return ""
        what = "exclusive imbalance" if len(self.rows) > 1 else "imbalance"
        return f"{what} {known[-1][1]:.2f} at {fitted.parameter} = {parameter_value(known[-1][0])}"


class FormulaNodeReport(NodeReport):
    """Description of a node with a formula. Its operands have models; it has none."""

    def model(self) -> list[str]:
        """Return the formula, and the values at the target."""
        forecast, metric, at = self.forecast, self.forecast.fitted.metric, self._at
        sure = marks_text(int(self.main.trust[0])) if forecast.has_models else ""
        basis = "measured" if forecast.repetitions else "predicted"
        lines = [f"{metric.name} = {metric.description}, of sums"]
        lines.append(f"{at}: {self._amount()} {basis} {sure}".rstrip())
        if forecast.repetitions and forecast.has_models:
            said = self.style.amount(float(self.main.predicted[0]), metric.unit)
            off = signed_percent(float(self.main.deviation[0]))
            lines.append(f"{at}: {said} predicted, error {off}")
        return lines

    def chart(self, width: int, height: int) -> list[str]:  # noqa: ARG002
        """Return an empty list, because the node has no model."""
        return []

    def alternatives(self) -> list[str]:
        """Return an empty list, because the node has no model."""
        return []

    def facts(self) -> list[str]:
        """Return measured values, neighbours, and the place in the source code."""
        fitted, inputs = self.forecast.fitted, self.forecast.inputs
        at = (self._value(inputs.measured_at(point)) for point in range(len(fitted.points)))
        values = self.series(fitted.points, at, fitted.metric.unit)
        of = f" (parts of {self.forecast.size_metric.name})"
        measured = f"measured at {fitted.parameter} = {values}"
        return [measured, *self.surroundings(self.forecast.decides, of)]

    def _value(self, costs: Costs) -> float:
        """Return the value of the node in one column."""
        if len(self.nodes) == 1:
            return float(self.view.values(self.nodes, costs)[int(self.inclusive)][0, 0])
        return float(self.view.together(self.nodes, costs)[int(self.inclusive)][0])


def formula_lines(fitted: Fitted, parts: Rows, style: TextStyle) -> list[str]:
    """Return the model of call paths that have models: a formula, or the number of models.

    Parameters
    ----------
    fitted : the models
    parts : the call paths, at least one
    style : characters of text
    """
    what, pretty = f"{fitted.metric.name}({fitted.parameter})", not style.ascii_only
    if len(parts) == 1:
        formula = fitted.models.formula(int(parts[0]), fitted.parameter, pretty=pretty)
        return [f"{what} = {formula}{formula_from_text(fitted, parts)}"]
    lines = [f"{what}: sum of {counted(len(parts), 'model')}"]
    formula = fitted.models.sum_formula(parts, fitted.parameter, pretty=pretty)
    if formula.count(" + ") < _TERMS:
        lines.insert(0, f"{what} = {formula}{formula_from_text(fitted, parts)}")
    return lines
