"""Inputs of answers that do not depend on the target, and bands of sums over call paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import cached_property
from typing import Self

import numpy as np
from msgspec import Struct, structs

from callpath_modeler.analysis.ensemble import EnsembleExcess, Losses, ensemble_of, losses_of_pairs
from callpath_modeler.analysis.measured import Measured, within
from callpath_modeler.analysis.predict import most_of_call_paths
from callpath_modeler.analysis.run_time import maxima_at_largest
from callpath_modeler.analysis.uncertain import (
    LIMITS,
    MOST_UNREPEATED,
    Band,
    Total,
    at_most,
    limited,
    marks_of_trust,
    propagate_errors,
    stretched,
)
from callpath_modeler.arrays import BoolArray, FloatArray, Int8Array, IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Centre, Growth, centre
from callpath_modeler.modeling.constants.bands import COLUMNS
from callpath_modeler.modeling.sums import addable, ends_of_sums
from callpath_modeler.profile.groups import Codes, Costs, FormulaCosts
from callpath_modeler.profile.metric_formulas import Formula

_CHUNK = 4_096
"""Rows whose bands are made before the next check for cancellation."""
_IN_MEMORY = 32 * _CHUNK
"""Rows after which the memory of the store is given back."""


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
    def added(self) -> FloatArray:
        """Additive numbers for the bands of call paths, [call paths, columns]; zeros = no model."""
        return self.costs.exclusive[:, :COLUMNS]

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
        if part.stop % _IN_MEMORY == 0:
            models.give_back()
    if added is not None:
        columns[:, :COLUMNS] = added
    columns[:, COLUMNS:] = limited(models, value, times)
    columns[~modelled] = 0.0
    models.give_back()
    found = ModelBands(Costs.of(fitted.experiment.tree, columns), fitted.band_factor)
    total = found.total(float(np.nansum(value)))
    return structs.replace(found, most=most_of_call_paths(fitted, target, total))


class AnswerInputs:
    """Values of an experiment that do not depend on the target.

    Parameters
    ----------
    fitted : the models
    predicted : use predictions even if a target was measured
    """

    def __init__(self, fitted: Fitted, *, predicted: bool = False) -> None:
        self.fitted = fitted
        self.predicted = predicted
        self.modelled = fitted.modelled
        self.total_at_largest = _total_at_largest(fitted)
        self.unmodelled, self.unmodelled_share = _unmodelled(fitted)

    @property
    def has_models(self) -> bool:
        """Whether there are predictions."""
        return not self.fitted.is_measured_only

    def with_basis(self, *, predicted: bool) -> Self:
        """Return the same with measured or with predicted values at measured targets."""
        if predicted == self.predicted:
            return self
        other = copy(self)  # what was worked out is as true there
        other.predicted = predicted
        return other

    @cached_property
    def losses(self) -> Losses | None:
        """Excess work between the chosen pairs of measured scales; None = no pairs were chosen."""
        return losses_of_pairs(self.fitted)

    @cached_property
    def ensemble(self) -> EnsembleExcess:
        """Mean excess work over all pairs of measured scales."""
        return ensemble_of(self.fitted)

    @cached_property
    def parts(self) -> tuple[AnswerInputs, ...]:
        """The operands of a formula that does not add up, in the order of `Formula.parts`."""
        return tuple(AnswerInputs(part, predicted=self.predicted) for part in self.fitted.parts)

    def measured_at(self, point: int) -> Costs:
        """Return measured values at a point, [call paths, 1]: centres of the repetitions."""
        fitted, tree = self.fitted, self.fitted.experiment.tree
        if fitted.formula is None:
            return Costs.of(tree, np.asarray(fitted.measured[:, point]))
        return costs_of_runs(fitted, slice(point, point + 1), fitted.models.aggregate)

    @cached_property
    def at_largest(self) -> Costs:
        """Measured values at the largest scale, [call paths, 1]."""
        return self.measured_at(len(self.fitted.points) - 1)

    @property
    def whole_at_largest(self) -> float:
        """Measured value of the program at the largest scale; NaN = it has none."""
        if self.fitted.formula is None:
            return self.total_at_largest
        return float(self.at_largest.total[0])

    @cached_property
    def maxima_at_largest(self) -> tuple[FloatArray, FloatArray]:
        """Exclusive maxima over processes, and imbalance, at the largest scale."""
        return maxima_at_largest(self.fitted)

    @cached_property
    def all_at_base(self) -> Costs:
        """Values at the base of excess work, [call paths, 1]."""
        if self.fitted.formula is not None:
            return self.measured_at(self.fitted.base_point)
        return Costs.of(self.fitted.experiment.tree, np.asarray(self.fitted.at_base()))

    @cached_property
    def at_base(self) -> Costs:
        """Values at the base of excess work of call paths with a model, [call paths, 1]."""
        if self.modelled.all() or self.fitted.formula is not None:
            return self.all_at_base
        modelled = np.where(self.modelled, self.all_at_base.exclusive[:, 0], np.nan)
        return Costs.of(self.fitted.experiment.tree, modelled)

    @cached_property
    def measured(self) -> Measured:
        """Measured values at the scales of the models."""
        return Measured(self.fitted)

    def was_run(self, target: float) -> bool:
        """Return whether a target was run."""
        return self.measured.point(target) is not None

    def point(self, target: float) -> int | None:
        """Return the index of the point at a target; None = values there are predicted."""
        return None if self.predicted else self.measured.point(target)

    @cached_property
    def runs(self) -> Costs:
        """Values of all runs at all points, [call paths, K * R]."""
        if self.fitted.formula is not None:
            return costs_of_runs(self.fitted)
        runs = self.measured.runs
        return Costs.of(self.fitted.experiment.tree, runs.reshape(len(runs), -1))

    @cached_property
    def _is_without(self) -> BoolArray | None:
        """Return which call paths have no model in their subtree; None = all have one."""
        if self.modelled.all():
            return None
        largest = self.fitted.experiment.tree.largest_below(self.modelled.astype(np.int8))
        return np.asarray(largest == 0)

    def summed(self, own: FloatArray) -> Costs:
        """Return one column of predictions with their sums; NaN = no model."""

        def whole() -> FloatArray:
            found = self.fitted.experiment.tree.inclusive(np.where(np.isnan(own), 0.0, own))
            if self._is_without is not None:
                found[self._is_without] = np.nan
            return found[:, None]

        return Costs(own[:, None], whole)

    @cached_property
    def growth(self) -> tuple[Codes, Codes]:
        """Codes of growth, exclusive and inclusive; -1 = no model, or a formula of sums."""
        if self.fitted.formula is not None:
            none = Codes(np.full(len(self.modelled), -1, np.int16))
            return none, none
        own = np.where(self.modelled, self.fitted.models.growth_rank(), -1).astype(np.int16)
        return Codes(own), Codes(self.fitted.experiment.tree.largest_below(own))

    def growth_of(self, code: int) -> Growth | None:
        """Return the growth of a code; None = no model."""
        return self.fitted.models.shapes.growths[code] if code >= 0 else None

    def growth_text(self, code: int, *, pretty: bool = False) -> str | None:
        """Return the growth of a code as text; None = no model."""
        found = self.growth_of(code)
        return None if found is None else found.text(self.fitted.parameter, pretty=pretty)


def costs_of_runs(
    fitted: Fitted, points: slice = slice(None), aggregate: Centre | None = None
) -> FormulaCosts:
    """Return the formula of the sums of each run, at K' points.

    Parameters
    ----------
    fitted : a metric whose formula does not add up
    points : the points
    aggregate : centre of the repetitions, [call paths, K']; None = all runs, [call paths, K' * R]
    """
    formula, tree = fitted.formula, fitted.experiment.tree
    assert formula is not None, "the metric has a formula"
    of_parts = [fitted.runs_of(name)[:, points] for name in formula.parts]
    shape = (len(of_parts), *of_parts[0].shape[1:])

    def value(sums: FloatArray) -> FloatArray:
        # A block of a table may have no rows, so that all sizes are stated.
        nodes, (_, scales, runs) = sums.shape[:-1], shape
        operands = np.moveaxis(sums.reshape(*nodes, *shape), -3, 0)
        flat = formula.of([each.reshape(*nodes, scales * runs) for each in operands])
        if aggregate is None:
            return flat
        return centre(flat.reshape(-1, scales, runs), aggregate).reshape(*nodes, scales)

    columns = np.concatenate([part.reshape(len(part), -1) for part in of_parts], axis=1)
    return FormulaCosts.by(Costs.of(tree, columns), value)


def _total_at_largest(fitted: Fitted) -> float:
    """Return the measured total at the largest scale; NaN = the metric is not additive."""
    exclusive = fitted.measured[:, -1]
    return float(np.nansum(exclusive)) if fitted.metric.additive else float("nan")


def _unmodelled(fitted: Fitted) -> tuple[IntArray, float]:
    """Return the rows without a model, and their share of the total at the largest scale."""
    rows = np.flatnonzero(~fitted.modelled)
    rows = rows[~np.isnan(fitted.measured[rows]).all(axis=1)]
    lost, whole = float(np.nansum(fitted.measured[rows, -1])), _total_at_largest(fitted)
    return rows, lost / whole if whole > 0 else 0.0
