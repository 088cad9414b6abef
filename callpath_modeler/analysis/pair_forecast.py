"""Values of two experiments at a target, measured or predicted, for the nodes of a view.

Both experiments share one call tree. A call path of one experiment only is a node of its own, so
its cost is never part of another node's difference. The values of nodes add up in each of the three
views. Differences of single call paths have the significance that `analysis.diff` finds, and those
of several call paths are tested in `analysis.sum_changes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.answer import Answer
from callpath_modeler.analysis.excess import NOTICEABLE
from callpath_modeler.arrays import BoolArray, FloatArray, Int8Array, IntArray
from callpath_modeler.errors import UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.groups import Costs, Rows
from callpath_modeler.profile.outline import SHARED, Outline, SumCheck
from callpath_modeler.profile.view_request import Sort
from callpath_modeler.profile.views import View, ViewKind

if TYPE_CHECKING:
    from callpath_modeler.analysis.changes import Changes
    from callpath_modeler.analysis.diff import Differences, ExperimentDifference
    from callpath_modeler.analysis.pairing import ExperimentPair
    from callpath_modeler.analysis.sum_changes import SumChanges

_NO_ROWS: Rows = np.empty(0, np.intp)
_BASE, _NEW = 0, 1
"""Columns of costs: the leading values; those of another scale follow in the same order."""


class PairInputs:
    """Two experiments, and values of theirs that do not depend on the target.

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
        metric = differences.pair.metric
        if not metric.additive:
            raise UsageError(
                f"no view: {metric.name} does not add up over call paths",
                hint="`cpmodel diff` compares such metrics",
            )
        self.fitted = fitted
        self.differences = differences
        self.names = names
        self.predicted = predicted

    def with_basis(self, *, predicted: bool) -> PairInputs:
        """Return the same with measured or with predicted values at measured targets."""
        if predicted == self.predicted:
            return self
        other = copy(self)
        other.predicted = predicted
        return other

    @property
    def pair(self) -> ExperimentPair:
        """The two experiments on one call tree."""
        return self.differences.pair

    @property
    def has_models(self) -> bool:
        """Whether both experiments have models."""
        return self.differences.has_models

    def was_run(self, target: float) -> bool:
        """Return whether both ran a target often enough to be shown as measured."""
        return all(self.differences.repetitions(target))


@dataclass(frozen=True, slots=True, eq=False)
class NodeDifferences:
    """Values of nodes in two experiments, exclusive or inclusive, each [nodes].

    Attributes
    ----------
    base, new : value at the leading scale; NaN = does not occur, or no prediction
    change : new minus base; a node that does not occur costs nothing; NaN = occurs in neither
    ratio, low, high : new over base with its interval; NaN = one of the two costs nothing, or
        several nodes share a line; ends are also NaN if the noise is not known
    p : probability of a difference of this size, or larger, by chance; NaN = not known
    mark : 1 = new is significantly worse, -1 = better, 0 = no significant difference
    share : change as a fraction of the larger total of the two
    in_base, in_new : whether any call path of the node occurs
    other_base, other_new : measured values at the largest common scale, if another scale leads
    """

    base: FloatArray
    new: FloatArray
    change: FloatArray
    ratio: FloatArray
    low: FloatArray
    high: FloatArray
    p: FloatArray
    mark: Int8Array
    share: FloatArray
    in_base: BoolArray
    in_new: BoolArray
    other_base: FloatArray
    other_new: FloatArray

    COLUMNS: ClassVar[tuple[str, ...]]
    """Names of the columns of a view."""

    @classmethod
    def of_columns(cls, columns: Mapping[str, NDArray[Any]]) -> NodeDifferences:
        """Return values that are known, by name of the column."""
        return cls(**columns)

    @property
    def is_doubted(self) -> BoolArray:
        """Whether noise may explain the difference; False also where the noise is not known."""
        return np.asarray(~np.isnan(self.p) & (self.mark == 0))


NodeDifferences.COLUMNS = tuple(column.name for column in fields(NodeDifferences))


