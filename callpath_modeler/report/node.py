"""Description of a node of a view: model, chart, alternatives, neighbours, values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from callpath_modeler.analysis.answer import Answer
from callpath_modeler.analysis.causes import NOTHING, find_causes
from callpath_modeler.analysis.line_losses import LineLosses, line_losses
from callpath_modeler.analysis.node_values import NodeValues
from callpath_modeler.analysis.trust import marks_text
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import FitStatus
from callpath_modeler.printable import printable
from callpath_modeler.profile.groups import Costs, Rows
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.report.causes import imbalance_facts
from callpath_modeler.report.change_points import formula_from_text
from callpath_modeler.report.columns import amount_text
from callpath_modeler.report.curve import measured_of
from callpath_modeler.report.growths import model_range_texts
from callpath_modeler.report.headline import target_text
from callpath_modeler.report.hypotheses import NO_OTHER, hypotheses
from callpath_modeler.report.layout import TextStyle, shorten
from callpath_modeler.report.measured_only import excess_symbol, excess_texts
from callpath_modeler.report.model import (
    imbalance_cells,
    imbalances,
)
from callpath_modeler.report.view_node import ViewNode
from callpath_modeler.units import (
    counted,
    parameter_value,
    percent,
    signed_percent,
)

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
            known = self.forecast.inputs.imbalance_sources
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
