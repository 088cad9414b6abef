"""Values of an experiment that do not depend on the target."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Self

import numpy as np

from callpath_modeler.analysis.ensemble import (
    EnsembleExcess,
    Losses,
    ensemble_of,
    losses_of_pairs,
)
from callpath_modeler.analysis.imbalance_sources import ImbalanceSources
from callpath_modeler.analysis.measured import Measured
from callpath_modeler.analysis.run_time import maxima_at_largest
from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Centre, Growth, centre
from callpath_modeler.profile.groups import Codes, Costs, FormulaCosts


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
    def imbalance_sources(self) -> ImbalanceSources | None:
        """Imbalance of computation at the largest scale."""
        return ImbalanceSources.of(self.fitted)

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
        missing = np.isnan(own)
        there = np.where(missing, 0.0, own) if missing.any() else own
        whole = self.fitted.experiment.tree.inclusive(there)
        if self._is_without is not None:
            whole[self._is_without] = np.nan
        return Costs(own[:, None], whole[:, None])

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
        operands = np.moveaxis(sums.reshape(*sums.shape[:-1], *shape), -3, 0)
        flat = formula.of([each.reshape(*sums.shape[:-1], -1) for each in operands])
        if aggregate is None:
            return flat
        return centre(flat.reshape(-1, *shape[1:]), aggregate).reshape(*sums.shape[:-1], -1)

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
