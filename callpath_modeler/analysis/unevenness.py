"""Which computation near a call path that waits takes some processes longer than others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.schema import Reduction

_ENOUGH = 0.5
"""Part of the wait that uneven computation has to make up: else it is looked for further out."""


@dataclass(frozen=True, slots=True, eq=False)
class Uneven:
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


def uneven_near(fitted: Fitted, row: int) -> Uneven | None:
    """Return the computation that may have others wait in a call path.

    It is that below the nearest caller where the slowest processes take at least half of the wait
    longer than the mean, else that of the whole program. Profiles hold sums over the run: who is
    late in one step and early in the next is even in them, so computation that is even may be
    waited for as well.

    Parameters
    ----------
    fitted : models of a time
    row : the call path that waits

    Returns
    -------
    Uneven or None
        None where the call path does not wait, or nothing is known of how processes share the time.
    """
    tree, line = fitted.experiment.tree, fitted.line
    regions = tree.regions
    column = line.columns.get(fitted.metric.name)
    is_time = fitted.metric.is_time and fitted.metric.additive
    if not (is_time and regions[tree.region[row]].waits) or column is None:
        return None
    here = np.array([run.parameters[fitted.parameter] for run in line.runs]) == fitted.points[-1]
    if column.imbalance is None or line.reduction not in {Reduction.MAX, Reduction.MEAN}:
        return None
    ratio = _centre(column.imbalance[:, here].astype(np.float64))
    value = _centre(column.exclusive[:, here])
    mean = value / ratio if line.reduction is Reduction.MAX else value
    computes = np.array([region.computes for region in regions])[tree.region]
    above = np.where(computes, np.nan_to_num(mean * (ratio - 1)), 0.0)
    wait = float(mean[row])
    if not above.any() or not wait > 0:
        return None
    # Programs are deep: no subtree is summed twice.
    upto, caller, total = np.concatenate([[0.0], np.cumsum(above)]), row, 0.0
    while tree.parent[caller] != ROOT and total < _ENOUGH * wait:
        caller = int(tree.parent[caller])
        total = float(upto[tree.end[caller]] - upto[caller])
    below = np.arange(caller, tree.end[caller])
    order = below[np.argsort(-above[below], kind="stable")]
    rows = order[above[order] > 0]
    return Uneven(caller, rows, above[rows], ratio[rows], float(above[rows].sum()), wait)


def _centre(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return medians over repetitions, [n]; NaN where nothing is known."""
    found = np.full(len(values), np.nan)
    known = ~np.isnan(values).all(axis=1)
    found[known] = np.nanmedian(values[known], axis=1)
    return found
