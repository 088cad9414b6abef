"""Costs of a program at a target, measured or predicted.

All costs are measured if the target was run at least twice, else all are predicted. A call path
that does not occur in the runs of a measured target costs nothing there, even if its model predicts
a cost. So sums equal those of the runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from callpath_modeler.analysis.answer_bands import MeasuredIntervals, ModelBands
from callpath_modeler.analysis.answer_inputs import AnswerInputs
from callpath_modeler.analysis.bands import Total, basis_of
from callpath_modeler.analysis.ensemble import Losses
from callpath_modeler.analysis.excess import (
    Loss,
    compares_scales,
    expected_addends,
    expected_at,
    loss_at,
    per_process,
    repetitions_compared,
)
from callpath_modeler.analysis.ideals import ideal_of
from callpath_modeler.analysis.measured import Measured
from callpath_modeler.analysis.optimal_scale import ScalingOptimum, scaling_optimum
from callpath_modeler.analysis.run_time import RunTime, run_time_at
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.groups import Costs


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
        share = inputs.summed(_share_at_target(fitted, predicted, total, target))
        return TargetCosts(0, said, said, said, share, 1.0)
    return TargetCosts(0, said, said, said, said, total)


@dataclass(frozen=True, eq=False)
class ProgramCosts:
    """Costs of a program at a target: sums over its call paths, run time, factors of excess work.

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
        return _cost_per_process(self.fitted, self.total, self.target)

    @property
    def is_comparison(self) -> bool:
        """Whether measured values are compared with those at `base`, without models."""
        return compares_scales(self.fitted, self.target)

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


def _cost_per_process(fitted: Fitted, total: Total, target: float) -> float:
    """Return the cost of the whole program at a target, per process if values are sums over them.

    Parameters
    ----------
    total : cost of the whole program at the target
    """
    whole = np.array([total[0]])
    return float(per_process(fitted.experiment, fitted.parameter, whole, target)[0])


def _share_at_target(fitted: Fitted, value: FloatArray, total: float, target: float) -> FloatArray:
    """Return exclusive shares; at infinity, the fastest growth has all, by coefficients.

    Parameters
    ----------
    value : [call paths] at the target
    total : their sum
    """
    in_the_limit = np.isinf(target) and (total == 0 or np.isinf(total))
    if not fitted.metric.additive or (total == 0 and not in_the_limit):
        return np.full_like(value, np.nan)
    if not in_the_limit:
        return value / total
    modelled = fitted.modelled
    growth = np.where(modelled, fitted.models.growth_rank(), -1)
    lead = np.where(growth == growth.max(initial=-1), fitted.models.leading_coefficient(), 0.0)
    whole = lead[modelled].sum()
    return np.where(modelled & (whole > 0), lead / (whole or 1.0), np.nan)
