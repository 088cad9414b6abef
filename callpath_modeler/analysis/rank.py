"""Rankings of call paths by their cost at a target scale, or at infinity."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
from msgspec import structs

from callpath_modeler.analysis.answer import Answer, measured_intervals
from callpath_modeler.analysis.answer_bands import MeasuredIntervals, ModelBands, model_bands
from callpath_modeler.analysis.answer_inputs import AnswerInputs
from callpath_modeler.analysis.bands import Band, Total
from callpath_modeler.analysis.causes import NOTHING, find_causes
from callpath_modeler.analysis.excess import Excess
from callpath_modeler.analysis.node_values import NodeValues
from callpath_modeler.analysis.predict import Predicted, predict, with_callees
from callpath_modeler.analysis.program_costs import costs_at
from callpath_modeler.analysis.trust import (
    among_the_first,
    at_most,
    limited,
    marks_of_probability,
)
from callpath_modeler.argument_checks import check_type, parse_enum
from callpath_modeler.arrays import BoolArray, FloatArray, Int8Array, IntArray
from callpath_modeler.errors import UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.notebook_repr import RankingPlotMixin
from callpath_modeler.profile.groups import Costs
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
class Ranking(Answer, RankingPlotMixin):
    """Call paths in the order of their cost at a target.

    All columns are [call paths] in the order of the experiment, with values in SI base units.

    Attributes
    ----------
    inputs : values that do not depend on the target
    target : value of the parameter; ``inf`` = ranked by growth alone
    costs : costs at the target, measured or predicted
    bands : source of bands; None = at infinity
    by : criterion of the order
    inclusive : True if values include callees
    own : exclusive predictions, with the additive numbers of bands of sums
    """

    by: By
    inclusive: bool
    own: Predicted

    @property
    def _values(self) -> NodeValues:
        return self.call_paths[self.inclusive]

    @cached_property
    def predicted(self) -> Predicted:
        """Predictions with their bands, even if the target was measured."""
        view = with_callees(self.tree, self.own) if self.inclusive else self.own
        return view if self.repetitions else structs.replace(view, low=self.low, high=self.high)

    @property
    def value(self) -> FloatArray:
        """Value at the target; NaN = no model, or did not occur at a measured target."""
        return self._values.value

    @property
    def low(self) -> FloatArray:
        """Lower end of the band, or of the confidence interval; NaN = too few repetitions."""
        return self._values.low

    @property
    def high(self) -> FloatArray:
        """Upper end of the band, or of the confidence interval; NaN = too few repetitions."""
        return self._values.high

    @property
    def modelled(self) -> FloatArray:
        """The part of the value that belongs to call paths with a model."""
        return self._values.modelled

    @property
    def deviation(self) -> FloatArray:
        """Relative difference between predicted and measured values at the target."""
        return self._values.deviation

    @property
    def at_base(self) -> FloatArray:
        """Measured value at the base; predicted if no run was made there."""
        return self._of(self.inputs.all_at_base)

    @property
    def at_largest(self) -> FloatArray:
        """Measured value at the largest scale; NaN = did not occur there."""
        return self._values.at_largest

    def _of(self, costs: Costs) -> FloatArray:
        return (costs.inclusive if self.inclusive else costs.exclusive)[:, 0]

    @property
    def leader(self) -> IntArray:
        """Row of the call path of the value whose model grows fastest; -1 = no model."""
        return self.predicted.leader

    @property
    def share_at_largest(self) -> FloatArray:
        """Fraction of the total at the largest scale."""
        return self._values.share_at_largest

    @property
    def share(self) -> FloatArray:
        """Fraction of the total at the target."""
        return self._values.share

    @property
    def own_share(self) -> FloatArray:
        """Fraction of the total at the target, exclusive."""
        return self.call_paths[0].share

    @property
    def lost(self) -> FloatArray:
        """Cost per process at the target beyond the expected cost."""
        return self._values.lost

    @cached_property
    def excess(self) -> Excess:
        """Excess work between base and target, exclusive and inclusive."""
        own, _ = self.call_paths
        exclusive, counted = own.excess, None
        if not self.repetitions:
            # Call paths without a model are excluded at both scales.
            counted = self.fitted.modelled
            exclusive = exclusive if self.loss is None else np.where(counted, exclusive, 0.0)
        cost = np.full(len(exclusive), np.nan)
        if self.loss is not None and np.isfinite(self.target):
            cost = self.loss.of_target * own.value
        return Excess(self.tree, self.base, self.target, exclusive, own.lost, cost, counted)

    @property
    def excess_band(self) -> Band:
        """Excess work with its band; it is inclusive in an inclusive ranking.

        The ends are NaN if costs are measured, at infinity, and if other bands were corrected.
        """
        return self._values.excess_band

    @property
    def doubted(self) -> tuple[BoolArray, BoolArray]:
        """Whether noise may explain the excess work of a comparison, exclusive and inclusive."""
        own, whole = self.call_paths
        return own.doubted, whole.doubted

    @cached_property
    def trust(self) -> Int8Array:
        """Marks of trust, 0 to `MARKS`, by the width of the band; -1 = no band.

        At infinity, the marks are those of the probability of the growth.
        """
        if np.isfinite(self.target):
            return self._values.trust
        leader, models = self.leader, self.fitted.models
        probability = np.where(leader >= 0, models.weight[leader], np.nan)
        marks, one = marks_of_probability(probability), np.ones(len(leader))
        return at_most(marks, one, limited(models, one, np.inf)[leader])

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
    def order(self) -> IntArray:
        """Rows of the call paths that have a value, worst first."""
        view, is_limit = self.predicted, np.isinf(self.target)
        growth = view.growth.astype(float)
        key = growth if self.by is By.GROWTH or (self.by is By.VALUE and is_limit) else self._key
        ties = [view.lead, growth] if is_limit else [self.value]
        ties = [-tie for tie in ties if tie is not key]
        # The sort is stable, so equal call paths are ordered by position.
        order = np.lexsort((*ties, -np.where(np.isnan(key), -np.inf, key)))
        has_value = ~np.isnan(self.value) if self.repetitions else self.leader >= 0
        ranked: IntArray = order[has_value[order]]
        return ranked

    @property
    def _key(self) -> FloatArray:
        """The values of the criterion, unless it is growth."""
        if self.by is By.LOSS:
            return self.lost
        if self.by is By.VALUE:
            return self.value
        # Shares of what is predicted can only be held against shares of the same call paths.
        part = max(1 - self.inputs.unmodelled_share, np.finfo(float).tiny)
        is_of_all = self.repetitions or self.run_time is not None
        before = np.nan_to_num(self.share_at_largest) / (1.0 if is_of_all else part)
        return self.share - before

    @cached_property
    def places(self) -> IntArray:
        """Place of each call path in `order`, from 1, [call paths]; 0 = it has none."""
        found = np.zeros(len(self.value), np.intp)
        found[self.order] = np.arange(1, len(self.order) + 1)
        return found

    @property
    def is_ranked(self) -> BoolArray:
        """Whether `order` has each call path, [call paths]."""
        return self.places > 0

    def total_of(self, row: int) -> Total:
        """Return the value of a call path at the target with the ends of its band."""
        return float(self.value[row]), float(self.low[row]), float(self.high[row])

    @property
    def inclusive_at_largest(self) -> FloatArray:
        """Measured values at the largest scale with callees, [call paths]; 0 = did not occur."""
        return np.nan_to_num(self.inputs.at_largest.inclusive[:, 0])

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
    target : value of the parameter. If it was run, values are measured ones
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
            hint="--exclusive, and --by value or --by growth"
            + "; `cpmodel views` shows inclusive values" * (fitted.formula is not None),
        )
    inputs = AnswerInputs(fitted, predicted=predicted)
    own = predict(fitted, target)
    bands: ModelBands | MeasuredIntervals | None = None
    if np.isfinite(target):
        bands = measured_intervals(inputs, target) or model_bands(
            fitted, target, own.value, own.added
        )
    return Ranking(inputs, target, costs_at(inputs, target, own.value), bands, by, inclusive, own)
