"""Which computation near a call path that waits takes some processes longer than others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.readers.reductions import statistic_of_present

_ENOUGH = 0.5
"""Part of the wait that uneven computation has to make up: else it is looked for further out."""


@dataclass(frozen=True, slots=True, eq=False)
class ImbalanceSource:
    """Computation that processes take unevenly long for, at the largest scale.

    Attributes
    ----------
    caller : the nearest caller below which it is
    rows : [k] call paths, the most uneven first
    above : [k] how much longer the slowest process takes than the mean, by themselves
    ratio : [k] the time of the slowest process over the mean
    total : the sum over all computation below the caller: more than that no process is behind
    wait : what the call path that waits takes, of the mean process
    """

    caller: int
    rows: NDArray[np.intp]
    above: NDArray[np.float64]
    ratio: NDArray[np.float64]
    total: float
    wait: float


@dataclass(frozen=True, slots=True, eq=False)
class ImbalanceSources:
    """How unevenly processes compute, at the largest scale.

    Attributes
    ----------
    fitted : models of a time
    mean : [call paths] time of the mean process
    ratio : [call paths] time of the slowest process over it
    above : [call paths] how much longer the slowest process computes than the mean; 0 of what does
        not compute
    upto : [call paths + 1] the sum of `above` before each: programs are deep, and no subtree is
        to be summed twice
    """

    fitted: Fitted
    mean: NDArray[np.float64]
    ratio: NDArray[np.float64]
    above: NDArray[np.float64]
    upto: NDArray[np.float64]

    @classmethod
    def of(cls, fitted: Fitted) -> ImbalanceSources | None:
        """Tell of the runs behind models; None where it is not known, or the metric is no time."""
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
        computes = np.array([region.computes for region in tree.regions])[tree.region]
        above = np.where(computes, np.nan_to_num(mean * (ratio - 1)), 0.0)
        return cls(fitted, mean, ratio, above, np.concatenate([[0.0], np.cumsum(above)]))

    def near(self, row: int) -> ImbalanceSource | None:
        """Return the computation that may have others wait in a call path.

        It is that below the nearest caller where the slowest processes take at least half of the
        wait longer than the mean, else that of the whole program. Profiles hold sums over the run:
        who is late in one step and early in the next is even in them, so computation that is even
        may be waited for as well.

        Parameters
        ----------
        row : the call path that waits

        Returns
        -------
        Uneven or None
            None where it does not wait, or all computation is even.
        """
        tree, above, upto = self.fitted.experiment.tree, self.above, self.upto
        wait = float(self.mean[row])
        if not (tree.regions[tree.region[row]].waits and wait > 0 and upto[-1] > 0):
            return None
        caller, total = row, 0.0
        while tree.parent[caller] != ROOT and total < _ENOUGH * wait:
            caller = int(tree.parent[caller])
            total = float(upto[tree.end[caller]] - upto[caller])
        rows = caller + np.flatnonzero(above[caller : tree.end[caller]] > 0)
        rows = rows[np.argsort(-above[rows], kind="stable")]
        return ImbalanceSource(
            caller, rows, above[rows], self.ratio[rows], float(above[rows].sum()), wait
        )
