"""Values of two experiments at a target, measured or predicted, for the nodes of a view.

Both experiments share one call tree. A call path of one experiment only is a node of its own, so
its cost is never part of another node's difference. The values of nodes add up in each of the three
views. Differences of single call paths have the significance that `analysis.diff` finds, and those
of several call paths are tested in `analysis.sum_changes`.

A sum is tested alone, with the noise of all call paths, and is not compared relative to the others
as a call path is. It is shown as a difference if it is at least as significant as the least
significant call path that is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from callpath_modeler.analysis.answer import Answer, answer_at
from callpath_modeler.analysis.answer_bands import AnswerInputs
from callpath_modeler.analysis.changes import (
    Changes,
    SampleComparison,
    change_of,
    compare_bands,
    compare_samples,
    marks_of,
)
from callpath_modeler.analysis.difference import Differences, PredictedPair, direction_of
from callpath_modeler.analysis.excess_work import NOTICEABLE
from callpath_modeler.analysis.measured import (
    Sample,
    deviation_addends,
    deviation_of_sums,
    pool_of,
    sample_at,
)
from callpath_modeler.analysis.node_values import NodeAnswer, NodeColumns
from callpath_modeler.analysis.pairing import AlignedExperiment
from callpath_modeler.arrays import BoolArray, FloatArray, Int8Array, IntArray
from callpath_modeler.errors import UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling.mixture.scaled_rows import Pool
from callpath_modeler.modeling.sums import ends_of_sums
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.groups import Costs, Rows
from callpath_modeler.profile.tree_views import View, ViewKind
from callpath_modeler.profile.view_request import Sort

if TYPE_CHECKING:
    from callpath_modeler.analysis.difference import ExperimentDifference
    from callpath_modeler.analysis.pairing import ExperimentPair


Sums = Callable[[Costs], FloatArray]
"""Sums of columns over the call paths of each node, [nodes, columns]."""


@dataclass(frozen=True, eq=False)
class SumChanges:
    """Tests of differences of sums at one scale.

    Attributes
    ----------
    differences : the two experiments
    scale : value of the parameter
    predictions : predictions there; None = values are measured
    """

    differences: Differences
    scale: float
    predictions: PredictedPair | None

    def test(
        self, sums: Sums, values: FloatArray, changes: Changes
    ) -> tuple[SampleComparison, Int8Array]:
        """Return the test of each sum, and its mark as in `Changes`.

        Parameters
        ----------
        sums : the sums
        values : [nodes, 2] sums of base and of new
        changes : differences of the call paths, exclusive or inclusive as the sums
        """
        addends = self._addends
        if addends is None:
            found = self._of_runs(sums, self.scale)
        else:
            found = self._of_predictions(sums, values, addends)
        is_shown = np.nan_to_num(found.p, nan=1.0) <= self._limit(changes)
        mark = marks_of(change_of(values[:, 0], values[:, 1]), found, is_shown)
        scales = self.differences.pair.scales
        if addends is not None and len(scales):
            measured = self._of_runs(sums, float(scales[-1]))
            direction = direction_of(measured.p, measured.difference, self.differences.confidence)
            mark = np.where(mark == direction, mark, 0)
        return found, mark

    def _limit(self, changes: Changes) -> float:
        """Return the largest probability by chance of a difference that is shown."""
        level = 1 - self.differences.confidence
        shown = changes.p[np.nan_to_num(changes.rate, nan=1.0) <= level]
        return float(shown.max()) if len(shown) else level / max(1, np.isfinite(changes.p).sum())

    @cached_property
    def _pools(self) -> tuple[Pool, Pool]:
        base, new = (pool_of(side.values) for side in self.differences.pair.sides)
        return base, new

    def _of_runs(self, sums: Sums, scale: float) -> SampleComparison:
        """Return the test of measured sums."""
        pair, samples = self.differences.pair, []
        for side, runs, pool in zip(pair.sides, pair.runs, self._pools, strict=True):
            point = int(np.searchsorted(side.points, scale))
            values = sums(runs)
            values = values.reshape(len(values), *side.values.shape[1:])
            samples.append(sample_at(values, point, pool))
        if not any(sample.is_repeated for sample in samples):
            samples = [
                self._unrepeated(sums, sample, side)
                for sample, side in zip(samples, pair.sides, strict=True)
            ]
        return compare_samples(samples[0], samples[1], self.differences.confidence)

    def _unrepeated(self, sums: Sums, sample: Sample, side: AlignedExperiment) -> Sample:
        """Return the sample with the deviations from models as its noise."""
        if side.fitted is None:
            return sample
        addends = side.spread(deviation_addends(side.fitted), absent=0.0)
        variance, dof = deviation_of_sums(sums(Costs.of(self.differences.pair.tree, addends)))
        return structs.replace(sample, variance=variance, dof=dof)

    @cached_property
    def _addends(self) -> tuple[Costs, Costs] | None:
        """Additive numbers for bands of base and of new; None = values are measured."""
        if self.predictions is None:
            return None
        tree = self.differences.pair.tree
        base, new = (Costs.of(tree, own.added) for own in self.predictions.sides)
        return base, new

    def _of_predictions(
        self, sums: Sums, values: FloatArray, addends: tuple[Costs, Costs]
    ) -> SampleComparison:
        """Return the test of predicted sums."""
        bands = [
            (column, *ends_of_sums(column, sums(added)))
            for column, added in zip(values.T, addends, strict=True)
        ]
        return compare_bands(bands[0], bands[1], self.differences.confidence)


_BASE, _NEW, _OTHER_BASE, _OTHER_NEW = range(4)
"""Columns of costs: the leading values, and those at another scale."""


class PairInputs(AnswerInputs):
    """Two experiments, and values of theirs that do not depend on the target.

    What it has from `AnswerInputs` is about the new experiment.

    Parameters
    ----------
    fitted : models or measured values of the new experiment
    differences : the comparison
    names : names of base and of new
    predicted : use predictions even if both ran a target

    Raises
    ------
    UsageError
        If the metric is not additive.
    """

    def __init__(
        self,
        fitted: Fitted,
        differences: Differences,
        names: tuple[str, str],
        *,
        predicted: bool = False,
    ) -> None:
        super().__init__(fitted, predicted=predicted)
        self.differences = differences
        self.names = names
        metric = self.pair.metric
        if not metric.additive:
            raise UsageError(
                f"no view: {metric.name} does not add up over call paths",
                hint="`cpmodel diff` compares such metrics",
            )

    @property
    def pair(self) -> ExperimentPair:
        """The two experiments on one call tree."""
        return self.differences.pair

    @property
    def has_models(self) -> bool:
        """Whether both experiments have models."""
        return self.differences.has_models

    def was_run(self, target: float) -> bool:
        """Return whether both ran a target."""
        return self.differences.was_run(target)


class NodeDifferences(NodeColumns["PairForecast"]):
    """Values of nodes in two experiments."""

    COLUMNS = (
        *("base", "new", "change", "ratio", "low", "high", "p", "mark", "share"),
        *("in_base", "in_new", "other_base", "other_new"),
    )

    def _side(self, column: int) -> FloatArray:
        """Return a column of the costs, [nodes]; NaN = there is no other scale."""
        values = self._all(self._answer.costs)
        has_column = column < values.shape[1]
        return values[:, column] if has_column else np.full(len(values), np.nan)

    @cached_property
    def base(self) -> FloatArray:
        """Value in base at the leading scale; NaN = does not occur, or no prediction."""
        return self._side(_BASE)

    @cached_property
    def new(self) -> FloatArray:
        """Value in new at the leading scale; NaN = does not occur, or no prediction."""
        return self._side(_NEW)

    @cached_property
    def other_base(self) -> FloatArray:
        """Measured value in base at the largest common scale, if another scale leads."""
        return self._side(_OTHER_BASE)

    @cached_property
    def other_new(self) -> FloatArray:
        """Measured value in new at the largest common scale, if another scale leads."""
        return self._side(_OTHER_NEW)

    @cached_property
    def change(self) -> FloatArray:
        """New minus base; a node that does not occur costs nothing; NaN = occurs in neither."""
        return change_of(self.base, self.new)

    @cached_property
    def share(self) -> FloatArray:
        """Change as a fraction of the larger total of the two."""
        largest = self._answer.largest
        return self.change / largest if largest > 0 else np.full(len(self.base), np.nan)

    @cached_property
    def factor(self) -> FloatArray:
        """New over base; infinite without base, zero without new, NaN without both."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.nan_to_num(self.new) / np.nan_to_num(self.base))

    @cached_property
    def ratio(self) -> FloatArray:
        """New over base; NaN = one of the two costs nothing, or several nodes share a line.

        Siblings that share a line may be other call paths in each experiment.
        """
        has_ratio = (self.base > 0) & (self.new > 0) & (self._count > 0)
        return np.where(has_ratio, self.factor, np.nan)

    @cached_property
    def in_base(self) -> BoolArray:
        """Whether any call path of the node occurs in base."""
        return self._all(self._answer.occurs)[:, _BASE] > 0

    @cached_property
    def in_new(self) -> BoolArray:
        """Whether any call path of the node occurs in new."""
        return self._all(self._answer.occurs)[:, _NEW] > 0

    @cached_property
    def _count(self) -> IntArray:
        """Number of call paths of each node; 0 = several nodes share a line."""
        return np.array([len(each) for each in self._sums.rows], np.intp)

    @cached_property
    def _test(self) -> tuple[FloatArray, FloatArray, FloatArray, Int8Array]:
        """Low, high, p and mark; siblings that share a line have no test."""
        answer = self._answer
        changes = answer.found[self._inclusive].changes
        low, high, p = np.full((3, len(self._count)), np.nan)
        mark = np.zeros(len(self._count), np.int8)
        alone, several = self._count == 1, self._count > 1
        row = np.array([each[0] for each in self._sums.rows if len(each) == 1], np.intp)
        low[alone], high[alone] = 1 + changes.low[row], 1 + changes.high[row]
        p[alone], mark[alone] = changes.p[row], changes.mark[row]
        if several.any():
            values = self._all(answer.costs)[several, :2]
            found, mark[several] = answer.sum_changes.test(
                lambda costs: self._all(costs)[several], values, changes
            )
            low[several], high[several], p[several] = np.exp(found.low), np.exp(found.high), found.p
        return low, high, p, mark

    @cached_property
    def low(self) -> FloatArray:
        """Lower end of the interval of the ratio; NaN = not known."""
        return self._test[0]

    @cached_property
    def high(self) -> FloatArray:
        """Upper end of the interval of the ratio; NaN = not known."""
        return self._test[1]

    @cached_property
    def p(self) -> FloatArray:
        """Probability of a difference of this size, or larger, by chance; NaN = not known."""
        return self._test[2]

    @cached_property
    def mark(self) -> Int8Array:
        """1 = new is significantly worse, -1 = better, 0 = no significant difference."""
        return self._test[3]

    @property
    def is_doubted(self) -> BoolArray:
        """Whether noise may explain the difference; False also where the noise is not known."""
        return np.asarray(~np.isnan(self.p) & (self.mark == 0))


