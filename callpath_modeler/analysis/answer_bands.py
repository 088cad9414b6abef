"""Bands of predicted costs and intervals of measured costs, for sums over call paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from msgspec import Struct, structs

from callpath_modeler.analysis.bands import Band, Total, propagate_errors, stretched
from callpath_modeler.analysis.measured import Measured, within
from callpath_modeler.analysis.reconciliation import most_of_call_paths
from callpath_modeler.analysis.trust import (
    LIMITS,
    MOST_UNREPEATED,
    at_most,
    limited,
    marks_of_trust,
)
from callpath_modeler.arrays import FloatArray, Int8Array
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling.constants.bands import COLUMNS
from callpath_modeler.modeling.sums import addable, ends_of_sums
from callpath_modeler.profile.groups import Costs, FormulaCosts
from callpath_modeler.profile.metric_formulas import Formula

_CHUNK = 4_096
"""Rows whose bands are made before the next check for cancellation."""


class ModelBands(Struct, frozen=True, eq=False):
    """Bands of predictions.

    Attributes
    ----------
    costs : additive numbers for bands and for limits of marks, [call paths, columns]
    factor : factor of the widths of bands, as in `Fitted.band_factor`
    most : upper end of the run time, which no call path exceeds; inf = not known
    """

    costs: Costs
    factor: float = 1.0
    most: float = np.inf

    @property
    def has_differences(self) -> bool:
        """Whether differences of costs have bands; corrections of bands are about costs alone."""
        return self.factor == 1

    def ends(self, value: FloatArray, parts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper ends of values [n], from their sums of `costs`, [n, columns]."""
        low, high = self._ends(value, parts)
        return low, np.minimum(high, self.most)

    def _ends(self, value: FloatArray, parts: FloatArray) -> tuple[FloatArray, FloatArray]:
        return stretched(value, *ends_of_sums(value, parts[:, :COLUMNS]), self.factor)

    def total(self, value: float) -> Total:
        """Return the sum of all call paths with its band, which does not know the run time."""
        low, high = self._ends(np.array([value]), self.costs.total[None])
        return value, float(low[0]), float(high[0])

    def trust(
        self, value: FloatArray, low: FloatArray, high: FloatArray, parts: FloatArray
    ) -> Int8Array:
        """Return marks of values with bands, from their sums of `costs`, [n, columns]."""
        return at_most(marks_of_trust(value, low, high), value, parts[:, COLUMNS:])


