"""The run time at a target, and the imbalance near call paths that wait.

The run time is the inclusive time of the program on the slowest process. It is a separate series
with its own model. Listed call paths are means over processes, or maxima of different processes,
and do not add up to it.

The predicted run time is the larger one of two numbers: the prediction of its model, and the sum of
the call paths, which are reconciled with this model (`analysis.reconciliation`). Its band has the
larger lower end of both bands, and an upper end between both. So the imbalance, which is the rest,
is never negative, and no call path takes longer than the program. On measured series, this is
closer than the model and the sum (benchmarks/ACCURACY.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np
from msgspec import Struct

from callpath_modeler.analysis.measured import Measured
from callpath_modeler.analysis.predict import (
    larger,
    predict,
    predict_sum,
    processes_summed,
    reconciled_total,
    run_time_by_model,
    sum_is_a_bound,
    with_usual_bands,
)
from callpath_modeler.analysis.uncertain import Band, Total
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.schema import Metric, Reduction
from callpath_modeler.readers.reductions import statistic_of_present


class RunTime(Struct, frozen=True, eq=False):
    """Run time at a target, in the unit of the metric.

    Attributes
    ----------
    fitted : model of the run time
    target : value of the parameter
    repetitions : number of runs at the target if the value is measured; 0 = it is predicted
    total : value with its band or interval; NaN ends = the noise is not known
    """

    fitted: Fitted
    target: float
    repetitions: int
    total: Total

    @property
    def at_largest(self) -> float:
        """The run time measured at the largest scale."""
        return float(self.fitted.measured[0, -1])


def maxima_at_largest(fitted: Fitted) -> tuple[FloatArray, FloatArray]:
    """Return the maxima over processes at the largest scale, and the imbalance there.

    Returns
    -------
    maximum, imbalance : [call paths], means of repetitions; the imbalance is the largest over the
        mean of the processes; NaN = not known
    """
    line, metric = fitted.line, fitted.metric.name
    nothing = np.broadcast_to(np.nan, len(line.tree))
    if not fitted.metric.additive:
        return nothing, nothing
    here = np.flatnonzero(line.settings([fitted.parameter])[:, 0] == fitted.points[-1])
    maxima, known = line.maxima(metric, here), line.columns[metric].imbalance
    if known is None and np.isnan(maxima).all():
        return nothing, nothing
    maximum = statistic_of_present(maxima, Reduction.MEAN)
    if known is None:
        return maximum, np.where(np.isnan(maximum), np.nan, 1.0)
    return maximum, statistic_of_present(known[:, here].astype(np.float64), Reduction.MEAN)


def run_time_at(
    fitted: Fitted,
    target: float,
    measured: Measured,
    of_call_paths: Total | None = None,
    *,
    predicted: bool = False,
) -> RunTime | None:
    """Return the run time at a target.

    Parameters
    ----------
    fitted : models of call paths, with that of the run time
    target : value of the parameter
    measured : measured values at the scales of the models
    of_call_paths : predicted sum of the reconciled call paths there, if it is known already
    predicted : use predictions even if the target was measured

    Returns
    -------
    RunTime or None
        None if the run time is not recorded, if it has no model, and at infinity.
    """
    of_program = fitted.run_time
    if of_program is None or np.isinf(target):
        return None
    runs = Measured(of_program)
    point = None if predicted else runs.point(target)
    if point is not None:
        total = _measured_at(runs, measured, point)
        return RunTime(of_program, target, runs.repetitions(point), total)
    if not of_program.modelled[0]:
        return None
    return RunTime(of_program, target, 0, predicted_run_time(fitted, target, of_call_paths))


def run_times(fitted: Fitted, points: FloatArray) -> FloatArray:
    """Return the predicted run times at [m] values of the parameter, without bands.

    So the model of the run time and a larger sum weigh the same. Without a model of the run time,
    these are the sums of all call paths.
    """
    of_program = fitted.run_time
    alone: FloatArray | None = None
    if of_program is not None and of_program.modelled[0]:
        alone = of_program.models.values(points)[0]
    if alone is not None and not sum_is_a_bound(fitted):
        return alone
    sums = fitted.models.sum_values(np.flatnonzero(fitted.modelled), points)
    if alone is None:
        return sums
    exceeds = (sums > alone) & (alone > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        middle = np.sqrt(alone * sums)
    return np.where(exceeds, middle, np.where(alone > 0, alone, sums))


def predicted_run_time(fitted: Fitted, target: float, of_call_paths: Total | None = None) -> Total:
    """Return the predicted run time at one target with its band, from the same models.

    Parameters
    ----------
    of_call_paths : predicted sum of the reconciled call paths there, if it is known already
    """
    where = np.array([target])
    alone = run_time_by_model(fitted, where)
    if alone is not None and not sum_is_a_bound(fitted):
        return alone.at(0)
    sums = of_call_paths or predict(fitted, target).total()
    if alone is None:
        return sums
    sums_of_one = _of_one_process(fitted, where, sums)
    return larger(alone, sums_of_one, where / fitted.points[-1]).at(0)


def run_time_bands(fitted: Fitted, points: FloatArray) -> Band:
    """Return the predicted run times at [m] finite values of the parameter, with their bands."""
    alone = run_time_by_model(fitted, points)
    if alone is not None and not sum_is_a_bound(fitted):
        return alone
    sums = predict_sum(fitted, np.arange(len(fitted.modelled)), points)
    if alone is None:
        return Band(*sums)
    of_one = _of_one_process(fitted, points, sums)
    usual = with_usual_bands(fitted)
    if usual is not fitted:
        value = run_time_bands(usual, points).value
    else:
        value = reconciled_total(alone, of_one)
    return larger(alone, Band(value, of_one.low, of_one.high), points / fitted.points[-1])


def _of_one_process(
    fitted: Fitted, points: FloatArray, sums: tuple[FloatArray | float, ...]
) -> Band:
    """Return sums of call paths with their bands, [m], for one process."""
    by = processes_summed(fitted, points)
    value, low, high = (np.asarray(end / by) for end in sums)
    return Band(value, low, high)


def _measured_at(runs: Measured, pool: Measured, point: int) -> Total:
    """Return the measured run time at a point; its interval uses the noise of all call paths."""
    fitted = runs.fitted
    centre, confidence = np.asarray(fitted.measured[:, point]), fitted.models.confidence
    noise = None if pool.is_repeated else runs.deviations(point)
    return pool.interval(centre, runs.runs, point, confidence, noise).at(0)


_ENOUGH = 0.5
"""Fraction of the wait time that imbalance must explain; else the search continues outwards."""


class ImbalanceSource(Struct, frozen=True, eq=False):
    """Computation with imbalance, at the largest scale.

    Attributes
    ----------
    caller : nearest caller that contains the computation
    rows : [k] call paths, the largest imbalance first
    above : [k] exclusive time of the slowest process beyond the mean
    ratio : [k] time of the slowest process over the mean
    total : sum over all computation below the caller, the largest delay of any process
    wait : time of the waiting call path, on the mean process
    """

    caller: int
    rows: IntArray
    above: FloatArray
    ratio: FloatArray
    total: float
    wait: float


@dataclass(frozen=True, slots=True, eq=False)
class ImbalanceSources:
    """Imbalance of computation, at the largest scale.

    Attributes
    ----------
    tree : the call paths
    metric : the time
    parameter, largest : the parameter of the runs, and its largest value
    mean : [call paths] mean time of the processes
    ratio : [call paths] time of the slowest process over the mean
    above : [call paths] time of the slowest process beyond the mean; 0 = no computation
    upto : [call paths + 1] cumulative sums of `above`, so that sums of subtrees take constant time
    """

    tree: CallTree
    metric: Metric
    parameter: str
    largest: float
    mean: FloatArray
    ratio: FloatArray
    above: FloatArray
    upto: FloatArray
    _known: dict[int, tuple[IntArray, FloatArray, FloatArray, float]] = field(
        default_factory=dict, init=False, repr=False
    )

    @classmethod
    def of(cls, fitted: Fitted) -> ImbalanceSources | None:
        """Return the imbalance of the runs of models; None = not known, or not a time."""
        if fitted not in _SOURCES:
            _SOURCES[fitted] = cls._of(fitted)
        return _SOURCES[fitted]

    @classmethod
    def _of(cls, fitted: Fitted) -> ImbalanceSources | None:
        line, tree, metric = fitted.line, fitted.experiment.tree, fitted.metric
        known = line.columns[metric.name].imbalance
        reductions = {Reduction.MAX, Reduction.MEAN}
        if not (metric.is_time and metric.additive and line.reduction in reductions):
            return None
        if known is None:
            return None
        largest = float(fitted.points[-1])
        here = line.settings([fitted.parameter])[:, 0] == largest
        columns = known[:, here].astype(np.float64), line.columns[metric.name].exclusive[:, here]
        ratio, value = (statistic_of_present(each, Reduction.MEDIAN) for each in columns)
        mean = value / ratio if line.reduction is Reduction.MAX else value
        computes = np.array([region.call_class.computes for region in tree.regions])[tree.region]
        above = np.where(computes, np.nan_to_num(mean * (ratio - 1)), 0.0)
        upto = np.concatenate([[0.0], np.cumsum(above)])
        return cls(tree, metric, fitted.parameter, largest, mean, ratio, above, upto)

    def caller_near(self, row: int) -> int | None:
        """Return the caller whose computation may cause the wait time of a call path.

        It is the nearest caller in which the imbalance makes up at least half of the wait time, or
        else the whole program. None = the call path does not wait, or all computation is balanced.

        Parameters
        ----------
        row : the call path that waits
        """
        tree, upto = self.tree, self.upto
        wait = float(self.mean[row])
        if not (tree.regions[tree.region[row]].call_class.waits and wait > 0 and upto[-1] > 0):
            return None
        caller, total = row, 0.0
        while tree.parent[caller] != ROOT and total < _ENOUGH * wait:
            caller = int(tree.parent[caller])
            total = float(upto[tree.end[caller]] - upto[caller])
        return caller

    def near(self, row: int) -> ImbalanceSource | None:
        """Return the computation whose imbalance may cause the wait time of a call path.

        Profiles hold sums over the run. A process that is late in one step and early in the next
        has no imbalance there, so balanced computation may also cause waiting.

        Parameters
        ----------
        row : the call path that waits

        Returns
        -------
        ImbalanceSource or None
            None if it does not wait, or if all computation is balanced.
        """
        caller = self.caller_near(row)
        if caller is None:
            return None
        rows, above, ratio, total = self._below(caller)
        return ImbalanceSource(caller, rows, above, ratio, total, float(self.mean[row]))

    def _below(self, caller: int) -> tuple[IntArray, FloatArray, FloatArray, float]:
        """Return the call paths below a caller that are late, by how much, and their sum."""
        if caller not in self._known:
            above = self.above
            rows = caller + np.flatnonzero(above[caller : self.tree.end[caller]] > 0)
            rows = rows[np.argsort(-above[rows], kind="stable")]
            late = above[rows]
            self._known[caller] = rows, late, self.ratio[rows], float(late.sum())
        return self._known[caller]


_SOURCES: WeakKeyDictionary[Fitted, ImbalanceSources | None] = WeakKeyDictionary()
"""Imbalance by models: a table asks for one block of call paths after the other."""
