"""Facts of a node of a view: value, model, chart, alternatives, neighbours, source."""

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
from callpath_modeler.modeling import FitStatus, summarise
from callpath_modeler.printable import printable
from callpath_modeler.profile.calltree import NO_LINE, ROOT, CallTree
from callpath_modeler.profile.groups import Costs, Rows, outermost
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.profile.schema import Region
from callpath_modeler.profile.tree_views import View, ViewKind
from callpath_modeler.report.cause_text import imbalance_facts
from callpath_modeler.report.columns import amount_text
from callpath_modeler.report.curve import Curve, draw, measured_of, sketch
from callpath_modeler.report.headline import at_text, is_lowered, target_text
from callpath_modeler.report.layout import DEFAULT_STYLE, TextStyle, cut, shorten
from callpath_modeler.report.losses_text import excess_texts
from callpath_modeler.report.model_formulas import (
    NO_OTHER,
    compared_text,
    formula_from_text,
    hypotheses,
    law_text,
    model_range_texts,
)
from callpath_modeler.units import counted, parameter_value, percent, setting_text, signed_percent

_TITLE = 100
"""Width of a call path, in cells."""
_NEIGHBOURS = 6
_CHAIN = 200
"""Largest number of names of a folded chain that are listed."""


Fact = tuple[str, str]
"""A label and a text about a node; three blanks separate the cells of a series."""
_FIRST = ("sum of", "model")
"""Labels of the facts of a model that the browser states before the others."""
_LONGEST = 1_000
"""Longest fact in the browser, in characters."""
_EXCLUSIVE = "its exclusive part"


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

    def sites(self) -> list[Fact]:
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
        where = f"{printable(file) or '<unknown file>'}:{line}"
        return [] if line == NO_LINE else [("call at", where)]

    def places(self) -> list[Fact]:
        """Return the places of the first functions of the node in the source code."""
        places = {origin(region) for region in self.regions[:_NEIGHBOURS]} - {""}
        return [("source", place) for place in sorted(places)]

    def surroundings(self, costs: Costs, *, note: str = "") -> list[Fact]:
        """Return the callers and callees with their parts of the node, and the source code.

        Parameters
        ----------
        costs : one column of sizes
        note : what the parts are of; "" = of the value
        """
        callers, callees = self.neighbours(costs)
        of = note * ("%" in callees)
        return [("called by", callers), ("calls", f"{callees}{of}"), *self.sites(), *self.places()]

    def series(self, points: FloatArray, values: Iterable[float], unit: str) -> str:
        """Return values at points as cells: ``8: 1.2 s   16: 1.3 s``."""
        pairs = zip(points.tolist(), values, strict=True)
        return "   ".join(f"{parameter_value(p)}: {self.style.amount(v, unit)}" for p, v in pairs)

    def drawn(self, curve: Curve, fitted: Fitted, *, room: int, height: int) -> list[str]:
        """Return the lines of a chart; `room` and `height` are the size of its area, in cells."""
        unit, name = fitted.metric.unit, fitted.parameter
        return draw(curve, unit, parameter=name, width=room, height=height, style=self.style)

    @property
    def has_parts(self) -> bool:
        """Whether values add up, so that callees have parts of their caller."""
        return True

    def neighbours(self, costs: Costs) -> tuple[str, str]:
        """Return the callers and the callees of the call paths, the costliest first.

        Callees have their parts of the node's inclusive value, and so have several callers.
        Without values that add up, there are no parts.
        """
        tree, rows = self.view.tree, self.own_rows
        value = np.nan_to_num(costs.inclusive[:, 0], posinf=1.0)
        whole = value[rows[outermost(tree, rows)]].sum() if self.has_parts else np.nan
        is_caller = np.zeros(len(tree) + 1, bool)  # the last entry stands for callers of roots
        is_caller[rows] = True
        below = np.flatnonzero(is_caller[tree.parent])
        called = rows[tree.parent[rows] != ROOT]
        callers = _named(tree, tree.parent[called], value[called], whole, least=2)
        return callers, _named(tree, below, value[below], whole, least=1)


