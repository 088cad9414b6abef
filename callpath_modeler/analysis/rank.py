"""Rankings of call paths by their cost at a target scale, or at infinity."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np

from callpath_modeler.analysis.bands import Band
from callpath_modeler.analysis.causes import NOTHING, find_causes
from callpath_modeler.analysis.ensemble import (
    Losses,
    ensemble_of,
    losses_of_pairs,
)
from callpath_modeler.analysis.excess import (
    Excess,
)
from callpath_modeler.analysis.excess_bands import excess_band, expected_band
from callpath_modeler.analysis.excess_patterns import doubtful, overlap
from callpath_modeler.analysis.losses import (
    cost_per_process,
    expected_addends,
    expected_at,
    loss_at,
    repetitions_compared,
    share_at_target,
    total_at_largest,
    unmodelled,
)
from callpath_modeler.analysis.measured import Measured
from callpath_modeler.analysis.optimal_scale import ScalingOptimum, scaling_optimum
from callpath_modeler.analysis.predict import Predicted, predict, with_callees
from callpath_modeler.analysis.run_time import RunTime, maxima_at_largest, run_time_at
from callpath_modeler.analysis.target_costs import (
    TargetCosts,
    Total,
    basis_of,
    deviation,
    measured_at,
    predicted_at,
)
from callpath_modeler.analysis.trust import (
    among_the_first,
    at_most,
    limited,
    marks_of_probability,
    marks_of_trust,
)
from callpath_modeler.argument_checks import check_type, parse_enum
from callpath_modeler.arrays import BoolArray, FloatArray, Int8Array, IntArray
from callpath_modeler.errors import UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.notebook_repr import RankingPlotMixin
from callpath_modeler.profile.groups import Costs
from callpath_modeler.profile.metric_values import inclusive_values
from callpath_modeler.targets import target_of

FIRST = 10
"""Number of call paths of `Ranking.first`; a table shows as many rows."""


class By(StrEnum):
    """Criterion of a ranking.

    Attributes
    ----------
    VALUE : cost at the target
    GROWTH : asymptotic order of the model, then cost at the target
    LOSS : cost at the target beyond the expected cost
    SHARE : change of the share of the total, from the largest scale to the target
    """

    VALUE = "value"
    GROWTH = "growth"
    LOSS = "loss"
    SHARE = "share"


@dataclass(frozen=True, eq=False)
class Ranking(RankingPlotMixin):
    """Call paths in the order of their cost at a target.

    All columns are [call paths] in the order of the experiment, with values in SI base units.
    `order` has the rows of the ranked call paths.

    Attributes
    ----------
    fitted : the models
    measured : measured values at the scales of the models
    target : value of the parameter; ``inf`` = ranked by growth alone
    base : the base of excess work: the smallest measured scale from which a cost is expected
    by : criterion of the order
    order : rows of ranked call paths, worst first
    inclusive : True if values include callees
    repetitions : number of runs at the target if values are measured; 0 = values are predicted
    at_base : measured value at the base; predicted if no run was made there
    at_largest : measured value at the largest scale; NaN = did not occur there
    value, low, high : value at the target and its range. A predicted value has a prediction band,
        and NaN = no model. A measured value has a confidence interval, and NaN = did not occur;
        NaN ends = too few repetitions
    modelled, modelled_total : the part of value and total that belongs to call paths with a model
    predicted : predictions for that part
    own : exclusive predictions, with the additive numbers of bands of sums
    leader : row of the call path, among those summed in the value, whose model grows fastest;
        -1 = no model
    share_at_largest, share : fractions of the total, at the largest scale and at the target
    own_share : fraction of the total at the target, exclusive
    excess : excess work between base and target, exclusive and inclusive
    lost : cost per process at the target beyond the expected cost
    trust : marks of trust, 0 to `MARKS`, by the width of the band; -1 = no band
    total_at_largest, total : sums over all call paths; `total` has a band
    unmodelled : rows of call paths that occur at the largest scale but have no model
    unmodelled_share : their share of the total at the largest scale
    run_time : run time of the program at the target; None = not known
    """

    fitted: Fitted
    measured: Measured
    target: float
    base: float
    by: By
    order: IntArray
    inclusive: bool
    repetitions: int
    at_base: FloatArray
    at_largest: FloatArray
    value: FloatArray
    low: FloatArray
    high: FloatArray
    modelled: FloatArray
    modelled_total: float
    predicted: TargetCosts
    own: Predicted
    leader: IntArray
    share_at_largest: FloatArray
    share: FloatArray
    own_share: FloatArray
    excess: Excess
    lost: FloatArray
    trust: Int8Array
    total_at_largest: float
    total: Total
    unmodelled: IntArray
    unmodelled_share: float
    run_time: RunTime | None = None

    @property
    def total_excess(self) -> float:
        """Excess work of the whole program; NaN = not defined."""
        return float(self.excess.exclusive.sum())

    @property
    def cost_per_process(self) -> float:
        """Cost of the whole program at the target, per process if values are sums over them."""
        return cost_per_process(self.fitted, self.total, self.target)

    @cached_property
    def doubted(self) -> tuple[BoolArray, BoolArray]:
        """Whether noise may explain the excess work of a comparison.

        Exclusive and inclusive, each [call paths]: the repetitions of both scales overlap.
        """
        runs, excess = repetitions_compared(self.fitted, self.target), self.excess
        own = whole = None
        if runs is not None:
            before, after = runs
            own = overlap(before.exclusive, after.exclusive)
            whole = overlap(before.inclusive, after.inclusive)
        return doubtful(excess.exclusive, own), doubtful(excess.inclusive, whole)

    @cached_property
    def losses(self) -> Losses | None:
        """Excess work between the chosen pairs of measured scales; None = no pairs were chosen."""
        return losses_of_pairs(self.fitted)

    @cached_property
    def ensemble(self) -> tuple[Costs, int]:
        """Mean excess work over all pairs of measured scales, and the number of these pairs."""
        return ensemble_of(self.fitted)

    @cached_property
    def excess_band(self) -> Band:
        """Excess work with its band, [call paths]; it is inclusive in an inclusive ranking.

        The ends are NaN if costs are measured, at infinity, and if other bands were corrected: the
        correction is about costs, not about differences of costs.
        """
        excess = self.excess.inclusive if self.inclusive else self.excess.exclusive
        unknown = np.full(len(excess), np.nan)
        loss = loss_at(self.fitted, self.target, self.total[0])
        is_corrected = self.fitted.band_factor != 1
        if self.repetitions or loss is None or not np.isfinite(self.target) or is_corrected:
            return Band(excess, unknown, unknown)
        value, addends = self.own.value, self.own.added
        total = float(np.nansum(value)), addends.sum(axis=0)
        expected = expected_at(self.fitted, self.target, predicted=True)
        reach = expected_addends(self.fitted, self.target)
        if self.inclusive:
            tree = self.fitted.experiment.tree
            value, addends = inclusive_values(tree, value), tree.inclusive(addends)
            expected = tree.inclusive(expected)
            reach = None if reach is None else tree.inclusive(reach)
        spent = expected_band(expected, reach, loss.of_target)
        found = excess_band(value, addends, total, spent, loss.of_target)
        return Band(excess, found.low, found.high)

    @cached_property
    def first(self) -> FloatArray:
        """Probability to be among the `FIRST` largest values at the target, [call paths].

        It is NaN at infinity.
        """
        if np.isinf(self.target):
            return np.full(len(self.value), np.nan)
        confidence = self.fitted.models.confidence
        return among_the_first(self.value, self.low, self.high, FIRST, confidence)

    @cached_property
    def is_ranked(self) -> BoolArray:
        """Whether `order` has each call path, [call paths]."""
        found = np.zeros(len(self.value), bool)
        found[self.order] = True
        return found

    @property
    def is_comparison(self) -> bool:
        """Whether measured values are compared with those at `base`, without models."""
        return self.fitted.compares(self.target)

    @property
    def basis(self) -> str:
        """Kind of the values at the target: ``"measured"`` or ``"predicted"``."""
        return basis_of(bool(self.repetitions))

    @property
    def predicted_total(self) -> float:
        """Predicted total; NaN if the metric is not additive."""
        return self.predicted.total[0]

    @property
    def deviation(self) -> FloatArray:
        """Relative difference between predicted and measured values at the target, [call paths]."""
        return deviation(self.predicted.value, self.modelled)

    @cached_property
    def maxima_at_largest(self) -> tuple[FloatArray, FloatArray]:
        """Exclusive maxima over processes, and imbalance, at the largest scale, [call paths]."""
        return maxima_at_largest(self.fitted)

    @cached_property
    def inclusive_at_largest(self) -> FloatArray:
        """Measured values at the largest scale with callees, [call paths]; 0 = did not occur."""
        tree = self.fitted.experiment.tree
        return tree.inclusive(np.nan_to_num(self.fitted.measured[:, -1]))

    @cached_property
    def turning(self) -> ScalingOptimum | None:
        """Scale with the shortest run time, if it lies before the target; None = it does not."""
        total = self.run_time.total if self.run_time else self.predicted.total
        return scaling_optimum(self.fitted, self.target, total)

    @cached_property
    def _labels(self) -> dict[int, str]:
        """Causes that were found so far, by call path."""
        return {}

    def why(self, rows: IntArray) -> list[str]:
        """Return why the time of some call paths grows, as one label each.

        The labels need the requirements of the call paths (visits, bytes, operations), which
        ``LoadOptions.with_requirements`` reads. Without them, only imbalance is known. The cause
        of an inclusive value is that of the call path whose model grows fastest.

        Parameters
        ----------
        rows : call paths

        Returns
        -------
        list of str
            ``"more work"``, ``"more messages"``, ``"longer messages"``, ``"collective log p"``,
            ``"collective p"``, ``"collective"``, ``"waits for NAME"``, ``"waits"``,
            ``"imbalance"``, ``"unexplained"``, or ``"-"``: nothing grows, or it is not known.
        """
        asked = self.leader[rows] if self.inclusive else np.asarray(rows, np.intp)
        new = np.array([row for row in asked.tolist() if row >= 0 and row not in self._labels])
        if len(new):
            found = find_causes(self.fitted, self.target, np.unique(new))
            if found is not None:
                named = zip(found.needs.rows.tolist(), found.labels, strict=True)
                self._labels.update(named)
        return [self._labels.get(row, NOTHING) for row in asked.tolist()]

    def __repr__(self) -> str:
        return (
            f"<Ranking {self.fitted.experiment.name} at {self.fitted.parameter} = "
            f"{self.target:g}: {len(self.order)} call paths by {self.by}>"
        )


def rank(
    fitted: Fitted,
    target: float,
    by: By = By.VALUE,
    *,
    inclusive: bool = False,
    predicted: bool = False,
) -> Ranking:
    """Return the call paths in the order of their cost at `target`, which may be infinite.

    Parameters
    ----------
    fitted : models of one metric
    target : value of the parameter. If it was run at least twice, values are measured ones
    by : criterion of the order; ties are ordered by cost, then by position in the call tree
    inclusive : rank each call path together with its callees
    predicted : use predictions even if the target was measured

    Returns
    -------
    Ranking
        Values [call paths] at the target with bands, in SI base units, and their order.

    Raises
    ------
    UsageError
        If the target is not positive. If the order, or the inclusive view, needs sums and the
        metric does not add up over call paths.

    References
    ----------
    Calotoiu, Hoefler, Poke, Wolf: Using Automated Performance Modeling to Find Scalability Bugs in
    Complex Codes (SC 2013), section 3, for ranking by predicted cost and by growth.
    """
    check_type(fitted, Fitted, "fitted")
    target, by = target_of(target), parse_enum(By, by, "order")
    if not fitted.metric.additive and (inclusive or by in {By.LOSS, By.SHARE}):
        what = "inclusive ranking" if inclusive else f"ranking by {by}"
        raise UsageError(
            f"no {what}: {fitted.metric.name} does not add up over call paths",
            hint="--exclusive, and --by value or --by growth",
        )
    tree, measured = fitted.experiment.tree, Measured(fitted)
    own = predict(fitted, target)
    view = with_callees(tree, own) if inclusive else own
    said = found = predicted_at(fitted, own, view)
    point = None if predicted else measured.point(target)
    if point is not None:
        found = measured_at(measured, point, inclusive=inclusive)
    at_largest = fitted.measured[:, -1]
    at_largest_in_all = total_at_largest(fitted)
    share = own_share = share_at_target(fitted, found.own, found.total[0], target)
    excess = _excess_at(fitted, target, found, own_share)
    missing, missing_share = unmodelled(fitted)
    at_base = fitted.at_base()
    if inclusive:
        at_base, at_largest, share = (
            inclusive_values(tree, column) for column in (at_base, at_largest, share)
        )
    share_before = np.full_like(at_largest, np.nan)
    if at_largest_in_all > 0:
        share_before = at_largest / at_largest_in_all
    # Shares of what is predicted can only be held against shares of the same call paths.
    of_same = 1.0 if found.repetitions else max(1 - missing_share, np.finfo(float).tiny)
    gain = share - np.nan_to_num(share_before) / of_same
    lost = tree.inclusive(excess.lost) if inclusive else excess.lost
    columns = {By.VALUE: found.value, By.LOSS: lost, By.SHARE: gain}
    return Ranking(
        fitted=fitted,
        measured=measured,
        inclusive=inclusive,
        target=target,
        base=fitted.base,
        by=by,
        order=_order(view, found, target, by, columns),
        repetitions=found.repetitions,
        at_base=at_base,
        at_largest=at_largest,
        value=found.value,
        low=found.low,
        high=found.high,
        modelled=found.modelled,
        modelled_total=found.modelled_total,
        predicted=said,
        own=own,
        leader=view.leader,
        share_at_largest=share_before,
        share=share,
        own_share=own_share,
        excess=excess,
        lost=lost,
        trust=_trust(fitted, view, found, target, inclusive=inclusive),
        total_at_largest=at_largest_in_all,
        total=found.total,
        unmodelled=missing,
        unmodelled_share=missing_share,
        run_time=run_time_at(fitted, target, measured, said.total, predicted=predicted),
    )


def _trust(
    fitted: Fitted, view: Predicted, found: TargetCosts, target: float, *, inclusive: bool
) -> Int8Array:
    """Return marks by the width of the band; at infinity, by the probability of the growth.

    Predictions have at most as many marks as their data allow.
    """
    if found.repetitions:
        return marks_of_trust(found.value, found.low, found.high)
    if np.isinf(target):
        leader = view.leader
        probability = np.where(leader >= 0, fitted.models.weight[leader], np.nan)
        marks, one = marks_of_probability(probability), np.ones(len(leader))
        return at_most(marks, one, limited(fitted.models, one, np.inf)[leader])
    own = np.where(fitted.modelled, found.own, np.nan)
    parts = limited(fitted.models, own, fitted.times_largest(target))
    if inclusive:
        parts = fitted.experiment.tree.inclusive(parts)
    return at_most(marks_of_trust(found.value, found.low, found.high), found.value, parts)


def _order(
    view: Predicted,
    found: TargetCosts,
    target: float,
    by: By,
    columns: dict[By, FloatArray],
) -> IntArray:
    """Return the rows that have a value, worst first."""
    growth = view.growth.astype(float)
    key = growth if by is By.GROWTH or (by is By.VALUE and np.isinf(target)) else columns[by]
    ties = [view.lead, growth] if np.isinf(target) else [found.value]
    ties = [-tie for tie in ties if tie is not key]
    # The sort is stable, so what is left is ordered by position.
    order = np.lexsort((*ties, -np.where(np.isnan(key), -np.inf, key)))
    has_value = ~np.isnan(found.value) if found.repetitions else view.leader >= 0
    ranked: IntArray = order[has_value[order]]
    return ranked


def _excess_at(fitted: Fitted, target: float, found: TargetCosts, share: FloatArray) -> Excess:
    """Return excess work between the base and the target.

    The cost at the base is measured if possible. If the cost at the target is predicted, call paths
    without a model are excluded at both scales.
    """
    tree, base = fitted.experiment.tree, fitted.base
    loss, nothing = loss_at(fitted, target, found.total[0]), np.broadcast_to(np.nan, len(tree))
    if loss is None:
        return Excess(tree, base, target, nothing, nothing, nothing)
    expected = expected_at(fitted, target, predicted=not found.repetitions)
    cost = loss.of_target * found.own if np.isfinite(target) else nothing
    own, lost = loss.excess(found.own, share, expected), loss.lost(found.own, expected)
    counted = None if found.repetitions else fitted.modelled
    return Excess(tree, base, target, own, lost, cost, counted)
