"""Description of a node of a view of a metric that is a formula of sums."""

from __future__ import annotations

from callpath_modeler.analysis.trust import marks_text
from callpath_modeler.profile.groups import Costs
from callpath_modeler.report.node import NodeReport
from callpath_modeler.units import parameter_value, signed_percent


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
        values = [
            f"{parameter_value(scale)}: "
            f"{self.style.amount(self._value(inputs.measured_at(point)), fitted.metric.unit)}"
            for point, scale in enumerate(fitted.points.tolist())
        ]
        callers, callees = self.neighbours(self.forecast.decides)
        of = f" (parts of {self.forecast.size_metric.name})" if "%" in callees else ""
        return [
            f"measured at {fitted.parameter} = {', '.join(values)}",
            f"called by {callers}",
            f"calls {callees}{of}",
            *self.sites(),
            *self.places(),
        ]

    def _value(self, costs: Costs) -> float:
        """Return the value of the node in one column."""
        if len(self.nodes) == 1:
            return float(self.view.values(self.nodes, costs)[int(self.inclusive)][0, 0])
        return float(self.view.together(self.nodes, costs)[int(self.inclusive)][0])
