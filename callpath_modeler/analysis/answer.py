"""Answers: the costs of all call paths at a target, in columns that add up.

Values, shares and excess work are exclusive values of call paths and add up to the values of nodes,
in each of the three views. Bands add up as in `modeling.sums`, and intervals of measured values are
those of the sums of each run, as in `analysis.measured`.

Predicted values of 10^6 call paths take a tenth of a second, and their bands take seconds. So an
answer may be made without bands, which follow later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from callpath_modeler.analysis.answer_bands import (
    FormulaBands,
    MeasuredIntervals,
    ModelBands,
    model_bands,
)
from callpath_modeler.analysis.answer_inputs import AnswerInputs
from callpath_modeler.analysis.bands import Band
from callpath_modeler.analysis.node_values import NodeAnswer, NodeSums, NodeValues
from callpath_modeler.analysis.program_costs import ProgramCosts, costs_at, predicted_operands
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.errors import UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.groups import Costs
from callpath_modeler.profile.schema import Metric

if TYPE_CHECKING:
    from callpath_modeler.profile.view_request import Sort
    from callpath_modeler.profile.views import View


@dataclass(frozen=True, eq=False)
class Answer(ProgramCosts, NodeAnswer[NodeValues]):
    """Costs of all call paths of an experiment at a target, for each view of the call tree."""

    columns = NodeValues

    @cached_property
    def call_paths(self) -> tuple[NodeValues, NodeValues]:
        """Exclusive and inclusive values of all call paths."""
        return self.both(
            NodeSums(lambda costs: (costs.exclusive, costs.inclusive), lambda codes: codes.numbers)
        )

    def of_rows(self, rows: IntArray) -> tuple[NodeValues, NodeValues]:
        """Return exclusive and inclusive values of some call paths."""
        return self.both(
            NodeSums(
                lambda costs: (costs.exclusive[rows], costs.inclusive[rows]),
                lambda codes: codes.numbers[rows],
            )
        )

    def of_sum(self, rows: IntArray) -> NodeValues:
        """Return exclusive values of the sum of some call paths, each [1]; NaN = no sums."""
        additive = self.fitted.metric.additive

        def total(costs: Costs) -> tuple[FloatArray, FloatArray]:
            columns = costs.exclusive[rows]
            whole = np.nansum(columns, axis=0, keepdims=True) if additive else columns[:1] * np.nan
            return whole, whole

        own, _ = self.both(NodeSums(total, lambda codes: codes.numbers[rows].max(keepdims=True)))
        return own

    @cached_property
    def sum_of_all(self) -> NodeValues:
        """Values of the sum of all call paths, each [1]."""
        own, _ = self.both(
            NodeSums(
                lambda costs: (costs.total[None],) * 2,
                lambda codes: codes.numbers.max(keepdims=True),
            )
        )
        return own

    @cached_property
    def program_excess(self) -> Band:
        """Excess work of the whole program with its band, [1]; NaN = not defined, or no band.

        It is that of the run time. Without a run time, it is that of the sum of all call paths.
        """
        loss, expected = self.loss, self.expected_run_time
        if loss is None or np.isnan(expected):
            return self.sum_of_all.excess_band
        value, low, high = (np.array([end * loss.of_target]) for end in self.program_total)
        if not value[0] > 0:
            return self.sum_of_all.excess_band
        if self.bands is None or not self.bands.has_differences:
            low = high = np.full(1, np.nan)
        with np.errstate(divide="ignore"):
            return Band(1 - expected / value, 1 - expected / low, 1 - expected / high)

    @property
    def total_excess(self) -> float:
        """Excess work of the whole program; NaN = not defined."""
        return float(self.program_excess.value[0])

    @property
    def imbalance_excess(self) -> float:
        """Excess work of the run time beyond the sum of the call paths; NaN = not defined."""
        return self.total_excess - float(self.sum_of_all.excess[0])

    @property
    def decides(self) -> Costs:
        """Size of nodes, [call paths, 1], as in `TargetCosts`."""
        return self.costs.decides

    @property
    def size_metric(self) -> Metric:
        """The metric of `decides`: that of the answer, or the first operand of its formula."""
        formula, experiment = self.fitted.formula, self.fitted.experiment
        return self.fitted.metric if formula is None else experiment.metric(formula.parts[0])

    @cached_property
    def leads(self) -> Costs:
        """Values that the hot path follows: losses of a comparison, else `decides`."""
        if not self.is_comparison or self.loss is None:
            return self.decides
        value = self.costs.value.exclusive[:, 0]
        expected = np.nan_to_num(self.expected.exclusive[:, 0])
        return Costs.of(self.tree, self.loss.excess(value, expected))

    @property
    def sorts(self) -> list[Sort]:
        """The orders of siblings that make a difference."""
        from callpath_modeler.profile.view_request import Sort  # rankings need no views

        if self.has_models and not self.fitted.metric.additive:
            return [Sort.VALUE, Sort.MEASURED, Sort.HIGH, Sort.TRUST, Sort.NAME]
        if self.has_models:
            return [
                *(Sort.VALUE, Sort.MEASURED, Sort.HIGH, Sort.EXCESS),
                *(Sort.GROWTH, Sort.TRUST, Sort.NAME),
            ]
        return [Sort.VALUE, *[Sort.EXCESS] * self.is_comparison, Sort.NAME]

    @property
    def usual_sort(self) -> Sort:
        """The default order of siblings: by excess work in a comparison, else by value."""
        from callpath_modeler.profile.view_request import Sort

        return Sort.EXCESS if self.is_comparison else Sort.VALUE

    @property
    def checked(self) -> tuple[Costs, Costs]:
        """Costs at the largest scale and at the target, or twice the first operand of a formula."""
        if self.fitted.formula is not None:
            return self.decides, self.decides
        return self.inputs.at_largest, self.costs.value

    @property
    def summed(self) -> Iterator[Costs]:
        """Costs that a view sums."""
        costs = self.costs
        yield from (costs.value, costs.modelled, costs.predicted, costs.decides)
        yield from (self.leads, self.costs_at_base, self.inputs.at_largest)
        if self.bands is not None:
            yield self.bands.costs

    def sum_up(self, view: View) -> None:
        """Make the sums of a view, so that it can be shown at once later."""
        for codes in self.inputs.growth:
            view.largest(view.roots, codes)
        super().sum_up(view)
        _ = self.inputs.maxima_at_largest

    def column_of(self, sort: Sort) -> str | None:
        """Return the column that orders siblings; None = they are ordered by `decides`."""
        from callpath_modeler.profile.view_request import Sort

        names = {Sort.GROWTH: "growth", Sort.MEASURED: "at_largest", Sort.EXCESS: "excess"}
        if self.fitted.formula is not None:  # the first operand decides on sizes
            names[Sort.VALUE] = "value"
        if self.bands is not None:
            names |= {Sort.TRUST: "trust", Sort.HIGH: "high"}
        return names.get(sort)

    def with_bands(self, is_wanted: Callable[[], bool] = lambda: True) -> Answer | None:
        """Return the answer with its bands; None = cancelled.

        Parameters
        ----------
        is_wanted : called repeatedly; False cancels. Bands of 10^6 call paths take seconds
        """
        if np.isinf(self.target):
            return self
        if self.repetitions:
            return replace(self, bands=measured_intervals(self.inputs, self.target))
        bands = self._predicted_bands(is_wanted)
        return None if bands is None else replace(self, bands=bands)

    def _predicted_bands(self, is_wanted: Callable[[], bool]) -> ModelBands | FormulaBands | None:
        """Return the bands of predictions; None = cancelled."""
        formula = self.fitted.formula
        if formula is None:
            value = self.costs.predicted.exclusive[:, 0]
            return model_bands(self.fitted, self.target, value, is_wanted=is_wanted)
        parts, operands = [], predicted_operands(self.inputs, self.target)
        for part, costs in zip(self.fitted.parts, operands, strict=True):
            made = model_bands(part, self.target, costs.exclusive[:, 0], is_wanted=is_wanted)
            if made is None:
                return None
            parts.append(made)
        return FormulaBands.of(formula, operands, parts)


def measured_intervals(inputs: AnswerInputs, target: float) -> MeasuredIntervals | None:
    """Return the intervals of measured values; None = values at the target are predicted."""
    point = inputs.point(target)
    return None if point is None else MeasuredIntervals.of(inputs.runs, inputs.measured, point)


def has_sums_of_formula(inputs: AnswerInputs, target: float) -> bool:
    """Return whether nodes have the formula of sums at a target, measured or predicted."""
    is_known = bool(inputs.fitted.parts) or inputs.point(target) is not None
    return inputs.fitted.formula is not None and is_known


def answer_at(inputs: Fitted | AnswerInputs, target: float, *, bands: bool = True) -> Answer:
    """Return the values of every call path at `target`, in columns that add up.

    Parameters
    ----------
    inputs : models, or values that were computed for other targets
    target : value of the parameter, which may be infinite. If it was run, values are measured
    bands : make bands as well, which takes far longer

    Raises
    ------
    UsageError
        If nodes have no values: the metric neither adds up nor is the formula of finite sums.
    """
    known = inputs if isinstance(inputs, AnswerInputs) else AnswerInputs(inputs)
    fitted = known.fitted
    if not (fitted.metric.additive or has_sums_of_formula(known, target)):
        raise UsageError(
            f"no view: {fitted.metric.name} does not add up over call paths",
            hint="`cpmodel rank` shows such metrics",
        )
    if np.isinf(target) and fitted.formula is not None:
        raise UsageError(
            f"no view at infinity: {fitted.metric.name} is a formula of sums",
            hint="give a finite target",
        )
    made = Answer(known, target, costs_at(known, target), None)
    complete = made.with_bands() if bands else made
    assert complete is not None
    return complete
