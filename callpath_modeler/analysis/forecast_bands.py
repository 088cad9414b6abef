"""Values of nodes of a forecast, and the bands or intervals of their sums."""

from __future__ import annotations

from dataclasses import dataclass

from callpath_modeler.analysis.measured import Measured
from callpath_modeler.analysis.target_costs import deviation
from callpath_modeler.analysis.trust import at_most, marks_of_trust
from callpath_modeler.arrays import BoolArray, FloatArray, Int8Array, Int16Array
from callpath_modeler.modeling.constants.sums import COLUMNS
from callpath_modeler.modeling.sums import ends_of_sums
from callpath_modeler.profile.groups import Costs


@dataclass(frozen=True, slots=True, eq=False)
class NodeForecasts:
    """Values of nodes, exclusive or inclusive, each [nodes].

    Attributes
    ----------
    at_base : value at the base of excess work; NaN = did not occur there, or no model
    at_largest : measured value at the largest scale; NaN = did not occur there
    value, low, high : value at the target with its band or interval; NaN = not known, or no band
        yet
    modelled : the part of the value that belongs to call paths with a model
    predicted : prediction for that part
    share_at_largest, share : fractions of the total
    excess, excess_low, excess_high : excess work between the base and the target, with its band;
        NaN ends = costs are measured, or there is no band yet
    doubted : whether the repetitions of both scales of a comparison overlap, so that noise may
        explain the excess work
    growth : code of the fastest growth in the value; -1 = no model
    trust : marks of trust, by the width of the band; -1 = no band
    """

    at_base: FloatArray
    at_largest: FloatArray
    value: FloatArray
    low: FloatArray
    high: FloatArray
    modelled: FloatArray
    predicted: FloatArray
    share_at_largest: FloatArray
    share: FloatArray
    excess: FloatArray
    excess_low: FloatArray
    excess_high: FloatArray
    doubted: BoolArray
    growth: Int16Array
    trust: Int8Array

    @property
    def deviation(self) -> FloatArray:
        """Relative deviation of predictions from measured values at the target."""
        return deviation(self.predicted, self.modelled)


@dataclass(frozen=True, slots=True, eq=False)
class ModelBands:
    """Bands of predictions.

    Attributes
    ----------
    costs : additive numbers for bands and for limits of marks, [call paths, columns]
    """

    costs: Costs

    def ends(self, value: FloatArray, parts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper ends of values [n], from their sums of `costs`, [n, columns]."""
        return ends_of_sums(value, parts[:, :COLUMNS])

    def trust(
        self, value: FloatArray, low: FloatArray, high: FloatArray, parts: FloatArray
    ) -> Int8Array:
        """Return marks of values with bands, from their sums of `costs`, [n, columns]."""
        return at_most(marks_of_trust(value, low, high), value, parts[:, COLUMNS:])


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredIntervals:
    """Confidence intervals of measured values.

    Attributes
    ----------
    costs : values of all runs, [call paths, K * R]
    measured : the runs
    point : index of the point
    """

    costs: Costs
    measured: Measured
    point: int

    def ends(self, value: FloatArray, parts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper ends of values [n], from their sums of `costs`, [n, K * R]."""
        measured = self.measured
        runs = parts.reshape(len(parts), *measured.runs.shape[1:])
        band = measured.interval(value, runs, self.point, measured.fitted.models.confidence)
        return band.low, band.high

    def trust(
        self,
        value: FloatArray,
        low: FloatArray,
        high: FloatArray,
        parts: FloatArray,  # noqa: ARG002
    ) -> Int8Array:
        """Return marks of values with intervals, [n]."""
        return marks_of_trust(value, low, high)