def _named(
    tree: CallTree, rows: NDArray[np.integer], values: FloatArray, whole: float, *, least: int
) -> str:
    """Return the names of functions with their parts, where there are at least `least`."""
    regions, first, group = np.unique(tree.region[rows], return_index=True, return_inverse=True)
    cost = np.bincount(group, weights=values, minlength=len(regions))
    named = []
    for place in np.lexsort((first, -cost))[:_NEIGHBOURS].tolist():
        part = float(cost[place]) / whole if whole > 0 else 0.0
        shown = len(regions) >= least and not np.isnan(whole)
        name = short_name(tree.regions[regions[place]].name)
        named.append(f"{name} ({percent(part)})" if shown else name)
    more = [f"{len(regions) - _NEIGHBOURS} more"] if len(regions) > _NEIGHBOURS else []
    return ", ".join([*named, *more]) or "nothing"


def origin(region: Region) -> str:
    """Return the paradigm and the place of a function in the source code, as far as known."""
    place = f"{region.file}:{region.line}" if region.line >= 0 else region.file
    return " · ".join(part for part in (region.paradigm, place) if part)


_AXIS = 18
"""Width around the plotting area of a chart, in cells: labels and the parameter's name."""
_TERMS = 4
"""Largest number of terms of a sum of models that is written as a formula."""
_TWO_LAWS = "The law changes between two scales; beyond them the other law holds."
"""Status of call paths whose model has a change point."""
_GONE = "It does not occur at the largest scale; nothing is predicted."
"""Status of call paths that only have a model of smaller scales."""