@dataclass(frozen=True, eq=False)
class PairForecast(NodeAnswer[NodeDifferences]):
    """Values of all call paths of two experiments at a target.

    Attributes
    ----------
    inputs : the two experiments
    target : value of the parameter that was asked for
    found : exclusive and inclusive differences
    sum_changes : tests of differences of several call paths
    """

    inputs: PairInputs
    target: float
    found: tuple[ExperimentDifference, ExperimentDifference]
    sum_changes: SumChanges

    columns = NodeDifferences
    has_bands = True
    """Differences are always made with their intervals."""
    sorts = (Sort.DIFFERENCE, Sort.RATIO, Sort.NEW, Sort.BASE, Sort.NAME)
    """The orders of siblings."""
    usual_sort = Sort.DIFFERENCE
    """The default order of siblings: the largest loss comes first."""

    @property
    def fitted(self) -> Fitted:
        """Models or measured values of the new experiment."""
        return self.inputs.fitted

    @property
    def has_models(self) -> bool:
        """Whether there are predictions of both."""
        return self.inputs.has_models

    @cached_property
    def chains(self) -> Mapping[int, tuple[str, ...]]:
        """Names of folded call paths by the row of the call path below them."""
        return {
            int(side.rows[row]): names
            for side in self.inputs.pair.sides
            for row, names in side.experiment.chains.items()
        }

    @property
    def tree(self) -> CallTree:
        """The call paths of both."""
        return self.inputs.pair.tree

    @property
    def answers(self) -> tuple[Changes, ...]:
        """Exclusive differences at the leading scale, then those at the other, if there is one."""
        return self.found[0].answers

    @property
    def scale(self) -> float:
        """Value of the parameter of the leading values."""
        return self.answers[0].scale

    @cached_property
    def costs(self) -> Costs:
        """Values of base and of new at the leading scale, then at the other, [call paths, 2 or 4].

        Values of call paths without a prediction are NaN at the leading scale.
        """
        columns = [side[:-1] for changes in self.answers for side in (changes.base, changes.new)]
        return Costs.of(self.tree, np.column_stack(columns))

    @cached_property
    def occurs(self) -> Costs:
        """1 for call paths that occur in base and in new, else 0, [call paths, 2]."""
        found = self.found[0]
        return Costs.of(self.tree, np.column_stack([found.in_base, found.in_new]).astype(float))

    @cached_property
    def decides(self) -> Costs:
        """Size of nodes, [call paths, 1]: the sum of base and new."""
        size = np.zeros(len(self.tree))
        # Call paths without a prediction have the size that was measured.
        for changes in reversed(self.answers):
            both = np.nan_to_num(changes.base[:-1]) + np.nan_to_num(changes.new[:-1])
            size = np.where(np.isnan(changes.change[:-1]), size, both)
        return Costs.of(self.tree, size)

    @property
    def whole(self) -> float:
        """Sum of `decides`."""
        return float(self.decides.total[0])

    @cached_property
    def leads(self) -> Costs:
        """New minus base, [call paths, 1]."""
        own, whole = (
            change_of(values[:, [_BASE]], values[:, [_NEW]])
            for values in (self.costs.exclusive, self.costs.inclusive)
        )
        return Costs(own, whole)

    @cached_property
    def largest(self) -> float:
        """The larger total of the two at the leading scale."""
        return float(self.costs.total[:2].max())

    @cached_property
    def _worst_below(self) -> FloatArray:
        """Largest inclusive change in each subtree, [call paths]."""
        return self.tree.largest_below(np.nan_to_num(self.leads.inclusive[:, 0]))

    def worth(self, view: View, nodes: Rows, *, inclusive: bool) -> FloatArray:
        """Return the losses that the hot path follows, [nodes]; smaller ones are 0.

        In the top-down view, a node leads to the largest loss below it, even if its own callees
        gain more than they lose.
        """
        if inclusive and view.kind is ViewKind.TOP_DOWN:
            losses = self._worst_below[nodes]
        else:
            losses = np.nan_to_num(super().worth(view, nodes, inclusive=inclusive))
        return np.where(losses >= NOTICEABLE * self.largest, losses, 0.0)

    @property
    def checked(self) -> tuple[Costs]:
        """Costs of base and of new."""
        return (self.costs,)

    @property
    def summed(self) -> Iterator[Costs]:
        """Costs that a view sums."""
        yield from (self.costs, self.occurs, self.decides, self.leads)

    def sum_up(self, view: View) -> None:
        """Make the sums of a view, so that it can be shown at once later."""
        super().sum_up(view)
        self.worth(view, view.roots, inclusive=True)
        if view.kind is not ViewKind.TOP_DOWN:
            _ = [each.p for each in self.of_nodes(view, view.roots)]  # sums of runs and of bands

    def column_of(self, sort: Sort) -> str:
        """Return the column that orders siblings."""
        return {Sort.DIFFERENCE: "change", Sort.RATIO: "factor"}.get(sort, str(sort))


