"""Costs of a program at a target, measured or predicted.

All costs are measured if the target was run, else all are predicted. A call path
that does not occur in the runs of a measured target costs nothing there, even if its model predicts
a cost. So sums equal those of the runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from msgspec import Struct

from callpath_modeler.analysis.answer_bands import AnswerInputs, Bands
from callpath_modeler.analysis.ensemble import ROUNDED, EnsembleExcess, Losses
from callpath_modeler.analysis.excess_work import (
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
from callpath_modeler.analysis.predict import predicted_values, processes_summed
from callpath_modeler.analysis.run_time import (
    RunTime,
    predicted_run_time,
    run_time_at,
    run_time_bands,
)
from callpath_modeler.analysis.scales import ScalingOptimum, scaling_optimum
from callpath_modeler.analysis.uncertain import Total, basis_of, is_unknown, marks_of_trust
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import centre
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.groups import Costs, FormulaCosts
from callpath_modeler.profile.metric_formulas import Formula

KNOWN = 3
"""Marks of trust of a prediction that counts as known."""
_MANY = 100_000
"""Number of call paths whose bands at several scales take more than a second."""
ROUNDING = 1e-12
"""Relative error of sums of many call paths."""


class TargetCosts(Struct, frozen=True, eq=False):
    """Costs of call paths at a target, each [call paths, 1]; NaN = not known.

    Attributes
    ----------
    repetitions : number of runs at the target if costs are measured; 0 = they are predicted
    value : costs at the target
    modelled : the same for call paths with a model
    predicted : predictions for these
    decides : size of nodes: the value, the share at infinity, or the first operand of a formula
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
    if predicted is None and fitted.formula is not None:
        return _formula_costs_at(inputs, fitted.formula, target)
    if predicted is None:
        predicted = predicted_values(fitted, target)
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
        share = inputs.summed(_shares_in_the_limit(fitted))
        return TargetCosts(0, said, said, said, share, 1.0)
    return TargetCosts(0, said, said, said, said, total)


def _formula_costs_at(inputs: AnswerInputs, formula: Formula, target: float) -> TargetCosts:
    """Return costs whose values at a node are the formula of its sums at a target.

    The first operand decides on the size of a node.
    """
    point, sums = inputs.point(target), predicted_operands(inputs, target)
    said = (
        _formula_of(formula, sums) if sums else inputs.summed(np.full(len(inputs.modelled), np.nan))
    )
    if point is None:
        return TargetCosts(0, said, said, said, sums[0], float(sums[0].total[0]))
    value, tree = inputs.measured_at(point), inputs.fitted.experiment.tree
    first = centre(inputs.fitted.runs_of(formula.parts[0]), inputs.fitted.models.aggregate)
    size = Costs.of(tree, first[:, point])
    runs = inputs.measured.repetitions(point)
    return TargetCosts(runs, value, value, said, size, float(size.total[0]))


def predicted_operands(inputs: AnswerInputs, target: float) -> list[Costs]:
    """Return the predictions of the operands of a formula at a target, each [call paths, 1]."""
    return [costs_at(each.with_basis(predicted=True), target).value for each in inputs.parts]