@dataclass(frozen=True, eq=False)
class NodeReport(ViewNode[NodeValues]):
    """The facts of a node: its values are those of an answer.

    `cpmodel show`, the page and the browser state them, each in its own layout.
    """

    forecast: Answer

    @property
    def fitted(self) -> Fitted:
        """The models."""
        return self.forecast.fitted

    @property
    def pretty(self) -> bool:
        """Whether formulas have characters beyond ASCII."""
        return not self.style.ascii_only

    @property
    def has_parts(self) -> bool:
        """Whether values add up, so that callees have parts of their caller."""
        return self.fitted.metric.additive

    @cached_property
    def parts(self) -> Rows:
        """Call paths that contribute to the value and have a model."""
        modelled = self.forecast.inputs.modelled[self.rows]
        return self.rows if modelled.all() else self.rows[modelled]

    @cached_property
    def leader(self) -> int:
        """The contributing call path whose model grows fastest; -1 = there is no model."""
        parts = self.parts
        if len(parts) < 2:  # the growths of all call paths take long to find
            return int(parts[0]) if len(parts) else -1
        codes = self.forecast.inputs.growth[0].numbers[parts]
        fastest = parts[codes == codes.max()]
        return int(fastest[np.argmax(self.fitted.models.take(fastest).leading_coefficient())])

    # The value at the target

    @property
    def total(self) -> Total:
        """The value at the target with the ends of its band."""
        return float(self.main.value[0]), float(self.main.low[0]), float(self.main.high[0])

    @property
    def predicted(self) -> Total:
        """The prediction at the target, also where it was run; its band then is not made."""
        said = float(self.main.predicted[0]), np.nan, np.nan
        return said if self.forecast.repetitions else self.total

    def amount(self) -> str:
        """Return the value at the target, with its band if it has one."""
        return amount_text(*self.total, self.fitted.metric.unit, style=self.style)

    def measured(self) -> list[str]:
        """Return the measured value at the target, if that was run."""
        if not self.forecast.repetitions:
            return []
        is_absent = np.isnan(self.main.value[0])
        said = "it did not occur" if is_absent else self.amount()
        return [f"at {target_text(self.forecast)}: {said}"]

    def prediction(self) -> str:
        """Return the prediction at a finite target with its band, and its error if known."""
        fitted, target, style = self.fitted, self.forecast.target, self.style
        value, unit = self.predicted[0], fitted.metric.unit
        amount = amount_text(*self.predicted, unit, style=style)
        text = f"at {at_text(fitted, target)}: {amount}"
        by_models = float(fitted.models.sum_values(self.parts, np.array([target]))[0])
        if is_lowered(by_models, value):
            alone = style.amount(by_models, unit)
            text += f"; the formula gives {alone}, but all formulas together exceed the run time"
        off = float(self.main.deviation[0])
        if not self.forecast.repetitions or np.isnan(off):
            return text
        return f"{text}, error {signed_percent(off)}"

    # The model

    @property
    def growth(self) -> str:
        """The growth of the value; a range if the data leave it open; "" without a model."""
        return model_range_texts(self.fitted, np.array([self.leader]), pretty=self.pretty)[0]

    def no_model(self) -> str:
        """Return the reason why there is no model."""
        status = FitStatus(int(self.fitted.models.status[self.rows[0]]))
        return f"no model: {_GONE if status.modelled else status.sentence}"

    def whole_formula(self) -> list[str]:
        """Return the model of a call path in all parameters; that along one is a slice of it."""
        fitted, surface = self.fitted, self.fitted.surface
        if surface is None or self.inclusive or self.alone is None:
            return []
        names, row = ", ".join(surface.parameters), self.alone
        lines = [f"{fitted.metric.name}({names}) = {surface.formula(row, pretty=self.pretty)}"]
        if fitted.of_line.size and fitted.of_line[row]:
            at = setting_text(fitted.held)
            lines.append(f"a separate model of the runs at {at} fits them better:")
        return lines

    def quality(self) -> list[Fact]:
        """Return the quality of a model; of a sum, its parts."""
        if self.leader < 0:
            return []
        if len(self.rows) > 1:
            who = self.view.tree.path(self.leader) if self.leader != self.alone else _EXCLUSIVE
            count = counted(len(self.parts), "model")
            return [("sum of", f"{count}; fastest growing: {who}")]
        fitted, models, row = self.fitted, self.fitted.models, int(self.rows[0])
        status = FitStatus(int(models.status[row]))
        laws = law_text(fitted, row, pretty=True)
        sentence = _TWO_LAWS if laws and status is FitStatus.OUTSIDE else status.sentence
        stands = ("status", f"{fitted.status(row)}: {sentence}")
        if status is FitStatus.ZERO:
            return [stands]
        noise = models.noise[row]
        parts = [
            f"cross-validated error {_error(float(models.cv_error[row]))}",
            "noise unknown: no repetitions" if np.isnan(noise) else f"noise {percent(noise, 1)}",
            f"adjusted R^2 {models.adjusted_r2[row]:.4f}",
            f"|1-R^2| {abs(1 - models.r2[row]):.2g}",
            f"{int(models.used[row])} points",
        ]
        facts = [("quality", "   ".join(parts)), stands]
        facts += [("laws", laws)] if laws else []
        facts += _control(fitted, row)
        if models.method != "classic":
            known = hypotheses(fitted, row, self.forecast.target, style=self.style)
            facts.append(("model", f"{known.sentence}{self.chance}"))
        return facts

    @property
    def chance(self) -> str:
        """The probability to be among the costliest call paths, as a clause; "" = not known."""
        return ""

    def others(self) -> list[tuple[str, str, str]]:
        """Return the header and the rows of other models that fit, as `other_models`."""
        if self.leader < 0 or len(self.rows) > 1:
            return []
        return other_models(self.fitted, self.leader, self.forecast.target, self.style)

    # Measured values

    def points(self) -> Iterable[float]:
        """Return the measured values, [points]; NaN = it did not occur."""
        return map(float, measured_of(self.fitted, self.rows))

    def values_facts(self) -> list[Fact]:
        """Return the measured values, and the imbalance of the processes."""
        fitted = self.fitted
        at = f", {setting_text(fitted.measured_at)}" if fitted.measured_at else ""
        cells = self.series(fitted.points, self.points(), fitted.metric.unit)
        facts = [("measured", f"{fitted.parameter} = {cells}{at}")]
        uneven = [] if self.alone is None else imbalances(fitted, self.alone)
        if uneven:
            own = ", of the exclusive cost" if len(self.rows) > 1 else ""
            what = f"   (largest / mean of the processes{own})"
            cells = "   ".join(f"{parameter_value(point)}: {ratio:.2f}" for point, ratio in uneven)
            facts.append(("imbalance", f"{fitted.parameter} = {cells}{at}{what}"))
        return facts

    def delay(self) -> list[Fact]:
        """Return the computation whose imbalance may cause a call path to wait, if known."""
        sources = ImbalanceSources.of(self.fitted)
        return [] if self.alone is None else imbalance_facts(sources, self.alone, style=self.style)

    def imbalance(self) -> str:
        """Return the imbalance at the largest scale as a short text, or "" if it is not known."""
        fitted, row = self.fitted, self.alone
        known = [] if row is None else imbalances(fitted, row)
        if not known:
            return ""
        what = "exclusive imbalance" if len(self.rows) > 1 else "imbalance"
        return f"{what} {known[-1][1]:.2f} at {fitted.parameter} = {parameter_value(known[-1][0])}"

    # The description in the browser

    def model(self) -> list[str]:
        """Return the formula, and the value at the target with its share and its trust."""
        main, measured = self.main, self.measured()
        trust = marks_text(-1 if self.fitted.is_measured_only else int(main.trust[0]))
        share = percent(float(main.share[0]))
        if measured and not np.isnan(main.value[0]):
            measured = [f"{measured[0]}, {share} {trust}".rstrip()]
        if self.fitted.is_measured_only:
            return measured
        if self.leader < 0:
            return [*measured, self.no_model()]
        if np.isinf(self.forecast.target):
            told = f"in the limit {share}, {self.growth}"
        elif measured:
            told = f"model {self.prediction()}, {self.growth}"
        else:
            told = f"{self.prediction()}, {share}, {self.growth} {trust}".rstrip()
        lines = formula_lines(self.fitted, self.parts, self.style)
        return [*measured, *self.whole_formula(), *lines, told]

    def curve(self, count: int) -> Curve:
        """Return the chart of `count` points, without the cost of computing bands of sums."""
        is_measured = self.forecast.repetitions > 0
        return sketch(
            self.fitted,
            self.rows,
            self.forecast.target,
            self.total,
            measured=is_measured,
            count=count,
        )

    def chart(self, width: int, height: int) -> list[str]:
        """Return a chart of measured values, model, band, end of the data and target.

        Parameters
        ----------
        width, height : size with labels, in terminal cells; there is no chart if it is too small
        """
        room = width - _AXIS
        if room < 12 or height < 5 or not len(self.parts):
            return []
        return self.drawn(self.curve(2 * room), self.fitted, room=room, height=height - 2)

    def alternatives(self) -> list[str]:
        """Return the probability of the model and the other models; of a sum, its parts."""
        lines = [fact_text(fact) for fact in self.quality() if fact[0] in _FIRST]
        head, *others = self.others() or [("", "", "")]
        title, _, _ = head[0].partition(" (")  # there is no room for explanations
        lines += [title] if title else []
        return lines + [f"  {weight:>5}  {value:>10}  {name}" for name, weight, value in others]

    def facts(self) -> list[str]:
        """Return excess work, measured values, neighbours, the source, and the quality."""
        facts = [*self._excess(), *self.values_facts(), *self.delay(), *self._cause()]
        facts += self.surroundings(self.forecast.inputs.at_largest)
        facts += [fact for fact in self.quality() if fact[0] not in _FIRST]
        return [fact_text(fact) for fact in facts]

    def _excess(self) -> list[Fact]:
        """Return the excess work since the base, inclusive and exclusive."""
        fitted, two = self.fitted, self.forecast.is_comparison
        if fitted.is_measured_only and not two:
            return []
        own, whole = (excess_texts(each.excess, each.doubted)[0] for each in self.values)
        since = f"since {fitted.parameter} = {parameter_value(self.forecast.base)}"
        text = f"{whole} inclusive, {own} exclusive, {since}"
        text += f", {fitted.ideal.meaning}" if fitted.ideal else ""
        return [("excess", text)]

    def _cause(self) -> list[Fact]:
        """Return why the exclusive time of a call path grows, if it grows."""
        row = self.alone
        if row is None or not self.fitted.modelled[row]:
            return []
        found = find_causes(self.fitted, self.forecast.target, [row])
        if found is None or found.labels[0] == NOTHING:
            return []
        what = " of the exclusive cost" if len(self.rows) > 1 else ""
        return [(f"cause of the growth{what}", found.labels[0])]

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
            what += f"excess by line, {at} to {parameter_value(losses.scale)}"
        return what if known else f"{what}; no source text"