ViewForecast = Answer | PairForecast
"""Values that a view can show: of one experiment, or of two."""


def values_at(inputs: AnswerInputs, target: float, *, bands: bool = True) -> ViewForecast:
    """Return the values of every call path at `target`, of one experiment or of two.

    Parameters
    ----------
    inputs : one experiment, or two
    target : value of the parameter
    bands : make the bands of one experiment; differences of two always have intervals
    """
    if isinstance(inputs, PairInputs):
        return pair_forecast(inputs, target)
    return answer_at(inputs, target, bands=bands)


def pair_forecast(inputs: PairInputs, target: float) -> PairForecast:
    """Return the values of every call path of two experiments at `target`.

    Without models of both, or at infinity, these are the measured values at the largest common
    scale.

    Raises
    ------
    DataError
        If there is neither a common scale nor a target that can be predicted.
    """
    differences = inputs.differences
    at = target if inputs.has_models and np.isfinite(target) else None
    own, whole = (
        differences.at(at, inclusive=inclusive, predicted=inputs.predicted)
        for inclusive in (False, True)
    )
    is_predicted = own.changes is own.predicted
    scale = own.changes.scale
    predictions = differences.predictions(scale) if is_predicted else None

    return PairForecast(inputs, target, (own, whole), SumChanges(differences, scale, predictions))
