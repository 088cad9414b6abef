"""Subjects of expectations: call paths, sums over them, and their models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from callpath_modeler import modeling
from callpath_modeler.analysis.excess_work import per_process
from callpath_modeler.analysis.expectations.expectation import CriterionKind
from callpath_modeler.analysis.ideals import ideal_cost, scaling_over
from callpath_modeler.analysis.measured import Measured, sum_over, with_means_of_repetitions
from callpath_modeler.analysis.predict import Predicted, predict, predict_sum
from callpath_modeler.analysis.run_time import run_time_at, run_time_bands
from callpath_modeler.analysis.uncertain import Band, propagate_errors
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Models
from callpath_modeler.modeling.sums import ends_of_sums
from callpath_modeler.profile.groups import inclusive_values


@dataclass(frozen=True, eq=False)
class Subjects:
    """Subjects of one expectation in one metric.

    Attributes
    ----------
    measured : models, with measured values
    rows : call paths, [n]; None = the whole program, which is one subject
    inclusive : True = with callees
    """

    measured: Measured
    rows: IntArray | None
    inclusive: bool = False

    @property
    def fitted(self) -> Fitted:
        """The models."""
        return self.measured.fitted

    @property
    def run_time(self) -> Fitted | None:
        """The model of the run time if it is the subject; None = sums over call paths are."""
        run_time = self.fitted.run_time
        return run_time if self.rows is None and run_time and run_time.modelled[0] else None

    def meaning(self, index: int, *, of_growth: bool = False) -> str:
        """Return what a number of a subject is, if others show another one; else "".

        Rankings and views show the fastest growth among the callees. A sum has its own growth.
        """
        row = self.row(index)
        if row is None:
            known = self.run_time if of_growth else self.fitted.run_time
            return "run time" if known is not None else ""
        has_callees = self.fitted.experiment.tree.end[row] > row + 1
        return "sum with callees" if of_growth and self.inclusive and has_callees else ""

    def __len__(self) -> int:
        return 1 if self.rows is None else len(self.rows)

    def row(self, index: int) -> int | None:
        """Return the call path of a subject; None = the whole program."""
        return None if self.rows is None else int(self.rows[index])

    def sums(self, exclusive: FloatArray) -> FloatArray:
        """Return sums over each subject of columns [call paths, ...], [subjects, ...]."""
        if self.rows is None:
            return sum_over(exclusive)[None]
        if self.inclusive:
            return inclusive_values(self.fitted.experiment.tree, exclusive)[self.rows]
        return exclusive[self.rows]

    def occurring(self, target: float | None = None) -> Subjects:
        """Return the subjects that occur at the largest scale, or at a target that was run."""
        if self.rows is None:
            return self
        point = None if target is None else self.measured.point(target)
        place = -1 if point is None else point
        if len(self.rows) == 1 and not self.inclusive and self.measured.occurs[self.rows[0], place]:
            return self
        if self.inclusive:
            there = ~np.isnan(self.sums(self.fitted.measured[:, place]))
        else:
            there = self.measured.occurs[self.rows, place]
        return self if there.all() else replace(self, rows=self.rows[there])

    def unmodelled(self) -> FloatArray:
        """Return the share of each subject without a model, at the largest scale, [subjects]."""
        largest = self.fitted.measured[:, -1]
        whole = np.nan_to_num(self.sums(largest))
        part = np.nan_to_num(self.sums(np.where(self.fitted.modelled, np.nan, largest)))
        return np.divide(part, whole, out=np.zeros_like(whole), where=whole > 0)

    def band(self, kind: CriterionKind, target: float, confidence: float) -> Band:
        """Return a number of each subject at a finite target, [subjects].

        It is measured if the target was run, else predicted.

        Parameters
        ----------
        kind : the number; in the unit of the metric, or a fraction of the program
        confidence : confidence of the band
        """
        if self.rows is None and kind is not CriterionKind.SHARE:
            whole = self._of_run_time(kind, target, confidence)
            if whole is not None:
                return whole
        point = self.measured.point(target)
        if point is None:
            return self._predicted(kind, target, confidence)
        return self._measured(kind, point, confidence)

    def _run_time(self, target: float, confidence: float) -> Band | None:
        """Return the run time at a target, [1], as a ranking has it; None = it is not known."""
        found = run_time_at(_confident(self.fitted, confidence), target, self.measured)
        if found is None:
            return None
        value, low, high = (np.array([end]) for end in found.total)
        return Band(value, low, high, np.array([found.repetitions > 0]))

    def _of_run_time(self, kind: CriterionKind, target: float, confidence: float) -> Band | None:
        """Return a number of the program from its run time, [1]; None = that is not known."""
        whole, fitted = self._run_time(target, confidence), self.fitted
        if whole is None or kind is CriterionKind.VALUE:
            return whole
        base = float(fitted.points[0])
        before = self._run_time(base, confidence)
        if before is None or not before.measured.all():
            assert fitted.run_time is not None, "the run time is known"
            value = fitted.run_time.at_smallest()
            before = Band(value, value, value)
        experiment, parameter = fitted.experiment, fitted.parameter
        factor = ideal_cost(scaling_over(experiment, parameter), base, target, np.ones(1))
        if kind is CriterionKind.LOSS:
            return propagate_errors(lambda of: of[0] - factor * of[1], [whole, before])
        return propagate_errors(lambda of: 1 - factor * of[1] / of[0], [whole, before])

    def _measured(self, kind: CriterionKind, point: int, confidence: float) -> Band:
        """Return a number of each subject at a measured point, [subjects]."""
        measured, target = self.measured, float(self.fitted.points[point])
        if kind is CriterionKind.SHARE:
            return measured.shares(self.sums, point, confidence, self._costs_of_program())
        own = measured.values(self.sums, point, confidence)
        if kind is CriterionKind.VALUE:
            return own
        before, one = self._before(confidence), self._one(target)
        if kind is CriterionKind.LOSS:
            return propagate_errors(
                lambda of: of[0] * one - self._ideal(of[1], target), [own, before]
            )
        whole = self._run_time(target, confidence)
        if whole is None:
            sums = measured.values(replace(self, rows=None).sums, point, confidence)
            whole = Band(sums.value * one, sums.low * one, sums.high * one, sums.measured)
        share = measured.shares(self.sums, point, confidence, self._costs_of_program())
        return propagate_errors(
            lambda of: of[0] - self._ideal(of[2], target) / of[1], [share, whole, before]
        )

    def _predicted(self, kind: CriterionKind, target: float, confidence: float) -> Band:
        """Return a predicted number of each subject, [subjects]."""
        fitted = _confident(self.fitted, confidence)
        own = predict(fitted, target)
        mine = _of(self, own)
        if kind is CriterionKind.VALUE:
            return mine
        rest = _rest(self, own)
        by = self._sum_in_program(own, target)
        if kind is CriterionKind.SHARE:
            share = propagate_errors(lambda of: of[0] / (of[0] + of[1]), [mine, rest])
            low, high = np.maximum(share.low, 0.0), np.minimum(share.high, 1.0)
            value, low, high = (np.minimum(end * by, 1.0) for end in (share.value, low, high))
            return Band(value, low, high)
        before = np.where(fitted.modelled, fitted.at_smallest(), np.nan)
        spent, one = self._ideal(np.nan_to_num(self.sums(before)), target), self._one(target)
        if kind is CriterionKind.LOSS:
            return propagate_errors(lambda of: of[0] * one - spent, [mine])
        return propagate_errors(
            lambda of: by * (of[0] - spent / one) / (of[0] + of[1]), [mine, rest]
        )

    def _costs_of_program(self) -> FloatArray | None:
        """Return the run time of every run in the unit of call paths, [K, R]; None = not known."""
        of_program = self.fitted.run_time
        if of_program is None:
            return None
        one = np.concatenate([self._one(float(point)) for point in self.fitted.points])
        return np.asarray(of_program.runs[0] / one[:, None])

    def _sum_in_program(self, own: Predicted, target: float) -> float:
        """Return the predicted sum of all call paths as a fraction of the predicted run time."""
        if self.fitted.run_time is None:
            return 1.0
        sums = own.total()
        found = run_time_at(self.fitted, target, self.measured, sums, predicted=True)
        return 1.0 if found is None else sums[0] * float(self._one(target)[0]) / found.total[0]

    def _before(self, confidence: float) -> Band:
        """Return the measured values at the smallest scale, [subjects]; 0 = did not occur."""
        point = self.measured.point(float(self.fitted.points[0]))
        if point is None:
            value = np.nan_to_num(self.sums(self.fitted.at_smallest()))
            return Band(value, value, value)
        known = self.measured.values(self.sums, point, confidence)
        absent = np.isnan(known.value)
        value, low, high = (
            np.where(absent, 0.0, end) for end in (known.value, known.low, known.high)
        )
        return Band(value, low, high, np.ones(len(absent), np.bool_))

    def _one(self, target: float) -> FloatArray:
        """Return the factor that converts a value at the target to one process, [1]."""
        return per_process(self.fitted.experiment, self.fitted.parameter, np.ones(1), target)

    def _ideal(self, before: FloatArray, target: float) -> FloatArray:
        """Return costs at the smallest scale as ideal costs per process at the target."""
        experiment, parameter = self.fitted.experiment, self.fitted.parameter
        base = float(self.fitted.points[0])
        spent = per_process(experiment, parameter, before, base)
        return ideal_cost(scaling_over(experiment, parameter), base, target, spent)

    def curve(self, row: int | None, points: FloatArray, confidence: float) -> Band:
        """Return predictions of one subject at many finite points, [points]; None = the program."""
        fitted = _confident(self.fitted, confidence)
        if self.run_time is not None:
            return run_time_bands(fitted, points)
        if row is None:
            rows = np.arange(len(fitted.experiment.tree))
        else:
            end = int(fitted.experiment.tree.end[row]) if self.inclusive else row + 1
            rows = np.arange(row, end)
        if not fitted.modelled[rows].any():
            unknown = np.full(len(points), np.nan)
            return Band(unknown, unknown, unknown)
        return Band(*predict_sum(fitted, rows, points))


def _of(subjects: Subjects, own: Predicted) -> Band:
    """Return the parts of subjects in the predictions of all call paths."""
    value = subjects.sums(own.value)
    if subjects.rows is not None and not subjects.inclusive:
        return Band(value, own.low[subjects.rows], own.high[subjects.rows])
    low, high = ends_of_sums(value, subjects.sums(own.added))
    return Band(value, low, np.minimum(high, own.most))


def _rest(subjects: Subjects, own: Predicted) -> Band:
    """Return the cost of the program without each subject."""
    value = np.nansum(own.value) - np.nan_to_num(subjects.sums(own.value))
    added = own.added.sum(axis=0) - subjects.sums(own.added)
    value, added = np.maximum(value, 0.0), np.maximum(added, 0.0)
    return Band(value, *ends_of_sums(value, added))


def _confident(fitted: Fitted, confidence: float) -> Fitted:
    """Return the models with another confidence of bands."""
    run_time = None if fitted.run_time is None else _confident(fitted.run_time, confidence)
    models = replace(fitted.models, confidence=confidence)
    return replace(fitted, models=models, run_time=run_time)


SumKey = int | bytes | None
"""Name of a sum: the row of a subtree, the rows of a function, or None for the whole program."""


@dataclass(eq=False)
class SumModels:
    """Models of sums over call paths.

    A sum has a model of its own. A sum of models would have the growth of its fastest call path,
    however small that is. Noise and priors are learnt from the call paths alone, so the model of a
    sum does not depend on other sums. `GrowthOfSubjects` compares it with its parts. All sums that
    were announced are modelled together, because learning takes as long as the models of ten sums.

    Attributes
    ----------
    fitted : models of the call paths
    """

    fitted: Fitted
    _sums: dict[SumKey, FloatArray] = field(default_factory=dict, repr=False)
    _places: dict[SumKey, int] = field(default_factory=dict, repr=False)
    _models: Models | None = field(default=None, repr=False)

    def announce(self, subjects: Subjects) -> Sequence[SumKey] | None:
        """Announce the sums of subjects, and return their keys; None = they are no sums."""
        if subjects.run_time is not None:
            return None
        if subjects.rows is None:
            if None not in self._sums:
                self._sums[None] = sum_over(self._values)
            return [None]
        if not subjects.inclusive:
            return None
        rows: list[int] = subjects.rows.tolist()
        for row in rows:
            if row not in self._sums:
                self._sums[row] = self._of_subtrees[row]
        return rows

    def of_subjects(self, subjects: Subjects) -> Models:
        """Return a model of each subject: of a call path, of a subtree, or of the program."""
        if subjects.run_time is not None:
            return subjects.run_time.models
        keys = self.announce(subjects)
        if keys is not None:
            return self.of(keys)
        assert subjects.rows is not None, "the program is a sum"
        return self.fitted.models.take(subjects.rows)

    def functions(self, functions: Iterable[IntArray]) -> list[SumKey]:
        """Announce the sums over several call paths each, and return their keys."""
        keys: list[SumKey] = []
        for rows in functions:
            keys.append(rows.tobytes())
            if keys[-1] not in self._sums:
                self._sums[keys[-1]] = sum_over(self._values[rows])
        return keys

    def of(self, keys: Sequence[SumKey]) -> Models:
        """Return the models of announced sums, one row for each key."""
        if any(key not in self._places for key in keys):
            self._models = self._made(np.array([*self._sums.values()]))
            self._places = {key: place for place, key in enumerate(self._sums)}
        assert self._models is not None, "there is a key"
        return self._models.take(np.array([self._places[key] for key in keys], np.intp))

    @cached_property
    def _runs(self) -> tuple[FloatArray, FloatArray]:
        """Measured settings [K, D] and values [call paths, K, R]."""
        fitted = self.fitted
        points, values = fitted.experiment.by_setting(fitted.metric.name, fitted.parameters)
        measured = ~np.isnan(values).all(axis=(0, 2))
        return points[measured], values[:, measured]

    @property
    def _values(self) -> FloatArray:
        return self._runs[1]

    @cached_property
    def _of_subtrees(self) -> FloatArray:
        values = with_means_of_repetitions(self._values)
        return inclusive_values(self.fitted.experiment.tree, values)

    def _made(self, sums: FloatArray) -> Models:
        """Return the models of sums [n, K, R]."""
        fitted, (points, values) = self.fitted, self._runs
        names = fitted.parameters
        models = fitted.models
        scales = points[:, 0] if len(names) == 1 else points
        method: modeling.Method = "classic" if models.method == "classic" else "mixture"
        space, aggregate = models.space, models.aggregate
        found = modeling.fit(
            scales,
            sums,
            method=method,
            space=space,
            aggregate=aggregate,
            confidence=models.confidence,
            priors=modeling.learn(scales, values, method=method, space=space, aggregate=aggregate),
        )
        if len(names) == 1:
            return found
        at = np.array([fitted.held.get(name, 1.0) for name in names])
        line = names.index(fitted.parameter), at, points
        beside = modeling.runs_along(fitted.whole, *line, values).values
        return modeling.slice_with_line_models(found, *line, sums, beside)[0]