class FormulaNodeReport(NodeReport):
    """Facts of a node with a formula. Its operands have models; it has none."""

    def model(self) -> list[str]:
        """Return the formula, and the values at the target."""
        forecast, metric = self.forecast, self.fitted.metric
        at = f"at {at_text(self.fitted, forecast.target)}"
        sure = marks_text(int(self.main.trust[0])) if forecast.has_models else ""
        lines = [f"{metric.name} = {metric.description}, of sums"]
        lines.append(f"{at}: {self.amount()} {forecast.basis} {sure}".rstrip())
        if forecast.repetitions and forecast.has_models:
            said = self.style.amount(self.predicted[0], metric.unit)
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
        note = f" (parts of {self.forecast.size_metric.name})"
        facts = [*self.values_facts(), *self.surroundings(self.forecast.decides, note=note)]
        return [fact_text(fact) for fact in facts]

    def points(self) -> Iterable[float]:
        """Return the formula of the sums at each point, [points]."""
        inputs = self.forecast.inputs
        return [self._value(inputs.measured_at(k)) for k in range(len(self.fitted.points))]

    @property
    def has_parts(self) -> bool:
        """True, because the operands add up."""
        return True

    def _value(self, costs: Costs) -> float:
        """Return the value of the node in one column."""
        if len(self.nodes) == 1:
            return float(self.view.values(self.nodes, costs)[int(self.inclusive)][0, 0])
        return float(self.view.together(self.nodes, costs)[int(self.inclusive)][0])


