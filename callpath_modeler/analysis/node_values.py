"""Values of nodes of an answer: lines of a view, or call paths of a ranking."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.bands import Band, deviation
from callpath_modeler.analysis.excess import doubtful, excess_band, expected_band, overlap
from callpath_modeler.analysis.program_costs import ProgramCosts
from callpath_modeler.arrays import BoolArray, FloatArray, Int8Array, Int16Array
from callpath_modeler.profile.groups import Codes, Costs


class NodeSums:
    """Sums of costs over nodes; each is made once.

    Parameters
    ----------
    sums : function that returns exclusive and inclusive sums over nodes, each [nodes, columns]
    largest : function that returns the largest code of each node, [nodes]
    """

    def __init__(
        self,
        sums: Callable[[Costs], tuple[FloatArray, FloatArray]],
        largest: Callable[[Codes], NDArray[np.integer]],
    ) -> None:
        self._sums = sums
        self.largest = largest
        # Costs are kept with their sums, so that no other costs get the same identity.
        self._kept: dict[int, tuple[Costs, tuple[FloatArray, FloatArray]]] = {}

    def of(self, costs: Costs) -> tuple[FloatArray, FloatArray]:
        """Return exclusive and inclusive sums over nodes, each [nodes, columns]."""
        if id(costs) not in self._kept:
            self._kept[id(costs)] = costs, self._sums(costs)
        return self._kept[id(costs)][1]


class NodeValues:
    """Values of nodes, exclusive or inclusive, each [nodes]; they are computed when asked for.

    Parameters
    ----------
    answer : the costs of all call paths
    sums : sums over the nodes
    inclusive : whether the values include callees
    """

    COLUMNS = (
        *("at_base", "at_largest", "value", "low", "high", "modelled", "predicted"),
        *("share_at_largest", "share", "excess", "excess_low", "excess_high"),
        *("doubted", "growth", "trust"),
    )
    """Names of the columns of a view."""

    def __init__(self, answer: ProgramCosts, sums: NodeSums, *, inclusive: bool) -> None:
        self._answer, self._sums, self._kind = answer, sums, int(inclusive)

    @classmethod
    def of_columns(cls, columns: Mapping[str, NDArray[np.generic]]) -> NodeValues:
        """Return values that are known, by name of the column."""
        found = cls.__new__(cls)
        vars(found).update(columns)
        return found

    def _column(self, costs: Costs) -> FloatArray:
        return self._all(costs)[:, 0]

    def _all(self, costs: Costs) -> FloatArray:
        return self._sums.of(costs)[self._kind]

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
        found = excess_band(self.value, self._all(bands.costs), total, spent, loss.of_target)
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
        codes = self._answer.inputs.growth[self._kind]
        return self._sums.largest(codes).astype(np.int16)

    @property
    def deviation(self) -> FloatArray:
        """Relative difference between predicted and measured values at the target."""
        return deviation(self.predicted, self.modelled)
