"""Answers: costs of all call paths at a target in columns that add up, and their ranking.

Values, shares and excess work are exclusive values of call paths and add up to the values of nodes,
in each of the three views. Bands add up as in `modeling.sums`, and intervals of measured values are
those of the sums of each run, as in `analysis.measured`.

Predicted values of 10^6 call paths take a tenth of a second, and their bands take seconds. So an
answer may be made without bands, which follow later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, overload

import numpy as np
from msgspec import structs

from callpath_modeler.analysis.answer_bands import (
    AnswerInputs,
    FormulaBands,
    MeasuredIntervals,
    ModelBands,
    model_bands,
)
from callpath_modeler.analysis.cause import NOTHING
from callpath_modeler.analysis.cause_search import find_causes
from callpath_modeler.analysis.excess_work import Excess
from callpath_modeler.analysis.node_values import NodeAnswer, NodeSums, NodeValues
from callpath_modeler.analysis.predict import Predicted, fastest_below, predict, sums_below
from callpath_modeler.analysis.program_costs import (
    ROUNDING,
    ProgramCosts,
    costs_at,
    predicted_operands,
)
from callpath_modeler.analysis.uncertain import (
    Band,
    Total,
    among_the_first,
    at_most,
    limited,
    marks_of_probability,
)
from callpath_modeler.arrays import BoolArray, FloatArray, Int8Array, Int32Array, IntArray
from callpath_modeler.errors import UsageError, check_type, parse_enum
from callpath_modeler.fitted import CallPathModel, Fitted
from callpath_modeler.profile.groups import Costs
from callpath_modeler.profile.runs import target_of
from callpath_modeler.profile.schema import Metric
from callpath_modeler.support.front_ends import FrameMixin, GraphMixin, RankingPlotMixin

if TYPE_CHECKING:
    from callpath_modeler.profile.tree_views import View
    from callpath_modeler.profile.view_request import Sort


@dataclass(frozen=True, eq=False)
class Answer(ProgramCosts, NodeAnswer[NodeValues]):
    """Costs of all call paths of an experiment at a target, for each view of the call tree."""

    columns = NodeValues

    @cached_property
    def call_paths(self) -> tuple[NodeValues, NodeValues]:
        """Exclusive and inclusive values of all call paths."""
        return self.of_rows(slice(None))

    def of_rows(self, rows: IntArray | slice) -> tuple[NodeValues, NodeValues]:
        """Return exclusive and inclusive values of some call paths.

        Each array of 10^6 call paths takes 8 MB, so a table asks for one block after the other.
        """
        return self.both(
            NodeSums(lambda costs: costs.of_rows(rows), lambda codes: codes.numbers[rows])
        )

    def of_sum(self, rows: IntArray) -> NodeValues:
        """Return exclusive values of the sum of some call paths, each [1]; NaN = no sums."""
        additive = self.fitted.metric.additive

        def total(costs: Costs) -> Costs:
            columns = costs.exclusive[rows]
            whole = np.nansum(columns, axis=0, keepdims=True) if additive else columns[:1] * np.nan
            return Costs(whole, whole)

        own, _ = self.both(NodeSums(total, lambda codes: codes.numbers[rows].max(keepdims=True)))
        return own

    @cached_property
    def sum_of_all(self) -> NodeValues:
        """Values of the sum of all call paths, each [1]."""
        own, _ = self.both(
            NodeSums(
                lambda costs: Costs(costs.total[None], costs.total[None]),
                lambda codes: codes.numbers.max(keepdims=True),
            )
        )
        return own

    @cached_property
    def program_excess(self) -> Band:
        """Excess work of the whole program with its band, [1]; NaN = not defined, or no band.

        It is computed from the run time, or without one from the sum of all call paths.
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
        rest = self.total_excess - float(self.sum_of_all.excess[0])
        # Excess work is a share of the whole time, so rounding errors do not depend on its size.
        return 0.0 if abs(rest) <= ROUNDING else rest

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
    ENERGY : energy at the target
    """

    VALUE = "value"
    GROWTH = "growth"
    LOSS = "loss"
    SHARE = "share"
    ENERGY = "energy"


@dataclass(frozen=True, eq=False)
class Ranking(Answer, RankingPlotMixin, FrameMixin, GraphMixin):
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
    energy : energy of the same call paths at the target; None = not measured
    """

    by: By
    inclusive: bool
    own: Predicted
    energy: Ranking | None = None

    def __len__(self) -> int:
        """Return the number of ranked call paths."""
        return len(self.order)

    def __iter__(self) -> Iterator[CallPathModel]:
        """Yield the models of the ranked call paths, the worst first."""
        return (CallPathModel(self.fitted, row) for row in self.order.tolist())

    @overload
    def __getitem__(self, place: int) -> CallPathModel: ...
    @overload
    def __getitem__(self, place: slice) -> list[CallPathModel]: ...
    def __getitem__(self, place: int | slice) -> CallPathModel | list[CallPathModel]:
        """Return the model at a place of the ranking, from 0 on, or those of a range of places."""
        rows = self.order[place]
        if isinstance(place, slice):
            return [CallPathModel(self.fitted, row) for row in rows.tolist()]
        return CallPathModel(self.fitted, int(rows))

    @property
    def _values(self) -> NodeValues:
        return self.call_paths[self.inclusive]

    @cached_property
    def predicted(self) -> Predicted:
        """Predictions with their bands, even if the target was measured."""
        view = sums_below(self.tree, self.fastest) if self.inclusive else self.own
        return view if self.repetitions else structs.replace(view, low=self.low, high=self.high)

    @cached_property
    def fastest(self) -> Predicted:
        """Exclusive predictions with the fastest growth of each value."""
        return fastest_below(self.tree, self.own) if self.inclusive else self.own

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
        return self.fastest.leader

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

    @property
    def excess(self) -> Excess:
        """Excess work between base and target, exclusive and inclusive."""
        own, _ = self.of_rows(slice(None))
        exclusive, counted = own.excess, None
        if not self.repetitions:
            # Call paths without a model are excluded at both scales.
            counted = self.fitted.modelled
            exclusive = exclusive if self.loss is None else np.where(counted, exclusive, 0.0)
        cost = np.full(len(exclusive), np.nan)
        if self.loss is not None and np.isfinite(self.target):
            cost = self.loss.of_target * own.value
        return Excess(self.tree, self.base, self.target, exclusive, own.lost, cost, counted)

    @cached_property
    def inclusive_excess(self) -> FloatArray:
        """Inclusive excess work, [call paths]."""
        return self.excess.inclusive

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

    def trust_of(self, rows: IntArray | slice) -> Int8Array:
        """Return marks of trust of some call paths, as `trust`."""
        if np.isfinite(self.target):
            return self.of_rows(rows)[self.inclusive].trust
        return self.trust[rows]

    @cached_property
    def trust(self) -> Int8Array:
        """Marks of trust, 0 to `MARKS`, by the width of the band; -1 = no band.

        At infinity, the marks are those of the probability of the growth.
        """
        if np.isfinite(self.target):
            return self.trust_of(slice(None))
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
        values = self.of_rows(slice(None))[self.inclusive]
        return among_the_first(values.value, values.low, values.high, FIRST, confidence)

    @cached_property
    def order(self) -> IntArray:
        """Rows of the call paths that have a value, worst first."""
        view, is_limit = self.fastest, np.isinf(self.target)
        growth = view.growth.astype(float)
        key = growth if self.by is By.GROWTH or (self.by is By.VALUE and is_limit) else self._key
        ties = [view.lead, growth] if is_limit else [self.value]
        ties = [-tie for tie in ties if tie is not key]
        # The sort is stable, so equal call paths are ordered by position.
        order = np.lexsort((*ties, -np.where(np.isnan(key), -np.inf, key)))
        has_value = ~np.isnan(self.value) if self.repetitions else self.leader >= 0
        return np.asarray(order[has_value[order]])

    @property
    def _key(self) -> FloatArray:
        """The values of the criterion, unless it is growth."""
        if self.by is By.LOSS:
            return self.lost
        if self.by is By.VALUE:
            return self.value
        if self.by is By.ENERGY and self.energy is not None:
            return self.energy.value
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
        its = self.of_rows(np.array([row]))[self.inclusive]
        return float(its.value[0]), float(its.low[0]), float(its.high[0])

    @cached_property
    def _labels(self) -> tuple[dict[str, int], Int32Array]:
        """Numbers of the causes that were found so far, and that of each call path; -1 = none."""
        return {}, np.full(len(self.tree), -1, np.int32)

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
        numbers, known = self._labels
        new = np.unique(asked[(asked >= 0) & (known[asked] < 0)])
        found = find_causes(self.fitted, self.target, new) if len(new) else None
        if found is not None:
            known[new] = [numbers.setdefault(label, len(numbers)) for label in found.labels]
            self.fitted.give_back()
        labels = [*numbers, NOTHING]  # number -1 is that of no cause
        return [labels[k] for k in np.where(asked >= 0, known[asked], -1).tolist()]

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
    energy: Fitted | None = None,
) -> Ranking:
    """Return the call paths in the order of their cost at `target`, which may be infinite.

    Parameters
    ----------
    fitted : models of one metric
    target : value of the parameter. If it was run, values are measured ones
    by : criterion of the order; ties are ordered by cost, then by position in the call tree
    inclusive : rank each call path together with its callees
    predicted : use predictions even if the target was measured
    energy : models of the energy of the same call paths; None = not measured

    Returns
    -------
    Ranking
        Values [call paths] at the target with bands, in SI base units, and their order.

    Raises
    ------
    UsageError
        If the target is not positive. If the order, or the inclusive view, needs sums and the
        metric does not add up over call paths. If the order needs energy and there is none.

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
    if by is By.ENERGY and (energy is None or np.isinf(target)):
        what = "energy was not measured" if energy is None else "energy has no order at infinity"
        raise UsageError(
            f"no ranking by energy: {what}",
            hint="--by value" if energy is None else "give a finite target",
        )
    inputs = AnswerInputs(fitted, predicted=predicted)
    own = predict(fitted, target)
    bands: ModelBands | MeasuredIntervals | None = None
    if np.isfinite(target):
        bands = measured_intervals(inputs, target) or model_bands(
            fitted, target, own.value, own.added
        )
    if isinstance(bands, ModelBands):
        own = structs.replace(own, added=bands.added)  # the same numbers, once in memory
    costs = costs_at(inputs, target, own.value)
    fitted.give_back()
    beside = None
    if energy is not None and np.isfinite(target):
        beside = rank(energy, target, inclusive=inclusive, predicted=predicted)
    return Ranking(inputs, target, costs, bands, by, inclusive, own, beside)
