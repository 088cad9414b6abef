"""Values of nodes of an answer: lines of a view, or call paths of a ranking.

Answers about one experiment and about two have the same sums over nodes, the same orders of
siblings and the same check of sums (`NodeAnswer`). They differ in the columns of a node.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.excess_work import doubtful, excess_band, expected_band, overlap
from callpath_modeler.analysis.program_costs import ProgramCosts
from callpath_modeler.analysis.uncertain import Band, deviation
from callpath_modeler.arrays import BoolArray, FloatArray, Int8Array, Int16Array
from callpath_modeler.profile.groups import Codes, Costs, Rows

if TYPE_CHECKING:
    from callpath_modeler.profile.outline import Outline, SumCheck
    from callpath_modeler.profile.tree_views import View
    from callpath_modeler.profile.view_request import Sort

_NO_ROWS: Rows = np.empty(0, np.intp)


class NodeSums:
    """Sums of costs over nodes; each is made once.

    Parameters
    ----------
    sums : function that returns the sums of costs over nodes, [nodes, columns]
    largest : function that returns the largest code of each node, [nodes]
    view, nodes : the nodes, below zero where several share a sum; None = they are in no view
    """

    def __init__(
        self,
        sums: Callable[[Costs], Costs],
        largest: Callable[[Codes], NDArray[np.integer]],
        view: View | None = None,
        nodes: Rows = _NO_ROWS,
    ) -> None:
        self._sums = sums
        self.largest = largest
        self._view, self._nodes = view, nodes
        # Costs are kept with their sums, so that no other costs get the same identity.
        self._kept: dict[int, tuple[Costs, Costs]] = {}

    def of(self, costs: Costs) -> Costs:
        """Return sums over nodes, [nodes, columns]."""
        if id(costs) not in self._kept:
            self._kept[id(costs)] = costs, self._sums(costs)
        return self._kept[id(costs)][1]

    @cached_property
    def rows(self) -> list[Rows]:
        """Call paths of each node of the view; none where several nodes share a sum."""
        view = self._view
        assert view is not None, "the nodes are those of a view"
        return [view.rows(node) if node >= 0 else _NO_ROWS for node in self._nodes.tolist()]


A = TypeVar("A")
"""Type of an answer."""


class NodeColumns(Generic[A]):
    """Values of nodes, exclusive or inclusive, each [nodes]; they are computed when asked for.

    Parameters
    ----------
    answer : the costs of all call paths
    sums : sums over the nodes
    inclusive : whether the values include callees
    """

    COLUMNS: ClassVar[tuple[str, ...]]
    """Names of the columns of a view."""

    def __init__(self, answer: A, sums: NodeSums, *, inclusive: bool) -> None:
        self._answer, self._sums, self._inclusive = answer, sums, inclusive

    @classmethod
    def of_columns(cls, columns: Mapping[str, NDArray[np.generic]]) -> Self:
        """Return values that are known, by name of the column."""
        found = cls.__new__(cls)
        vars(found).update(columns)
        return found

    def _column(self, costs: Costs) -> FloatArray:
        return self._all(costs)[:, 0]

    def _all(self, costs: Costs) -> FloatArray:
        found = self._sums.of(costs)
        return found.inclusive if self._inclusive else found.exclusive


Columns = TypeVar("Columns", bound=NodeColumns[Any])
"""Type of the columns of a node."""


class NodeAnswer(ABC, Generic[Columns]):
    """Costs of call paths as values of the nodes of a view: of one experiment, or of two."""

    columns: ClassVar[type[Any]]
    """The columns of a node."""

    @property
    @abstractmethod
    def leads(self) -> Costs:
        """Values that the hot path follows, [call paths, 1]."""

    @property
    @abstractmethod
    def checked(self) -> Sequence[Costs]:
        """Costs whose lines have to add up to their totals."""

    @property
    @abstractmethod
    def summed(self) -> Iterable[Costs]:
        """Costs that a view sums."""

    @abstractmethod
    def column_of(self, sort: Sort) -> str | None:
        """Return the column that orders siblings; None = they are ordered by their size."""

    def both(self, sums: NodeSums) -> tuple[Columns, Columns]:
        """Return exclusive and inclusive values."""
        own, whole = (self.columns(self, sums, inclusive=each) for each in (False, True))
        return own, whole

    def of_nodes(self, view: View, nodes: Rows) -> tuple[Columns, Columns]:
        """Return exclusive and inclusive values of nodes."""
        return self.both(
            NodeSums(
                lambda costs: Costs(*view.values(nodes, costs)),
                lambda codes: view.largest(nodes, codes),
                view,
                nodes,
            )
        )

    def of_siblings(self, view: View, nodes: Rows) -> tuple[Columns, Columns]:
        """Return exclusive and inclusive values of the sum of several siblings."""

        def together(costs: Costs) -> Costs:
            own, whole = view.together(nodes, costs)
            return Costs(own[None], whole[None])

        def largest(codes: Codes) -> NDArray[np.integer]:
            return np.asarray(view.largest(nodes, codes).max(keepdims=True))

        return self.both(NodeSums(together, largest, view, np.array([-1])))

    def of_outline(self, outline: Outline, places: Rows | None = None) -> tuple[Columns, Columns]:
        """Return exclusive and inclusive values of lines; `places` selects some of them."""
        lines = np.arange(len(outline)) if places is None else places
        return self.both(
            NodeSums(
                lambda costs: Costs(*outline.values_of(lines, costs)),
                lambda codes: outline.largest_of(lines, codes),
                outline.view,
                outline.nodes[lines],
            )
        )

    def worth(self, view: View, nodes: Rows, *, inclusive: bool) -> FloatArray:
        """Return the values of nodes that the hot path follows, [nodes]."""
        return view.values(nodes, self.leads)[int(inclusive)][:, 0]

    def sibling_order(
        self, view: View, sort: Sort, *, inclusive: bool
    ) -> Callable[[Rows], FloatArray] | None:
        """Return the function that orders siblings, [nodes] -> [nodes]; None = by their size."""
        from callpath_modeler.profile.view_request import Sort  # rankings need no views

        if sort is Sort.NAME:
            return view.alphabetical
        name = self.column_of(sort)
        if name is None:
            return None
        # An open view is ordered family by family, and each order computes one column only.
        return lambda nodes: np.asarray(
            getattr(self.of_nodes(view, nodes)[int(inclusive)], name), np.float64
        )

    def check(self, outline: Outline) -> SumCheck:
        """Return whether lines add up to the totals of `checked`."""
        from callpath_modeler.profile.outline import SumCheck

        found = [outline.check(each) for each in self.checked]
        return SumCheck(
            np.concatenate([each.counted for each in found]),
            np.concatenate([each.total for each in found]),
            all(each.holds for each in found),
        )

    def sum_up(self, view: View) -> None:
        """Make the sums of a view, so that it can be shown at once later."""
        for costs in self.summed:
            view.values(view.roots, costs)


class NodeValues(NodeColumns[ProgramCosts]):
    """Values of nodes in one experiment."""

    COLUMNS = (
        *("at_base", "at_largest", "value", "low", "high", "modelled", "predicted"),
        *("share_at_largest", "share", "excess", "excess_low", "excess_high"),
        *("doubted", "growth", "trust"),
    )

    @property
    def _unknown(self) -> FloatArray:
        return np.full(len(self.value), np.nan)

    @cached_property
    def value(self) -> FloatArray:
        """Value at the target; NaN = not known."""
        return self._column(self._answer.costs.value)

    @cached_property
    def modelled(self) -> FloatArray:
        """The part of the value that belongs to call paths with a model."""
        return self._column(self._answer.costs.modelled)

    @cached_property
    def predicted(self) -> FloatArray:
        """Prediction for the part with a model."""
        return self._column(self._answer.costs.predicted)

    @cached_property
    def at_base(self) -> FloatArray:
        """Value at the base of excess work; NaN = did not occur there, or no model."""
        return self._column(self._answer.costs_at_base)

    @cached_property
    def at_largest(self) -> FloatArray:
        """Measured value at the largest scale; NaN = did not occur there."""
        return self._column(self._answer.inputs.at_largest)

    @cached_property
    def _ends(self) -> tuple[FloatArray, FloatArray]:
        bands = self._answer.bands
        if bands is None:
            return self._unknown, self._unknown
        return bands.ends(self.value, self._all(bands.costs))

    @cached_property
    def low(self) -> FloatArray:
        """Lower end of the band or interval of the value; NaN = none, or not made yet."""
        return self._ends[0]

    @cached_property
    def high(self) -> FloatArray:
        """Upper end of the band or interval of the value; NaN = none, or not made yet."""
        return self._ends[1]

    @cached_property
    def trust(self) -> Int8Array:
        """Marks of trust, by the width of the band; -1 = no band."""
        bands = self._answer.bands
        if bands is None:
            return np.full(len(self.value), -1, np.int8)
        return bands.trust(self.value, self.low, self.high, self._all(bands.costs))

    @cached_property
    def share_at_largest(self) -> FloatArray:
        """Fraction of the cost of the program at the largest scale."""
        return self._part_of(self._answer.program_at_largest, self.at_largest)

    @cached_property
    def share(self) -> FloatArray:
        """Fraction of the cost of the program at the target; NaN = the metric does not add up."""
        return self._part_of(self._answer.whole, self._column(self._answer.costs.decides))

    def _part_of(self, whole: float, costs: FloatArray) -> FloatArray:
        has_shares = self._answer.fitted.metric.additive and whole > 0
        return costs / whole if has_shares else self._unknown

    @cached_property
    def _expected(self) -> FloatArray:
        """Expected cost per process at the target; 0 = nothing is expected."""
        return np.nan_to_num(self._column(self._answer.expected))

    @cached_property
    def lost(self) -> FloatArray:
        """Cost per process at the target beyond the expected cost; NaN = not defined."""
        loss = self._answer.loss
        return self._unknown if loss is None else loss.lost(self.value, self._expected)

    @cached_property
    def excess(self) -> FloatArray:
        """Excess work between the base and the target; NaN = not defined, or no prediction."""
        loss = self._answer.loss
        if loss is None:
            return self._unknown
        found = loss.excess(self.value, self._expected, self.share)
        # At a measured target, an absent call path gains its expected cost.
        left_out = np.isnan(self.value) & (self._answer.costs.repetitions == 0)
        return np.where(left_out, np.nan, found)

    @cached_property
    def excess_band(self) -> Band:
        """Excess work with its band; NaN ends = measured costs, or no band yet."""
        answer = self._answer
        loss, bands = answer.loss, answer.bands
        if loss is None or bands is None or not bands.has_differences:
            return Band(self.excess, self._unknown, self._unknown)
        reach = answer.expected_addends
        addends = None if reach is None else self._all(reach)
        spent = expected_band(self._expected, addends, loss.of_target)
        total = answer.total[0], bands.costs.total
        found = excess_band(self.value, self._all(bands.costs), total, spent, loss)
        return Band(self.excess, found.low, found.high)

    @cached_property
    def excess_low(self) -> FloatArray:
        """Lower end of the band of excess work."""
        return self.excess_band.low

    @cached_property
    def excess_high(self) -> FloatArray:
        """Upper end of the band of excess work."""
        return self.excess_band.high

    @cached_property
    def doubted(self) -> BoolArray:
        """True if noise may explain the excess work: the repetitions of both scales overlap."""
        runs = self._answer.runs_compared
        overlaps = None if runs is None else overlap(self._all(runs[0]), self._all(runs[1]))
        return doubtful(self.excess, overlaps)

    @cached_property
    def growth(self) -> Int16Array:
        """Code of the fastest growth in the value; -1 = no model."""
        codes = self._answer.inputs.growth[self._inclusive]
        return self._sums.largest(codes).astype(np.int16)

    @property
    def deviation(self) -> FloatArray:
        """Relative difference between predicted and measured values at the target."""
        return deviation(self.predicted, self.modelled)