class MeasuredIntervals(Struct, frozen=True, eq=False):
    """Confidence intervals of measured values.

    Attributes
    ----------
    costs : values of all runs, [call paths, K * R]; then the ends of the intervals of call paths,
        [call paths, 2]; then the deviations from models, [call paths, 3], if they are the noise. Of
        a formula, only the values of its operands in all runs
    measured : the runs
    point : index of the point
    has_deviations : whether deviations from models are the noise, because no scale was repeated
    most : upper end of the interval of the total, which no call path exceeds; inf = not known
    """

    costs: Costs
    measured: Measured
    point: int
    has_deviations: bool
    most: float = np.inf

    @classmethod
    def of(cls, runs: Costs, measured: Measured, point: int) -> MeasuredIntervals:
        """Return the intervals at a point, from the values of all runs [call paths, K * R]."""
        if isinstance(runs, FormulaCosts):
            return cls(runs, measured, point, False)
        tree, confidence = measured.fitted.experiment.tree, measured.fitted.models.confidence
        columns = [runs, Costs.of(tree, measured.ends_of_call_paths(point, confidence))]
        deviations = measured.deviations(point)
        if deviations is not None:
            columns.append(Costs.of(tree, deviations))
        most = measured.most(point, confidence)
        return cls(Costs.beside(columns), measured, point, deviations is not None, most)

    @property
    def has_differences(self) -> bool:
        """False, because excess work that was measured has no interval."""
        return False

    def ends(self, value: FloatArray, parts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper ends of values [n], from their sums of `costs`, [n, columns]."""
        measured, shape = self.measured, self.measured.runs.shape[1:]
        count = int(np.prod(shape))
        runs = parts[:, :count].reshape(len(parts), *shape)
        noise = parts[:, count + 2 :] if self.has_deviations else None
        band = measured.interval(value, runs, self.point, measured.fitted.models.confidence, noise)
        if not isinstance(self.costs, FormulaCosts):
            band = within(band, *parts[:, count : count + 2].T)
        return band.low, np.minimum(band.high, self.most)

    def total(self, value: float) -> Total:
        """Return the total of the program with its interval."""
        if isinstance(self.costs, FormulaCosts):
            low, high = self.ends(np.array([value]), self.costs.total[None])
            return value, float(low[0]), float(high[0])
        whole = self.measured.total(self.point, self.measured.fitted.models.confidence)
        return value, float(whole.low[0]), float(whole.high[0])

    def trust(
        self,
        value: FloatArray,
        low: FloatArray,
        high: FloatArray,
        parts: FloatArray,  # noqa: ARG002
    ) -> Int8Array:
        """Return marks of values with intervals, [n]."""
        marks = marks_of_trust(value, low, high)
        return np.minimum(marks, MOST_UNREPEATED) if self.has_deviations else marks


class FormulaBands(Struct, frozen=True, eq=False):
    """Bands of the formula of predictions, by propagation of the errors of its operands.

    Attributes
    ----------
    costs : for each operand its predictions, then the columns of its bands
    formula : the formula
    parts : bands of the operands
    most : inf, because a ratio has no limit
    """

    costs: Costs
    formula: Formula
    parts: tuple[ModelBands, ...]
    most: float = np.inf

    @classmethod
    def of(
        cls, formula: Formula, values: Sequence[Costs], parts: Sequence[ModelBands]
    ) -> FormulaBands:
        """Return the bands of a formula from the predictions of its operands and their bands."""
        pairs = zip(values, (part.costs for part in parts), strict=True)
        return cls(Costs.beside([each for pair in pairs for each in pair]), formula, tuple(parts))

    @property
    def has_differences(self) -> bool:
        """False, because a metric that does not add up has no excess work."""
        return False

    def _operands(self, sums: FloatArray) -> Iterator[tuple[ModelBands, FloatArray, FloatArray]]:
        """Yield bands, values and columns of each operand, from sums of `costs`, [n, columns]."""
        for part, own in zip(self.parts, np.split(sums, len(self.parts), axis=1), strict=True):
            yield part, own[:, 0], own[:, 1:]

    def ends(self, value: FloatArray, sums: FloatArray) -> tuple[FloatArray, FloatArray]:  # noqa: ARG002
        """Return lower and upper ends, from sums of `costs`, [n, columns]; NaN = none."""
        bands = [Band(v, *part.ends(v, own)) for part, v, own in self._operands(sums)]
        found = propagate_errors(self.formula.of, bands)
        return found.low, found.high

    def total(self, value: float) -> Total:
        """Return the value of the program with its band."""
        low, high = self.ends(np.array([value]), self.costs.total[None])
        return value, float(low[0]), float(high[0])

    def trust(
        self, value: FloatArray, low: FloatArray, high: FloatArray, sums: FloatArray
    ) -> Int8Array:
        """Return marks of values with bands, from sums of `costs`, [n, columns]."""
        marks = marks_of_trust(value, low, high)
        for _, own, columns in self._operands(sums):
            marks = at_most(marks, own, columns[:, COLUMNS:])
        return marks


Bands = ModelBands | FormulaBands | MeasuredIntervals
"""Source of bands or of intervals."""


def model_bands(
    fitted: Fitted,
    target: float,
    value: FloatArray,
    added: FloatArray | None = None,
    is_wanted: Callable[[], bool] = lambda: True,
) -> ModelBands | None:
    """Return the bands of predictions at a finite target; None = cancelled.

    Parameters
    ----------
    fitted : the models
    target : value of the parameter
    value : [call paths] exclusive predictions there; NaN = no model
    added : [call paths, columns] additive numbers of their bands, if they were made already
    is_wanted : called repeatedly; False cancels. Bands of 10^6 call paths take seconds
    """
    models, modelled, where = fitted.models, fitted.modelled, np.array([target])
    times = fitted.times_largest(target)
    columns = np.zeros((len(models), COLUMNS + LIMITS), order="F")
    for start in range(0, len(models) if added is None else 0, _CHUNK):
        if not is_wanted():
            return None
        part = slice(start, start + _CHUNK)
        some = models.take(part)
        columns[part, :COLUMNS] = addable(some, where, some.predict(where))[:, 0]
    if added is not None:
        columns[:, :COLUMNS] = added
    columns[:, COLUMNS:] = limited(models, value, times)
    columns[~modelled] = 0.0
    found = ModelBands(Costs.of(fitted.experiment.tree, columns), fitted.band_factor)
    total = found.total(float(np.nansum(value)))
    return structs.replace(found, most=most_of_call_paths(fitted, target, total))