def fact_text(fact: Fact) -> str:
    """Return a fact as one line of a narrow pane; commas separate the cells of a series."""
    label, text = fact
    # Call paths can be 50,000 calls deep.
    return f"{label}  {cut(text.replace('   (', ' (').replace('   ', ', '), _LONGEST)}"


def other_models(
    fitted: Fitted, row: int, target: float, style: TextStyle
) -> list[tuple[str, str, str]]:
    """Return other models that fit, with their probabilities and predictions, below a header.

    If none fits as well, the header says so and has no further cells.
    """
    others = hypotheses(fitted, row, target, style=style).others
    if not others:
        return [(f"could also be: {NO_OTHER} ({compared_text(fitted)})", "", "")]
    weight = "weight" if fitted.models.method == "classic" else "probability"
    similar = " (or similar)" * (weight == "probability")
    rows = [(f"could also be{similar}", weight, f"at {at_text(fitted, target)}")]
    for other in others:
        value = style.amount(float(other.values([target])[0]), fitted.metric.unit)
        rows.append((other.formula, percent(other.weight), value))
    return rows


def imbalances(fitted: Fitted, row: int) -> list[tuple[float, float]]:
    """Return points and the imbalance of the exclusive cost there, where it is known."""
    metric, known = fitted.metric.name, []
    for point in fitted.points.tolist():
        at = {**fitted.measured_at, fitted.parameter: point}
        ratio = fitted.experiment.imbalance(metric, row, at)
        if not np.isnan(ratio):
            known.append((point, ratio))
    return known


def formula_text(fitted: Fitted, parts: Rows, *, pretty: bool) -> str:
    """Return the model of call paths that have models, at least one; of several, the sum."""
    models, name = fitted.models, fitted.parameter
    if len(parts) == 1:
        return models.formula(int(parts[0]), name, pretty=pretty)
    return models.sum_formula(parts, name, pretty=pretty)


def equation(fitted: Fitted, formula: str) -> str:
    """Return a formula with its left side and its unit: ``time(p, n=50) = 2 p  [s]``."""
    held = "".join(f", {name}={parameter_value(value)}" for name, value in fitted.held.items())
    unit = fitted.metric.unit
    text = f"{fitted.metric.name}({fitted.parameter}{held}) = {formula}"
    return text + f"  [{unit}]" * (unit != "1")


def formula_lines(fitted: Fitted, parts: Rows, style: TextStyle) -> list[str]:
    """Return the model of call paths that have models: a short formula, and the number of models.

    Parameters
    ----------
    fitted : the models
    parts : the call paths, at least one
    style : characters of text
    """
    formula = formula_text(fitted, parts, pretty=not style.ascii_only)
    lines = [equation(fitted, formula + formula_from_text(fitted, parts))]
    if len(parts) == 1:
        return lines
    count = f"{fitted.metric.name}({fitted.parameter}): sum of {counted(len(parts), 'model')}"
    return [*(lines if formula.count(" + ") < _TERMS else []), count]


def _control(fitted: Fitted, row: int) -> list[Fact]:
    """Return the statistical quality control of the repetitions, if it has a result."""
    _, values = fitted.line.by_point(fitted.metric.name, fitted.parameter, rows=np.array([row]))
    repetitions = summarise(values, "mean", float(fitted.settings["confidence"]))
    if not repetitions.indistinct[0]:
        return []
    what = "a constant lies in the confidence intervals of all points"
    return [("control", f"{what}: the repetitions alone could explain the differences")]


def _error(error: float) -> str:
    return "> 100 %" if error > 1 else percent(error, 1)
