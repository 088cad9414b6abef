"""Answers: the costs of all call paths at a target, measured or predicted.

All costs are measured if the target was run at least twice, else all are predicted. A call path
that does not occur in the runs of a measured target costs nothing there, even if its model predicts
a cost. So sums equal those of the runs.

Values, shares and excess work are exclusive values of call paths and add up to the values of nodes,
in each of the three views. Bands add up as in `modeling.sums`, and intervals of measured values are
those of the sums of each run, as in `analysis.measured`.

Predicted values of 10^6 call paths take a tenth of a second, and their bands take seconds. So an
answer may be made without bands, which follow later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.answer_bands import MeasuredIntervals, ModelBands, model_bands
from callpath_modeler.analysis.answer_inputs import AnswerInputs
from callpath_modeler.analysis.bands import Total, basis_of
from callpath_modeler.analysis.ensemble import Losses
from callpath_modeler.analysis.excess import per_process
from callpath_modeler.analysis.ideals import ideal_of
from callpath_modeler.analysis.losses import (
    Loss,
    cost_per_process,
    expected_addends,
    expected_at,
    loss_at,
    repetitions_compared,
    share_at_target,
)
from callpath_modeler.analysis.measured import Measured
from callpath_modeler.analysis.node_values import NodeSums, NodeValues
from callpath_modeler.analysis.optimal_scale import ScalingOptimum, scaling_optimum
from callpath_modeler.analysis.run_time import RunTime, run_time_at
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.errors import UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.groups import Codes, Costs, Rows
from callpath_modeler.profile.outline import Outline, SumCheck
from callpath_modeler.profile.view_request import Sort
from callpath_modeler.profile.views import View

_SORTS = (
    *(Sort.VALUE, Sort.MEASURED, Sort.HIGH, Sort.EXCESS),
    *(Sort.GROWTH, Sort.TRUST, Sort.NAME),
)
"""Orders of siblings with models."""


@dataclass(frozen=True, slots=True, eq=False)
class TargetCosts:
    """Costs of call paths at a target, each [call paths, 1]; NaN = not known.

    Attributes
    ----------
    repetitions : number of runs at the target if costs are measured; 0 = they are predicted
    value : costs at the target
    modelled : the same for call paths with a model
    predicted : predictions for these
    decides : size of nodes: the value, or the share at infinity
    whole : sum of `decides`; 0 = there are no shares
    """

    repetitions: int
    value: Costs
    modelled: Costs
    predicted: Costs
    decides: Costs
    whole: float


def costs_at(
    inputs: AnswerInputs, target: float, predicted: FloatArray | None = None
) -> TargetCosts:
    """Return the costs of call paths at a target, which may be infinite.

    Parameters
    ----------
    inputs : models and measured values
    target : value of the parameter
    predicted : [call paths] exclusive predictions there, if they were made already
    """
    fitted = inputs.fitted
    if predicted is None:
        values = fitted.models.values(np.array([target]))[:, 0]
        predicted = np.where(inputs.modelled, values, np.nan)
    said, total = inputs.summed(predicted), float(np.nansum(predicted))
    point = inputs.point(target)
    if point is not None:
        tree, there = fitted.experiment.tree, np.asarray(fitted.measured[:, point])
        value = modelled = Costs.of(tree, there)
        if not inputs.modelled.all():
            modelled = Costs.of(tree, np.where(inputs.modelled, there, np.nan))
        whole = float(value.total[0]) if fitted.metric.additive else 0.0
        runs = inputs.measured.repetitions(point)
        return TargetCosts(runs, value, modelled, said, value, whole)
    if not fitted.metric.additive:
        return TargetCosts(0, said, said, said, said, 0.0)
    if np.isinf(target) and not 0 < total < np.inf:
        share = inputs.summed(share_at_target(fitted, predicted, total, target))
        return TargetCosts(0, said, said, said, share, 1.0)
    return TargetCosts(0, said, said, said, said, total)


@dataclass(frozen=True, eq=False)
class Answer:
    """Costs of all call paths of an experiment at a target.

    Attributes
    ----------
    inputs : values that do not depend on the target
    target : value of the parameter; ``inf`` = by growth alone
    costs : costs at the target
    bands : source of bands; None = not made, or at infinity
    """

    inputs: AnswerInputs
    target: float
    costs: TargetCosts
    bands: ModelBands | MeasuredIntervals | None

    @property
    def fitted(self) -> Fitted:
        """The models."""
        return self.inputs.fitted

    @property
    def has_models(self) -> bool:
        """Whether there are predictions."""
        return not self.fitted.is_measured_only

    @property
    def chains(self) -> Mapping[int, tuple[str, ...]]:
        """Names of folded call paths by the row of the call path below them."""
        return self.fitted.experiment.chains

    @property
    def tree(self) -> CallTree:
        """The call paths."""
        return self.fitted.experiment.tree

    @property
    def measured(self) -> Measured:
        """Measured values at the scales of the models."""
        return self.inputs.measured

    @property
    def total_at_largest(self) -> float:
        """Measured total at the largest scale; NaN = the metric does not add up."""
        return self.inputs.total_at_largest

    @property
    def unmodelled(self) -> IntArray:
        """Rows of call paths that occur at the largest scale but have no model."""
        return self.inputs.unmodelled

    @property
    def unmodelled_share(self) -> float:
        """Share of the call paths without a model in the total at the largest scale."""
        return self.inputs.unmodelled_share

    @property
    def maxima_at_largest(self) -> tuple[FloatArray, FloatArray]:
        """Exclusive maxima over processes, and imbalance, at the largest scale, [call paths]."""
        return self.inputs.maxima_at_largest

    @property
    def losses(self) -> Losses | None:
        """Excess work between the chosen pairs of measured scales; None = no pairs were chosen."""
        return self.inputs.losses

    @property
    def ensemble(self) -> tuple[Costs, int]:
        """Mean excess work over all pairs of measured scales, and the number of these pairs."""
        return self.inputs.ensemble

    @property
    def repetitions(self) -> int:
        """Number of runs at the target if values are measured; 0 = they are predicted."""
        return self.costs.repetitions

    @property
    def basis(self) -> str:
        """Kind of the values at the target: ``"measured"`` or ``"predicted"``."""
        return basis_of(self.repetitions > 0)

    @cached_property
    def total(self) -> Total:
        """Sum of all values with its band; NaN = the metric does not add up, or no band."""
        if not self.fitted.metric.additive:
            return (float("nan"),) * 3
        value = float(self.costs.value.total[0])
        return (value, np.nan, np.nan) if self.bands is None else self.bands.total(value)

    @property
    def predicted_total(self) -> float:
        """Predicted total; NaN = the metric does not add up."""
        return self._sum_of(self.costs.predicted)

    @property
    def modelled_total(self) -> float:
        """The part of the total with a model; NaN = the metric does not add up."""
        return self._sum_of(self.costs.modelled)

    def _sum_of(self, costs: Costs) -> float:
        return float(costs.total[0]) if self.fitted.metric.additive else float("nan")

    @property
    def base(self) -> float:
        """The base of excess work: the smallest measured scale from which a cost is expected."""
        return self.fitted.base

    @property
    def has_bands(self) -> bool:
        """True if all possible bands were made."""
        return self.bands is not None or bool(np.isinf(self.target))

    @cached_property
    def turning(self) -> ScalingOptimum | None:
        """Scale with the shortest run time, if it lies before the target; None without bands."""
        if self.repetitions or not self.has_bands:
            return None
        total = self.run_time.total if self.run_time else self.total
        return scaling_optimum(self.fitted, self.target, total)

    @cached_property
    def run_time(self) -> RunTime | None:
        """The run time of the program at the target; None = not known."""
        # Where runs state it, only the value is predicted, and its band is not used.
        said = (self.predicted_total, np.nan, np.nan) if self.repetitions else self.total
        predicted = self.inputs.predicted
        return run_time_at(self.fitted, self.target, self.measured, said, predicted=predicted)

    @property
    def cost_per_process(self) -> float:
        """Cost of the whole program at the target, per process if values are sums over them."""
        return cost_per_process(self.fitted, self.total, self.target)

    @property
    def is_comparison(self) -> bool:
        """Whether measured values are compared with those at `base`, without models."""
        return self.fitted.compares(self.target)

    @cached_property
    def loss(self) -> Loss | None:
        """Factors of excess work; None = excess work is not defined."""
        return loss_at(self.fitted, self.target, self.total[0])

    @cached_property
    def expected(self) -> Costs:
        """Expected costs per process at the target, [call paths, 1]; NaN = nothing is expected."""
        base, factor = self.fitted.base, None
        if self.loss is not None and np.isfinite(self.target):
            factor = ideal_of(self.fitted).factor(base, self.target)
        if factor is not None:
            # Sums over 10^6 call paths take a tenth of a second, and those at the base are known.
            whole = self.costs_at_base
            one = per_process(self.fitted.experiment, self.fitted.parameter, np.ones(1), base)
            by = factor * float(one[0])
            return whole if by == 1.0 else Costs(whole.exclusive * by, whole.inclusive * by)
        found = expected_at(self.fitted, self.target, predicted=not self.repetitions)
        return Costs.of(self.tree, found)

    @cached_property
    def expected_addends(self) -> Costs | None:
        """Additive numbers for bands of expected costs; None = they have no band."""
        found = expected_addends(self.fitted, self.target)
        return None if found is None else Costs.of(self.tree, found)

    @property
    def costs_at_base(self) -> Costs:
        """Costs at the base of excess work, [call paths, 1]."""
        return self.inputs.all_at_base if self.repetitions else self.inputs.at_base

    @cached_property
    def runs_compared(self) -> tuple[Costs, Costs] | None:
        """Costs of the runs at both scales of a comparison, as `repetitions_of_pair` does."""
        if not self.is_comparison or self.loss is None:
            return None
        return repetitions_compared(self.fitted, self.target)

    @property
    def total_excess(self) -> float:
        """Excess work of the whole program; NaN = not defined."""
        if self.loss is None:
            return float("nan")
        expected = np.array([self.expected.total[0]])
        return float(self.loss.excess(np.array([self.total[0]]), np.ones(1), expected)[0])

    @cached_property
    def call_paths(self) -> tuple[NodeValues, NodeValues]:
        """Exclusive and inclusive values of all call paths."""
        return self._both(
            NodeSums(lambda costs: (costs.exclusive, costs.inclusive), lambda codes: codes.numbers)
        )

    def of_nodes(self, view: View, nodes: Rows) -> tuple[NodeValues, NodeValues]:
        """Return exclusive and inclusive values of nodes."""
        return self._both(
            NodeSums(
                lambda costs: view.values(nodes, costs), lambda codes: view.largest(nodes, codes)
            )
        )

    def of_siblings(self, view: View, nodes: Rows) -> tuple[NodeValues, NodeValues]:
        """Return exclusive and inclusive values of the sum of several siblings."""

        def together(costs: Costs) -> tuple[FloatArray, FloatArray]:
            own, whole = view.together(nodes, costs)
            return own[None], whole[None]

        def largest(codes: Codes) -> NDArray[np.integer]:
            return np.asarray(view.largest(nodes, codes).max(keepdims=True))

        return self._both(NodeSums(together, largest))

    def of_outline(
        self, outline: Outline, places: Rows | None = None
    ) -> tuple[NodeValues, NodeValues]:
        """Return exclusive and inclusive values of lines; `places` selects some of them."""
        lines = np.arange(len(outline)) if places is None else places
        return self._both(
            NodeSums(
                lambda costs: outline.values_of(lines, costs),
                lambda codes: outline.largest_of(lines, codes),
            )
        )

    def _both(self, sums: NodeSums) -> tuple[NodeValues, NodeValues]:
        return NodeValues(self, sums, inclusive=False), NodeValues(self, sums, inclusive=True)

    @property
    def decides(self) -> Costs:
        """Size of nodes, [call paths, 1]: the value, or the share at infinity."""
        return self.costs.decides

    @property
    def whole(self) -> float:
        """Sum of `decides`; 0 = there is nothing."""
        return self.costs.whole

    @cached_property
    def leads(self) -> Costs:
        """Values that the hot path follows: losses of a comparison, else `decides`."""
        if not self.is_comparison or self.loss is None:
            return self.decides
        own, _ = self.call_paths
        share, value = self.decides.exclusive[:, 0], own.value
        expected = np.nan_to_num(self.expected.exclusive[:, 0])
        return Costs.of(self.tree, self.loss.excess(value, share, expected))

    @property
    def sorts(self) -> list[Sort]:
        """The orders of siblings that make a difference."""
        if self.has_models:
            return [*_SORTS]
        return [Sort.VALUE, *[Sort.EXCESS] * self.is_comparison, Sort.NAME]

    @property
    def usual_sort(self) -> Sort:
        """The default order of siblings: by excess work in a comparison, else by value."""
        return Sort.EXCESS if self.is_comparison else Sort.VALUE

    def worth(self, view: View, nodes: Rows, *, inclusive: bool) -> FloatArray:
        """Return the values of nodes that the hot path follows, [nodes]."""
        return view.values(nodes, self.leads)[1 if inclusive else 0][:, 0]

    def sum_up(self, view: View) -> None:
        """Make the sums of a view, so that it can be shown at once later."""
        known, costs = self.inputs, self.costs
        for codes in known.growth:
            view.largest(view.roots, codes)
        for each in (
            *(costs.value, costs.modelled, costs.predicted, costs.decides),
            *(self.leads, self.costs_at_base, known.at_largest),
            *([] if self.bands is None else [self.bands.costs]),
        ):
            view.values(view.roots, each)
        _ = known.maxima_at_largest

    def sibling_order(
        self, view: View, sort: Sort, *, inclusive: bool
    ) -> Callable[[Rows], FloatArray] | None:
        """Return the function that orders siblings, [nodes] -> [nodes]; None = by `decides`."""
        which = 1 if inclusive else 0
        # An open view is ordered family by family, and each order computes one column only.
        orders: dict[Sort, Callable[[Rows], FloatArray]] = {
            Sort.NAME: view.alphabetical,
            Sort.GROWTH: lambda nodes: self.of_nodes(view, nodes)[which].growth.astype(float),
            Sort.MEASURED: lambda nodes: self.of_nodes(view, nodes)[which].at_largest,
            Sort.EXCESS: lambda nodes: self.of_nodes(view, nodes)[which].excess,
        }
        if self.bands is not None:
            orders[Sort.TRUST] = lambda nodes: self.of_nodes(view, nodes)[which].trust.astype(float)
            orders[Sort.HIGH] = lambda nodes: self.of_nodes(view, nodes)[which].high
        return orders.get(sort)

    def check(self, outline: Outline) -> SumCheck:
        """Return True if lines add up to the totals at the largest scale and at the target."""
        largest, target = (outline.check(c) for c in (self.inputs.at_largest, self.costs.value))
        return SumCheck(
            np.concatenate([largest.counted, target.counted]),
            np.concatenate([largest.total, target.total]),
            largest.holds and target.holds,
        )

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
        bands = model_bands(self.fitted, self.target, is_wanted=is_wanted)
        return None if bands is None else replace(self, bands=bands)


def measured_intervals(inputs: AnswerInputs, target: float) -> MeasuredIntervals | None:
    """Return the intervals of measured values; None = values at the target are predicted."""
    point = inputs.point(target)
    return None if point is None else MeasuredIntervals(inputs.runs, inputs.measured, point)


def answer_at(inputs: Fitted | AnswerInputs, target: float, *, bands: bool = True) -> Answer:
    """Return the values of every call path at `target`, in columns that add up.

    Parameters
    ----------
    inputs : models, or values that were computed for other targets
    target : value of the parameter, which may be infinite. If it was run at least twice, values are
        measured
    bands : make bands as well, which takes far longer

    Raises
    ------
    UsageError
        If the metric is not additive.
    """
    known = inputs if isinstance(inputs, AnswerInputs) else AnswerInputs(inputs)
    if not known.fitted.metric.additive:
        raise UsageError(
            f"no view: {known.fitted.metric.name} does not add up over call paths",
            hint="`cpmodel rank` shows such metrics",
        )
    made = Answer(known, target, costs_at(known, target), None)
    complete = made.with_bands() if bands else made
    assert complete is not None
    return complete
