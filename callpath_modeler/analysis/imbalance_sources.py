"""Imbalance of computation near a call path that waits."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.readers.reductions import statistic_of_present

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
    fitted : models of a time
    mean : [call paths] mean time of the processes
    ratio : [call paths] time of the slowest process over the mean
    above : [call paths] time of the slowest process beyond the mean; 0 = no computation
    upto : [call paths + 1] cumulative sums of `above`, so that sums of subtrees take constant time
    """

    fitted: Fitted
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
        line, tree, metric = fitted.line, fitted.experiment.tree, fitted.metric
        known = line.columns[metric.name].imbalance
        reductions = {Reduction.MAX, Reduction.MEAN}
        if not (metric.is_time and metric.additive and line.reduction in reductions):
            return None
        if known is None:
            return None
        here = line.settings([fitted.parameter])[:, 0] == fitted.points[-1]
        columns = known[:, here].astype(np.float64), line.columns[metric.name].exclusive[:, here]
        ratio, value = (statistic_of_present(each, Reduction.MEDIAN) for each in columns)
        mean = value / ratio if line.reduction is Reduction.MAX else value
        computes = np.array([region.call_class.computes for region in tree.regions])[tree.region]
        above = np.where(computes, np.nan_to_num(mean * (ratio - 1)), 0.0)
        return cls(fitted, mean, ratio, above, np.concatenate([[0.0], np.cumsum(above)]))

    def caller_near(self, row: int) -> int | None:
        """Return the caller whose computation may cause the wait time of a call path.

        It is the nearest caller in which the imbalance makes up at least half of the wait time, or
        else the whole program. None = the call path does not wait, or all computation is balanced.

        Parameters
        ----------
        row : the call path that waits
        """
        tree, upto = self.fitted.experiment.tree, self.upto
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
            tree, above = self.fitted.experiment.tree, self.above
            rows = caller + np.flatnonzero(above[caller : tree.end[caller]] > 0)
            rows = rows[np.argsort(-above[rows], kind="stable")]
            late = above[rows]
            self._known[caller] = rows, late, self.ratio[rows], float(late.sum())
        return self._known[caller]
