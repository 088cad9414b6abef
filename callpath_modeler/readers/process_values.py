"""Values of the single processes of one run in some call paths.

They are sums of threads over groups of call paths, so memory holds a few numbers for each thread,
for any number of call paths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError
from callpath_modeler.printable import printable
from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.placement import Placement
from callpath_modeler.profile.schema import DeclaredMetric, Metric, Reduction
from callpath_modeler.readers.base import PlacedSource, ProfileSource, ThreadSource
from callpath_modeler.readers.declared_units import DeclaredUnits
from callpath_modeler.readers.reductions import Columns, Fold, statistic
from callpath_modeler.readers.runs import LARGEST

_MEASURE = "measure with Score-P, HPCToolkit, TAU or OTF2, or write one Caliper file per process"
_SAME = 1e-6
"""Relative difference up to which two sums over processes are the same."""
_ADDING = (Reduction.MEAN, Reduction.SUM)


@dataclass(frozen=True, slots=True, eq=False)
class ProcessValues:
    """Values of the processes of one run, in order of their ranks.

    Attributes
    ----------
    metric : the metric, with its unit
    ranks : intp [processes] MPI ranks, ascending
    values : float64 [processes] one value per process, SI base units: of times the slowest thread,
        of other metrics the sum of the threads; NaN = no valid value
    threads : intp [processes] number of threads
    lowest, highest : float64 [processes] smallest and largest value of the threads of a process
    placement : compute nodes and topologies, in the order of `ranks`
    findings : findings of reading these values
    """

    metric: Metric
    ranks: IntArray
    values: FloatArray
    threads: IntArray
    lowest: FloatArray
    highest: FloatArray
    placement: Placement
    findings: tuple[Finding, ...] = ()

    def __len__(self) -> int:
        return len(self.ranks)


@dataclass(frozen=True, slots=True)
class Expected:
    """Values of the experiment with which those of the processes are compared.

    Attributes
    ----------
    row : row of the common call tree, or `ROOT` = nothing is compared
    value : its exclusive value, reduced over processes
    reduction : statistic over processes
    """

    row: int
    value: float
    reduction: Reduction


def process_values(
    source: ProfileSource,
    stated: DeclaredUnits,
    metric: str,
    rows: IntArray,
    chosen: BoolArray,
    expected: Expected,
    selected: BoolArray | None = None,
) -> ProcessValues:
    """Return the values of processes, summed over call paths.

    Parameters
    ----------
    source : the opened profile of the run
    stated : its metrics in the units that the user gave
    metric : name of the metric
    rows : intp [call paths of the run] row in the common tree, or `ROOT`
    chosen : [rows of the common tree] which call paths are summed
    expected : a chosen call path with its value in the experiment
    selected : [processes] which processes are used; None = all

    Raises
    ------
    DataError
        If the profile has no values of single processes, if the call paths do not occur, or if
        values differ from those of the experiment. The message does not name the profile.
    InputError
        If the file cannot be read.
    """
    if not isinstance(source, ThreadSource):
        raise DataError("the profile has no values of single processes", hint=_MEASURE)
    declared = _additive(stated.declared, metric)
    is_here = np.append(chosen, False)[rows]
    if not is_here.any():
        raise DataError("the call path does not occur in this run", hint="choose another scale")
    group = np.where(is_here, 1, ROOT)
    checked = rows == expected.row if expected.row != ROOT else np.zeros(len(rows), np.bool_)
    if expected.row != ROOT and not np.isnan(expected.value) and not checked.any():
        raise DataError(
            "the profile does not have the costliest of the call paths any more",
            hint="read the profiles again, with the same options",
        )
    group[checked & is_here] = 0
    before = {*source.findings()}
    sums = source.sums_of_threads(declared.metric.name, group, 2)
    findings = tuple(each for each in source.findings() if each not in before)
    of_threads = sums.values * stated.factors.get(declared.metric.name, 1.0)
    columns = Columns.of(sums.process)
    fold = Fold.MAX if declared.metric.is_time else Fold.SUM
    kept = np.arange(columns.processes) if selected is None else np.flatnonzero(selected)
    is_exact = declared.metric.is_time and columns.threads > 1
    if not findings:
        own = columns.fold(of_threads[:1], fold)[:, kept]
        _compare(own, expected, int(checked.sum()), adds_up=not is_exact)
    whole = of_threads.sum(axis=0)[np.newaxis]
    whole[whole > LARGEST] = np.nan
    placement = source.placement() if isinstance(source, PlacedSource) else None
    if placement is None or len(placement.ranks) != columns.processes:
        placement = Placement.unknown(columns.processes)
    order = kept[np.argsort(placement.ranks[kept], kind="stable")]
    return ProcessValues(
        declared.metric.in_one_line(),
        placement.ranks[order],
        columns.fold(whole, fold)[0, order],
        np.bincount(sums.process, minlength=columns.processes)[order],
        columns.fold(whole, Fold.MIN)[0, order],
        columns.fold(whole, Fold.MAX)[0, order],
        placement.of(order),
        findings,
    )


def _additive(declared: Sequence[DeclaredMetric], name: str) -> DeclaredMetric:
    """Return the metric of the experiment as the profile declares it."""
    found = next((each for each in declared if printable(each.metric.name) == name), None)
    if found is None or not found.status.is_readable:
        raise DataError(f"the profile has no metric {name}", hint="see `cpmodel info`")
    if not found.metric.additive:
        raise DataError(
            f"{name} does not add up over call paths, so it has no values of single processes",
            hint="choose a time or a count with -m",
        )
    return found


def _compare(own: FloatArray, expected: Expected, occurrences: int, *, adds_up: bool) -> None:
    """Raise `DataError` if the processes have another value than the experiment.

    A maximum of several call paths that share a row is no sum of their maxima.
    """
    if not occurrences or np.isnan(expected.value) or not np.isfinite(own).all():
        return
    if occurrences > 1 and not (adds_up and expected.reduction in _ADDING):
        return
    with np.errstate(all="ignore"):
        found = float(statistic(own, expected.reduction)[0])
    if np.isclose(found, expected.value, rtol=_SAME, atol=_SAME * 1e-3 * float(own.max())):
        return
    raise DataError(
        f"the profile has changed since it was read: {expected.reduction.words}, the call path has "
        f"{found:.6g} there and {expected.value:.6g} in the experiment",
        hint="read the profiles again, with the same options",
    )
