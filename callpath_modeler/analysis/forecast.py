"""Values of nodes of a view at a target, measured or predicted.

Values, shares and excess work are exclusive values of call paths and add up to the values of nodes,
in each of the three views. Bands add up as in `modeling.sums`, and intervals of measured values are
those of the sums of each run, as in `analysis.measured`.

Predicted values of 10^6 call paths take a tenth of a second, and their bands take seconds. So a
forecast may be made without bands, which follow later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.bands import Band
from callpath_modeler.analysis.excess import per_process
from callpath_modeler.analysis.excess_bands import excess_band, expected_band
from callpath_modeler.analysis.excess_patterns import doubtful, overlap
from callpath_modeler.analysis.forecast_bands import MeasuredIntervals, ModelBands, NodeForecasts
from callpath_modeler.analysis.forecast_inputs import ForecastInputs
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
from callpath_modeler.analysis.optimal_scale import ScalingOptimum, scaling_optimum
from callpath_modeler.analysis.predict import Predicted
from callpath_modeler.analysis.run_time import RunTime, run_time_at
from callpath_modeler.analysis.target_costs import Total, basis_of, total_at
from callpath_modeler.analysis.trust import LIMITS, limited
from callpath_modeler.arrays import BoolArray, FloatArray, Int8Array
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling.constants.sums import COLUMNS
from callpath_modeler.modeling.sums import addable
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

_CHUNK = 4_096
"""Rows whose bands are made before the next check for cancellation."""


@dataclass(frozen=True, eq=False)
class Forecast:
    """Values of all call paths of an experiment at a target.

    Attributes
    ----------
    known : values that do not depend on the target
    target : value of the parameter; ``inf`` = by growth alone
    repetitions : number of runs at the target if values are measured; 0 = they are predicted
    value : value at the target, [call paths, 1]
    modelled : the same for call paths with a model, [call paths, 1]
    predicted : prediction for these, [call paths, 1]
    decides : size of nodes, [call paths, 1]: the value, or the share at infinity
    whole : sum of `decides`; 0 = there is nothing
    bands : source of bands; None = not made, or at infinity
    total : sum of all values, with its band
    """

    inputs: ForecastInputs
    target: float
    repetitions: int
    value: Costs
    modelled: Costs
    predicted: Costs
    decides: Costs
    whole: float
    bands: ModelBands | MeasuredIntervals | None
    total: Total

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
    def basis(self) -> str:
        """Kind of the values at the target: ``"measured"`` or ``"predicted"``."""
        return basis_of(self.repetitions > 0)

    @property
    def predicted_total(self) -> float:
        """Predicted total."""
        return float(self.predicted.total[0])

    @property
    def modelled_total(self) -> float:
        """The part of the total that belongs to call paths with a model."""
        return float(self.modelled.total[0])

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
        known, target = self.inputs, self.target
        # Where runs tell, only the value is predicted, and its band is not asked.
        said = (self.predicted_total, np.nan, np.nan) if self.repetitions else self.total
        return run_time_at(self.fitted, target, self.measured, said, predicted=known.predicted)

    @cached_property
    def _loss(self) -> Loss | None:
        return loss_at(self.fitted, self.target, self.total[0])

    @cached_property
    def _expected(self) -> Costs:
        """Expected costs per process at the target, [call paths, 1]; NaN = nothing is expected."""
        base, factor = self.fitted.base, None
        if self._loss is not None and np.isfinite(self.target):
            factor = ideal_of(self.fitted).factor(base, self.target)
        if factor is not None:
            # Sums over 10^6 call paths take a tenth of a second, and those at the base are known.
            whole = self.at_base
            one = per_process(self.fitted.experiment, self.fitted.parameter, np.ones(1), base)
            by = factor * float(one[0])
            return whole if by == 1.0 else Costs(whole.exclusive * by, whole.inclusive * by)
        found = expected_at(self.fitted, self.target, predicted=not self.repetitions)
        return Costs.of(self.fitted.experiment.tree, found)

    @cached_property
    def _expected_addends(self) -> Costs | None:
        """Additive numbers for bands of expected costs; None = they have no band."""
        found = expected_addends(self.fitted, self.target)
        return None if found is None else Costs.of(self.fitted.experiment.tree, found)

    @property
    def at_base(self) -> Costs:
        """Costs at the base of excess work, [call paths, 1]."""
        return self.inputs.all_at_base if self.repetitions else self.inputs.at_base

    @property
    def cost_per_process(self) -> float:
        """Cost of the whole program at the target, per process if values are sums over them."""
        return cost_per_process(self.fitted, self.total, self.target)

    @property
    def is_comparison(self) -> bool:
        """Whether measured values are compared with those at `base`, without models."""
        return self.fitted.compares(self.target)

    @cached_property
    def leads(self) -> Costs:
        """Values that the hot path follows: losses of a comparison, else `decides`."""
        if not self.is_comparison or self._loss is None:
            return self.decides
        share, value = self.decides.exclusive[:, 0], self.value.exclusive[:, 0]
        expected = np.nan_to_num(self._expected.exclusive[:, 0])
        excess = self._loss.excess(value, share, expected)
        return Costs.of(self.fitted.experiment.tree, excess)

    @cached_property
    def _runs(self) -> tuple[Costs, Costs] | None:
        """Costs of the runs at both scales of a comparison, as `repetitions_of_pair` does."""
        if not self.is_comparison or self._loss is None:
            return None
        return repetitions_compared(self.fitted, self.target)

    @property
    def sorts(self) -> list[Sort]:
        """The orders of siblings that make a difference."""
        if not self.fitted.is_measured_only:
            return [*_SORTS]
        return [Sort.VALUE, *[Sort.EXCESS] * self.is_comparison, Sort.NAME]

    @property
    def usual_sort(self) -> Sort:
        """The default order of siblings: by excess work in a comparison, else by value."""
        return Sort.EXCESS if self.is_comparison else Sort.VALUE

    @property
    def total_excess(self) -> float:
        """Excess work of the whole program; NaN = not defined."""
        if self._loss is None:
            return float("nan")
        expected = np.array([self._expected.total[0]])
        return float(self._loss.excess(np.array([self.total[0]]), np.ones(1), expected)[0])

    def worth(self, view: View, nodes: Rows, *, inclusive: bool) -> FloatArray:
        """Return the values of nodes that the hot path follows, [nodes]."""
        return view.values(nodes, self.leads)[1 if inclusive else 0][:, 0]

    def sum_up(self, view: View) -> None:
        """Make the sums of a view, so that it can be shown at once later."""
        known = self.inputs
        for codes in known.growth:
            view.largest(view.roots, codes)
        for costs in (
            *(self.value, self.modelled, self.predicted, self.decides, self.leads, self.at_base),
            known.at_largest,
            *([] if self.bands is None else [self.bands.costs]),
        ):
            view.values(view.roots, costs)
        _ = known.maxima_at_largest

    def of_nodes(self, view: View, nodes: Rows) -> tuple[NodeForecasts, NodeForecasts]:
        """Return exclusive and inclusive values of nodes."""
        return self._both(
            lambda costs: view.values(nodes, costs), lambda codes: view.largest(nodes, codes)
        )

    def of_siblings(self, view: View, nodes: Rows) -> tuple[NodeForecasts, NodeForecasts]:
        """Return exclusive and inclusive values of the sum of several siblings."""

        def together(costs: Costs) -> tuple[FloatArray, FloatArray]:
            own, whole = view.together(nodes, costs)
            return own[None], whole[None]

        return self._both(together, lambda codes: view.largest(nodes, codes).max(keepdims=True))

    def of_outline(
        self, outline: Outline, places: Rows | None = None
    ) -> tuple[NodeForecasts, NodeForecasts]:
        """Return exclusive and inclusive values of lines; `places` selects some of them."""
        lines = np.arange(len(outline)) if places is None else places
        return self._both(
            lambda costs: outline.values_of(lines, costs),
            lambda codes: outline.largest_of(lines, codes),
        )

    def _both(
        self,
        of: Callable[[Costs], tuple[FloatArray, FloatArray]],
        largest: Callable[[Codes], NDArray[np.integer]],
    ) -> tuple[NodeForecasts, NodeForecasts]:
        """Return exclusive and inclusive values, from a function that sums columns over nodes."""
        known = self.inputs
        value, measured, before = of(self.value), of(known.at_largest), of(self.at_base)
        decides = value if self.decides is self.value else of(self.decides)
        modelled = value if self.modelled is self.value else of(self.modelled)
        predicted = value if self.predicted is self.value else of(self.predicted)
        reaches = None if self.bands is None else of(self.bands.costs)
        runs = None if self._runs is None else [of(costs) for costs in self._runs]
        expected = None if self._loss is None else of(self._expected)
        spread = None
        if isinstance(self.bands, ModelBands) and self._expected_addends is not None:
            spread = of(self._expected_addends)
        own, whole = (
            self._foreseen(
                value=value[kind][:, 0],
                at_largest=measured[kind][:, 0],
                at_base=before[kind][:, 0],
                modelled=modelled[kind][:, 0],
                predicted=predicted[kind][:, 0],
                decides=decides[kind][:, 0],
                expected=None if expected is None else expected[kind][:, 0],
                expected_addends=None if spread is None else spread[kind],
                reaches=None if reaches is None else reaches[kind],
                overlaps=None if runs is None else overlap(runs[0][kind], runs[1][kind]),
                codes=largest(known.growth[kind]),
            )
            for kind in (0, 1)
        )
        return own, whole

    def _foreseen(
        self,
        value: FloatArray,
        at_largest: FloatArray,
        at_base: FloatArray,
        modelled: FloatArray,
        predicted: FloatArray,
        decides: FloatArray,
        expected: FloatArray | None,
        expected_addends: FloatArray | None,
        reaches: FloatArray | None,
        overlaps: BoolArray | None,
        codes: NDArray[np.integer],
    ) -> NodeForecasts:
        total, nothing = self.inputs.total_at_largest, np.full(len(value), np.nan)
        low = high = nothing
        trust = np.full(len(value), -1, np.int8)
        if self.bands is not None and reaches is not None:
            low, high, trust = self._banded(self.bands, value, reaches)
        share = self._share(decides)
        band = Band(nothing, nothing, nothing)
        if self._loss is not None and expected is not None:
            band = Band(self._excess(self._loss, value, share, expected), nothing, nothing)
            if isinstance(self.bands, ModelBands) and reaches is not None:
                one = self._loss.of_target
                spent = expected_band(np.nan_to_num(expected), expected_addends, one)
                whole = self.total[0], self.bands.costs.total
                made = excess_band(value, reaches, whole, spent, one)
                band = replace(made, value=band.value)
        return NodeForecasts(
            at_base=at_base,
            at_largest=at_largest,
            value=value,
            low=low,
            high=high,
            modelled=modelled,
            predicted=predicted,
            share_at_largest=at_largest / total if total > 0 else nothing,
            share=share,
            excess=band.value,
            excess_low=band.low,
            excess_high=band.high,
            doubted=doubtful(band.value, overlaps),
            growth=codes.astype(np.int16),
            trust=trust,
        )

    def order(
        self, view: View, sort: Sort, *, inclusive: bool
    ) -> Callable[[Rows], FloatArray] | None:
        """Return the function that orders siblings, [nodes] -> [nodes]; None = by `decides`."""
        which = 1 if inclusive else 0
        orders: dict[Sort, Callable[[Rows], FloatArray]] = {
            Sort.NAME: view.alphabetical,
            Sort.GROWTH: lambda nodes: view.largest(nodes, self.inputs.growth[which]).astype(float),
            Sort.MEASURED: lambda nodes: view.values(nodes, self.inputs.at_largest)[which][:, 0],
            Sort.EXCESS: lambda nodes: self._excess_of(view, nodes, which),
        }
        if self.bands is not None:
            orders[Sort.TRUST] = lambda nodes: self._ends_of(view, nodes, which)[2].astype(float)
            orders[Sort.HIGH] = lambda nodes: self._ends_of(view, nodes, which)[1]
        return orders.get(sort)

    # An open view is ordered family by family, so an order computes nothing else.

    def _excess_of(self, view: View, nodes: Rows, which: int) -> FloatArray:
        if self._loss is None:
            return np.full(len(nodes), np.nan)
        value, decides, expected = (
            view.values(nodes, costs)[which][:, 0]
            for costs in (self.value, self.decides, self._expected)
        )
        return self._excess(self._loss, value, self._share(decides), expected)

    def _ends_of(
        self, view: View, nodes: Rows, which: int
    ) -> tuple[FloatArray, FloatArray, Int8Array]:
        assert self.bands is not None
        value = view.values(nodes, self.value)[which][:, 0]
        return self._banded(self.bands, value, view.values(nodes, self.bands.costs)[which])

    def _share(self, decides: FloatArray) -> FloatArray:
        return decides / self.whole if self.whole > 0 else np.full(len(decides), np.nan)

    def _excess(
        self, loss: Loss, value: FloatArray, share: FloatArray, expected: FloatArray
    ) -> FloatArray:
        """Return excess work, [n]; NaN = no prediction."""
        found = loss.excess(value, share, np.nan_to_num(expected))
        # What does not occur where the target was measured gains its expected cost.
        left_out = np.isnan(value) & (self.repetitions == 0)
        return np.where(left_out, np.nan, found)

    @staticmethod
    def _banded(
        bands: ModelBands | MeasuredIntervals, value: FloatArray, reaches: FloatArray
    ) -> tuple[FloatArray, FloatArray, Int8Array]:
        """Return lower ends, upper ends and marks of trust of values, each [n]."""
        low, high = bands.ends(value, reaches)
        return low, high, bands.trust(value, low, high, reaches)

    def check(self, outline: Outline) -> SumCheck:
        """Return True if lines add up to the totals at the largest scale and at the target."""
        largest, target = (outline.check(c) for c in (self.inputs.at_largest, self.value))
        return SumCheck(
            np.concatenate([largest.counted, target.counted]),
            np.concatenate([largest.total, target.total]),
            largest.holds and target.holds,
        )

    def with_bands(
        self, is_wanted: Callable[[], bool] = lambda: True, own: Predicted | None = None
    ) -> Forecast | None:
        """Return the forecast with its bands; None = cancelled.

        Parameters
        ----------
        is_wanted : called repeatedly; False cancels. Bands of 10^6 call paths take seconds
        own : exclusive predictions at the target, if they are known already
        """
        if np.isinf(self.target):
            return self
        point = self.inputs.point(self.target)
        if point is not None:
            intervals = MeasuredIntervals(self.inputs.runs, self.inputs.measured, point)
            return replace(self, bands=intervals, total=total_at(self.inputs.measured, point))
        models, modelled, where = self.fitted.models, self.inputs.modelled, np.array([self.target])
        times = self.fitted.times_largest(self.target)
        added = np.zeros((len(models), COLUMNS + LIMITS), order="F")
        for start in range(0, len(models), _CHUNK):
            if not is_wanted():
                return None
            part = slice(start, start + _CHUNK)
            some = models.take(part)
            if own is None:
                band = some.predict(where)
                value, parts = band.value[:, 0], addable(some, where, band)[:, 0]
            else:
                value, parts = own.value[part], own.added[part]
            parts = np.concatenate([parts, limited(some, value, times)], axis=1)
            added[part] = np.where(modelled[part, None], parts, 0.0)
        bands = ModelBands(Costs.of(self.fitted.experiment.tree, added))
        total = np.array(self.total[:1])
        low, high = bands.ends(total, added.sum(axis=0)[None])
        return replace(self, bands=bands, total=(self.total[0], float(low[0]), float(high[0])))


def forecast(
    fitted: Fitted | ForecastInputs,
    target: float,
    *,
    bands: bool = True,
    own: Predicted | None = None,
) -> Forecast:
    """Return the values of every call path at `target`, in columns that add up.

    Parameters
    ----------
    fitted : models, or values that were computed for other targets
    target : value of the parameter, which may be infinite. If it was run at least twice, values are
        measured
    bands : make bands as well, which takes far longer
    own : exclusive predictions at the target, if they are known already, as those of a ranking

    Raises
    ------
    UsageError
        If the metric is not additive.
    """
    known = fitted if isinstance(fitted, ForecastInputs) else ForecastInputs(fitted)
    models = known.fitted.models
    predicted = np.where(known.modelled, models.values(np.array([target]))[:, 0], np.nan)
    said = known.summed(predicted)
    total = float(np.nansum(predicted))
    band = (total, total) if np.isinf(target) else (np.nan, np.nan)
    made = Forecast(known, target, 0, said, said, said, said, total, None, (total, *band))
    point = known.point(target)
    if point is not None:
        tree, there = known.fitted.experiment.tree, np.asarray(known.fitted.measured[:, point])
        value = modelled = Costs.of(tree, there)
        if not known.modelled.all():
            modelled = Costs.of(tree, np.where(known.modelled, there, np.nan))
        total, runs = float(value.total[0]), known.measured.repetitions(point)
        made = replace(made, repetitions=runs, value=value, modelled=modelled, decides=value,
                       whole=total, total=(total, np.nan, np.nan))  # fmt: skip
    elif np.isinf(target) and not 0 < total < np.inf:
        share = share_at_target(known.fitted, predicted, total, target)
        made = replace(made, decides=known.summed(share), whole=1.0)
    complete = made.with_bands(own=own) if bands else made
    assert complete is not None
    return complete