@dataclass(frozen=True, eq=False)
class PairForecast:
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
    def has_bands(self) -> bool:
        """True, because differences are always made with their intervals."""
        return True

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
    def _occurs(self) -> Costs:
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
            _change_of(values[:, [_BASE]], values[:, [_NEW]])
            for values in (self.costs.exclusive, self.costs.inclusive)
        )
        return Costs(own, whole)

    @cached_property
    def _largest(self) -> float:
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
            losses = np.nan_to_num(view.values(nodes, self.leads)[1 if inclusive else 0][:, 0])
        return np.where(losses >= NOTICEABLE * self._largest, losses, 0.0)

    @property
    def sorts(self) -> list[Sort]:
        """The orders of siblings."""
        return [Sort.DIFFERENCE, Sort.RATIO, Sort.NEW, Sort.BASE, Sort.NAME]

    @property
    def usual_sort(self) -> Sort:
        """The default order of siblings: the largest loss comes first."""
        return Sort.DIFFERENCE

    def sibling_order(
        self, view: View, sort: Sort, *, inclusive: bool
    ) -> Callable[[Rows], FloatArray] | None:
        """Return the function that orders siblings, [nodes] -> [nodes]."""
        which = 1 if inclusive else 0

        def values(nodes: Rows) -> FloatArray:
            return view.values(nodes, self.costs)[which]

        orders: dict[Sort, Callable[[Rows], FloatArray]] = {
            Sort.NAME: view.alphabetical,
            Sort.DIFFERENCE: lambda nodes: _change_of(*values(nodes)[:, [_BASE, _NEW]].T),
            Sort.RATIO: lambda nodes: _ratio_or_end(values(nodes)),
            Sort.NEW: lambda nodes: values(nodes)[:, _NEW],
            Sort.BASE: lambda nodes: values(nodes)[:, _BASE],
        }
        return orders[sort]

    def check(self, outline: Outline) -> SumCheck:
        """Return True if lines add up to the totals of base and of new."""
        return outline.check(self.costs)

    def sum_up(self, view: View) -> None:
        """Make the sums of a view, so that it can be shown at once later."""
        for costs in (self.costs, self._occurs, self.decides, self.leads):
            view.values(view.roots, costs)
        self.worth(view, view.roots, inclusive=True)
        if view.kind is not ViewKind.TOP_DOWN:
            self.of_nodes(view, view.roots)  # sums of runs and of bands, for the tests

    def of_nodes(self, view: View, nodes: Rows) -> tuple[NodeDifferences, NodeDifferences]:
        """Return exclusive and inclusive values of nodes."""
        return self._both(view, nodes, lambda costs: view.values(nodes, costs))

    def of_siblings(self, view: View, nodes: Rows) -> tuple[NodeDifferences, NodeDifferences]:
        """Return exclusive and inclusive values of the sum of several siblings, without a test."""

        def together(costs: Costs) -> tuple[FloatArray, FloatArray]:
            own, whole = view.together(nodes, costs)
            return own[None], whole[None]

        return self._both(view, np.array([SHARED]), together)

    def of_outline(
        self, outline: Outline, places: Rows | None = None
    ) -> tuple[NodeDifferences, NodeDifferences]:
        """Return exclusive and inclusive values of lines; `places` selects some of them."""
        lines = np.arange(len(outline)) if places is None else places
        return self._both(
            outline.view, outline.nodes[lines], lambda costs: outline.values_of(lines, costs)
        )

    def _both(
        self, view: View, nodes: Rows, of: Callable[[Costs], tuple[FloatArray, FloatArray]]
    ) -> tuple[NodeDifferences, NodeDifferences]:
        """Return exclusive and inclusive values, from a function that sums columns over nodes.

        Siblings that share a line, with the node `SHARED`, have no test.
        """
        values, occurs = of(self.costs), of(self._occurs)
        rows = [_NO_ROWS if node == SHARED else view.rows(node) for node in nodes.tolist()]
        count = np.array([len(each) for each in rows], np.intp)
        row = np.array([each[0] for each in rows if len(each) == 1], np.intp)
        own, whole = (
            self._compared(kind, values[kind], occurs[kind], view, nodes, count, row)
            for kind in (0, 1)
        )
        return own, whole

    def _compared(
        self,
        kind: int,
        values: FloatArray,
        occurs: FloatArray,
        view: View,
        nodes: Rows,
        count: IntArray,
        row: IntArray,
    ) -> NodeDifferences:
        """Return the values of nodes with `count` call paths; `row` = those of single ones."""
        changes, nothing = self.found[kind].changes, np.full(len(values), np.nan)
        low, high, p = nothing.copy(), nothing.copy(), nothing.copy()
        mark = np.zeros(len(values), np.int8)
        alone, several = count == 1, count > 1
        low[alone], high[alone] = 1 + changes.low[row], 1 + changes.high[row]
        p[alone], mark[alone] = changes.p[row], changes.mark[row]
        if several.any():
            some = nodes[several]
            found, marks = self.sum_changes.test(
                lambda costs: view.values(some, costs)[kind], values[several, :2], changes
            )
            low[several], high[several] = np.exp(found.low), np.exp(found.high)
            p[several], mark[several] = found.p, marks
        base, new = values[:, _BASE], values[:, _NEW]
        change = _change_of(base, new)
        with np.errstate(divide="ignore", invalid="ignore"):
            # Siblings that share a line may be other call paths in each experiment.
            has_ratio = (base > 0) & (new > 0) & (nodes != SHARED)
            ratio = np.where(has_ratio, new / base, np.nan)
        other = values[:, 2:] if values.shape[1] > 2 else np.column_stack([nothing, nothing])
        return NodeDifferences(
            base=base,
            new=new,
            change=change,
            ratio=ratio,
            low=low,
            high=high,
            p=p,
            mark=mark,
            share=change / self._largest if self._largest > 0 else nothing,
            in_base=occurs[:, _BASE] > 0,
            in_new=occurs[:, _NEW] > 0,
            other_base=other[:, 0],
            other_new=other[:, 1],
        )


ViewForecast = Answer | PairForecast
"""Values that a view can show: of one experiment, or of two."""


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
    from callpath_modeler.analysis.sum_changes import SumChanges

    return PairForecast(inputs, target, (own, whole), SumChanges(differences, scale, predictions))


def _ratio_or_end(values: FloatArray) -> FloatArray:
    """Return new over base, [nodes]; infinite without base, zero without new, NaN without both."""
    base, new = (np.nan_to_num(values[:, column]) for column in (_BASE, _NEW))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(new / base)


def _change_of(base: FloatArray, new: FloatArray) -> FloatArray:
    # A browser of one experiment knows this module, but none of those that compare two.
    from callpath_modeler.analysis.changes import change_of

    return change_of(base, new)