def _formula_of(formula: Formula, operands: Sequence[Costs]) -> FormulaCosts:
    """Return the formula of costs in one column."""
    return FormulaCosts.by(
        Costs.beside(operands),
        lambda sums: formula.of(list(np.moveaxis(sums, -1, 0)))[..., None],
    )


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
    bands: Bands | None

    @property
    def fitted(self) -> Fitted:
        """The models."""
        return self.inputs.fitted

    @property
    def has_sums(self) -> bool:
        """True if nodes have values: the metric adds up, or has a formula of sums."""
        return self.fitted.metric.additive or isinstance(self.costs.value, FormulaCosts)

    @property
    def has_models(self) -> bool:
        """Whether there are predictions."""
        return self.inputs.has_models

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
    def ensemble(self) -> EnsembleExcess:
        """Mean excess work over all pairs of measured scales."""
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
        if not self.has_sums:
            return (float("nan"),) * 3
        value = float(self.costs.value.total[0])
        return (value, np.nan, np.nan) if self.bands is None else self.bands.total(value)

    @property
    def sum_of_call_paths(self) -> Total:
        """The total with its band, which does not end above that of the run time."""
        value, low, high = self.total
        return value, low, high if self.bands is None else float(np.minimum(high, self.bands.most))

    @property
    def predicted_total(self) -> float:
        """Predicted total; NaN = the metric does not add up."""
        return self._sum_of(self.costs.predicted)

    @property
    def modelled_total(self) -> float:
        """The part of the total with a model; NaN = the metric does not add up."""
        return self._sum_of(self.costs.modelled)

    def _sum_of(self, costs: Costs) -> float:
        return float(costs.total[0]) if self.has_sums else float("nan")

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
        if not self.has_bands:
            return None
        total = self.run_time.total if self.run_time else self.total
        return scaling_optimum(self.fitted, self.target, total)

    @cached_property
    def run_time(self) -> RunTime | None:
        """The run time of the program at the target; None = not known."""
        predicted = self.inputs.predicted
        sums = None if self.repetitions else self.total
        return run_time_at(self.fitted, self.target, self.measured, sums, predicted=predicted)

    @cached_property
    def predicted_run_time(self) -> float:
        """The predicted run time, even if the target was measured; NaN = not known."""
        if self.run_time is None or not self.has_models:
            return float("nan")
        if not self.run_time.repetitions:
            return self.run_time.total[0]
        return predicted_run_time(self.fitted, self.target)[0]

    @cached_property
    def program_total(self) -> Total:
        """Cost of the whole program with its band, in the unit of the call paths.

        It is the run time, for all processes if values are sums over them. It is the sum of the
        call paths if the run time is not known, and at infinity.
        """
        if self.run_time is None:
            return self.total
        value, low, high = (self._of_processes(end, self.target) for end in self.run_time.total)
        return value, low, high

    @cached_property
    def program_trust(self) -> int:
        """Marks of trust of `program_total`, by the width of its band; -1 = no band."""
        value, low, high = (np.array([end]) for end in self.program_total)
        return int(marks_of_trust(value, low, high)[0])

    @property
    def is_unknown(self) -> bool:
        """True if only the band of `program_total` is stated: its prediction has few marks."""
        return not self.repetitions and is_unknown(self.program_trust)

    @cached_property
    def farthest_known(self) -> float | None:
        """The largest scale before the target up to which the run time has three marks of trust.

        Scales are multiples of the largest one by powers of two. None = none of them has three
        marks, or predictions of so many call paths take long.
        """
        fitted, last = self.fitted, float(self.fitted.points[-1])
        if not last < self.target < np.inf or len(self.tree) > _MANY:
            return None
        count = max(1, int(np.log2(self.target / last)))
        points = np.asarray(last * 2.0 ** np.arange(1, 1 + count), np.float64)
        band = run_time_bands(fitted, points)
        known = marks_of_trust(band.value, band.low, band.high) >= KNOWN
        count = count if known.all() else int(np.argmin(known))
        return float(points[count - 1]) if count else None

    @cached_property
    def program_at_largest(self) -> float:
        """Measured cost of the whole program at the largest scale, as `program_total`."""
        if self.run_time is None:
            return self.inputs.whole_at_largest
        return self._of_processes(self.run_time.at_largest, float(self.fitted.points[-1]))

    @cached_property
    def program_at_base(self) -> float:
        """Measured cost of the whole program at the base, as `program_total`."""
        if self.run_time is None:
            return float(np.nansum(self.fitted.at_base()))
        first = float(self.run_time.fitted.at_point(self.fitted.base_point)[0])
        return self._of_processes(first, self.base)

    @property
    def imbalance(self) -> float:
        """Cost of the whole program beyond the sum of the call paths, at the target."""
        return _beyond(self.program_total[0], self.total[0])

    @property
    def imbalance_at_largest(self) -> float:
        """The same, measured at the largest scale."""
        return _beyond(self.program_at_largest, self.total_at_largest)

    @property
    def imbalance_at_base(self) -> float:
        """The same, measured at the base of excess work."""
        return _beyond(self.program_at_base, float(np.nansum(self.fitted.at_base())))

    @cached_property
    def sum_of_models(self) -> float:
        """Sum of the models of all call paths at the target, which may exceed the run time."""
        rows = np.flatnonzero(self.inputs.modelled)
        return float(self.fitted.models.sum_values(rows, np.array([self.target]))[0])

    @cached_property
    def has_imbalance(self) -> bool:
        """True if three digits show that the call paths do not add up to the whole program."""
        pairs = (
            (self.imbalance, self.program_total[0]),
            (self.imbalance_at_largest, self.program_at_largest),
        )
        return self.run_time is not None and any(
            abs(part) > ROUNDED * whole for part, whole in pairs
        )

    def _of_processes(self, time: float, scale: float) -> float:
        """Return a time of one process in the unit of the call paths."""
        return time * self._processes_summed(scale)

    def _processes_summed(self, scale: float) -> float:
        """Return the number of processes over which values at a scale are sums."""
        return float(processes_summed(self.fitted, np.array([scale]))[0])

    @property
    def whole(self) -> float:
        """Cost that shares refer to; 0 = no shares."""
        return self.costs.whole if self.run_time is None else self.program_total[0]

    @property
    def cost_per_process(self) -> float:
        """Cost of the whole program at the target, per process if values are sums over them."""
        return self.program_total[0] / self._processes_summed(self.target)

    @property
    def is_comparison(self) -> bool:
        """True if measured values are compared with those at `base`, without models."""
        return compares_scales(self.fitted, self.target)

    @cached_property
    def loss(self) -> Loss | None:
        """Factors of excess work; None = excess work is not defined."""
        return loss_at(self.fitted, self.target, self.program_total[0])

    @cached_property
    def expected(self) -> Costs:
        """Expected costs per process at the target, [call paths, 1]; NaN = nothing is expected."""
        base, factor = self.fitted.base, None
        if self.loss is not None and np.isfinite(self.target):
            factor = ideal_of(self.fitted).factor(base, self.target)
        if factor is not None:
            # Sums over 10^6 call paths take a tenth of a second, and those at the base are known.
            whole = self.costs_at_base
            by = factor / self._processes_summed(base)
            return whole if by == 1.0 else Costs(whole.exclusive * by, lambda: whole.inclusive * by)
        found = expected_at(self.fitted, self.target, predicted=not self.repetitions)
        return Costs.of(self.tree, found)

    @cached_property
    def expected_run_time(self) -> float:
        """Expected run time at the target, per process; NaN = the run time is not known."""
        if self.run_time is None or self.loss is None:
            return float("nan")
        before = self.program_at_base / self._processes_summed(self.base)
        cost = per_process(
            self.fitted.experiment, self.fitted.parameter, self.fitted.at_base(), self.base
        )
        return ideal_of(self.fitted).run_time(self.base, self.target, before, np.nan_to_num(cost))

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


def _beyond(whole: float, parts: float) -> float:
    """Return the rest of a total without its parts; rounding errors are no rest."""
    rest = whole - parts
    return 0.0 if abs(rest) <= ROUNDING * abs(whole) else rest


def _shares_in_the_limit(fitted: Fitted) -> FloatArray:
    """Return exclusive shares at infinity if the total there is zero or infinite, [call paths].

    The fastest growth of all costs above zero has the whole, divided by leading coefficients. NaN =
    the call path has no model, or no call path has a cost.
    """
    modelled, lead = fitted.modelled, fitted.models.leading_coefficient()
    costs = modelled & (lead > 0)
    if not costs.any():
        return np.full(len(lead), np.nan)
    growth = fitted.models.growth_rank()
    fastest = costs & (growth == growth[costs].max())
    return np.where(modelled, np.where(fastest, lead, 0.0) / lead[fastest].sum(), np.nan)
